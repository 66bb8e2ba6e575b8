"""The root CA (RCA): issues the certificates of EAs and AAs on their requests (TS 102 941, annex A.2).

The standard leaves the way back open: the answer here is the certificate, a refusal is a sentence. A first request is
granted if the root's operator has accepted its key, a later one if the current certificate has signed it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import IntEnum
from threading import Lock
from typing import Protocol

from labconsole.errors import UserError
from labconsole_v2x.pki.authority import (
    Authority,
    Decision,
    Refusal,
    check_permissions,
    chosen_validity,
    signed_message,
)
from labconsole_v2x.pki.authority_requests import AuthorityKind, CaCertificateRequest, fingerprint, read_ca_request
from labconsole_v2x.pki.enrolment_messages import identifier_of
from labconsole_v2x.pki.request_parts import Content, SubjectAttributes
from labconsole_v2x.pki.secured_messages import DeniedRequestError, check_profile, is_point, is_signed_by, payload_of
from labconsole_v2x.pki.station_requests import CertifiedKey
from labconsole_v2x.security.encoding import YEAR_S
from labconsole_v2x.security.issuing import AUTHORITY_YEARS
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import Certificate, SignedData
from labconsole_v2x.security.verification import its_now

_HOUR_S = 3600
_AHEAD_S = 92 * 24 * 3600
"""How far ahead a certificate may begin."""


class CaCode(IntEnum):
    """Why a request is refused: the console's codes, as the standard has none."""

    OK = 0
    CANTPARSE = 1
    UNKNOWNKEY = 2
    UNKNOWNCERTIFICATE = 3
    REVOKED = 4
    INVALIDSIGNATURE = 5
    INVALIDKEYS = 6
    DENIEDPERMISSIONS = 7
    DENIEDREQUEST = 8


@dataclass(frozen=True, slots=True)
class AcceptedAuthority:
    """An authority that the root's operator has accepted: its first key, and its certificate once it has one."""

    fingerprint: bytes
    kind: AuthorityKind
    certificate: Certificate | None = None


class AuthorityRegister(Protocol):
    """The authorities that a root CA certifies."""

    def by_key(self, key: bytes) -> AcceptedAuthority | None:
        """The authority whose first or current key has a fingerprint."""

    def certified(self, hashed_id8: bytes) -> AcceptedAuthority | None:
        """The authority with a current certificate."""

    def add_certificate(self, authority: AcceptedAuthority, certificate: Certificate) -> None:
        """Note the current certificate of an authority, before it is sent."""


class RootAuthority(Authority):
    """An RCA: any thread may call `answer`. `revoked` returns the HashedId8 in its CRL."""

    def __init__(
        self,
        root: CertifiedKey,
        register: AuthorityRegister,
        revoked: Callable[[], Collection[bytes]],
        *,
        clock: Callable[[], int] = its_now,
        notify: Callable[[Decision], None] = lambda _: None,
    ) -> None:
        super().__init__(root.key, (root.certificate,), clock, notify)
        self._root = root.certificate
        self._register = register
        self._revoked = revoked
        self._issuing = Lock()

    def answer(self, octets: bytes) -> bytes:
        """The certificate that is asked for. Raises `DeniedRequestError`."""
        try:
            with self._issuing:  # one authority may ask twice at the same time
                certificate = self._certified(octets)
        except Refusal as refusal:
            raise self._denied(CaCode(refusal.code), str(refusal)) from refusal
        except MalformedDataError as error:
            raise self._denied(CaCode.CANTPARSE, str(error).rstrip(".")) from error
        except UserError as error:  # of the register, with a path that only its operator shall see
            self.decided("CA certificate", CaCode.DENIEDREQUEST, str(error))
            raise DeniedRequestError("deniedrequest: the root CA cannot read its register; ask its operator") from error
        self.decided("CA certificate", CaCode.OK, f"certificate {certificate.hashed_id8.hex()}")
        return certificate.octets

    def _denied(self, code: CaCode, reason: str) -> DeniedRequestError:
        self.decided("CA certificate", code, reason)
        return DeniedRequestError(f"{identifier_of(code)}: {reason}")

    def _certified(self, octets: bytes) -> Certificate:
        """The certificate. Raises `Refusal` or `MalformedDataError`."""
        outer = scan_signed_data(octets)
        check_profile(outer)
        is_first = outer.digest is None
        request, content, message = signed_message(octets if is_first else payload_of(outer))
        if content is not Content.CA_CERTIFICATE_REQUEST or request.digest is not None:
            raise Refusal(CaCode.DENIEDREQUEST, "not a request for an authority's certificate")
        wanted = read_ca_request(message)
        for data in (outer, request):
            self.check_time(data, CaCode.DENIEDREQUEST)
        self._check_keys(wanted)
        if not is_signed_by(request, wanted.keys.verification, b""):
            raise Refusal(CaCode.INVALIDSIGNATURE, "the proof of possession of the new key is wrong")
        known = self._register.by_key(fingerprint(wanted.keys.verification))
        if known and known.certificate and known.certificate.verification_key == wanted.keys.verification:
            self._check_revocation(known.certificate)
            self.remember(outer, CaCode.DENIEDREQUEST)
            return known.certificate  # the answer to the request before was lost
        authority = self._first(wanted, known) if is_first else self._current(outer)
        attributes = self._granted(authority, wanted.attributes)
        validity = chosen_validity(
            attributes.validity,
            self.clock(),
            self._default_s(),
            AUTHORITY_YEARS * YEAR_S,
            _AHEAD_S,
            CaCode.DENIEDREQUEST,
        )
        self.remember(outer, CaCode.DENIEDREQUEST)
        certificate = self.certify(wanted.keys, validity, attributes, CaCode.DENIEDPERMISSIONS)
        self._register.add_certificate(authority, certificate)
        return certificate

    def _check_keys(self, wanted: CaCertificateRequest) -> None:
        encryption = wanted.keys.encryption
        if encryption is None or not (is_point(wanted.keys.verification) and is_point(encryption)):
            raise Refusal(CaCode.INVALIDKEYS, "a key is missing, or not a point of its curve")

    def _first(self, wanted: CaCertificateRequest, authority: AcceptedAuthority | None) -> AcceptedAuthority:
        """The authority whose key was accepted. Raises `Refusal`."""
        if authority is None:
            raise Refusal(
                CaCode.UNKNOWNKEY,
                f"the key {fingerprint(wanted.keys.verification).hex()} is not accepted; have the root's operator "
                "compare it with the authority's and accept it (v2x accept-authority)",
            )
        if authority.certificate is not None:
            raise Refusal(CaCode.DENIEDREQUEST, "this key has a certificate; the current one must sign for the next")
        return authority

    def _current(self, outer: SignedData) -> AcceptedAuthority:
        """The authority whose current certificate has signed. Raises `Refusal`."""
        authority = self._register.certified(outer.digest or b"")
        certificate = authority.certificate if authority else None
        if authority is None or certificate is None:
            raise Refusal(CaCode.UNKNOWNCERTIFICATE, "the signer's certificate is not a current one of this root")
        self._check_revocation(certificate)
        if certificate.validity.end_s <= self.clock() // 1_000_000:
            raise Refusal(CaCode.UNKNOWNCERTIFICATE, "the signer's certificate has expired")
        if not is_signed_by(outer, certificate.verification_key, certificate.canonical):
            raise Refusal(CaCode.INVALIDSIGNATURE, "it is not signed with the current certificate")
        return authority

    def _check_revocation(self, certificate: Certificate) -> None:
        if certificate.hashed_id8 in self._revoked():
            raise Refusal(CaCode.REVOKED, f"the certificate {certificate.hashed_id8.hex()} is revoked")

    def _granted(self, authority: AcceptedAuthority, wanted: SubjectAttributes) -> SubjectAttributes:
        """The attributes, if they are among those of this authority. Raises `Refusal`."""
        denied = CaCode.DENIEDPERMISSIONS
        most, certificate = authority.kind.attributes, authority.certificate
        permissions, issues = most.permissions or (), most.issue_permissions or ()
        if certificate is not None:
            permissions, issues = certificate.permissions, certificate.issue_permissions
        if wanted.region is not None or wanted.assurance is not None:
            raise Refusal(denied, "region and assurance level are set by the root CA")
        if not wanted.permissions or not wanted.issue_permissions:
            raise Refusal(denied, "no permissions are asked for")
        check_permissions(wanted.permissions, permissions, denied)
        if not set(wanted.issue_permissions) <= set(issues):
            raise Refusal(denied, "the permissions to issue certificates are not granted")
        return wanted

    def _default_s(self) -> int:
        """How long a certificate is valid by default: five years, but not longer than the root's, in whole hours."""
        left_s = self._root.validity.end_s - self.clock() // 1_000_000
        return AUTHORITY_YEARS * YEAR_S if left_s > AUTHORITY_YEARS * YEAR_S else left_s // _HOUR_S * _HOUR_S
