"""The root CA (RCA): issues the certificates of EAs and AAs on their requests (TS 102 941, annex A.2).

The standard leaves the way back open: the answer here is the certificate, a refusal is a sentence. A first request is
granted if the root's operator has accepted its key, a later one if the current certificate has signed it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import IntEnum
from threading import Lock
from typing import Protocol

from labconsole.errors import UserError
from labconsole_v2x.pki.authority import (
    Authority,
    Decision,
    Refusal,
    check_permissions,
    signed_message,
)
from labconsole_v2x.pki.enrolment_messages import identifier_of
from labconsole_v2x.pki.request_parts import Content, SubjectAttributes
from labconsole_v2x.pki.root.authority_requests import AuthorityKind, CaCertificateRequest, fingerprint, read_ca_request
from labconsole_v2x.pki.secured_messages import DeniedRequestError, check_profile, is_point, is_signed_by, payload_of
from labconsole_v2x.pki.station_requests import CertifiedKey
from labconsole_v2x.security.encoding import YEAR_S
from labconsole_v2x.security.issuing import AUTHORITY_YEARS
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import Certificate, SignedData, Validity
from labconsole_v2x.security.verification import its_now

_HOUR_S = 3600


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
    INTERNALERROR = 9


_ANSWERS = {
    CaCode.UNKNOWNKEY: "the root's operator has not accepted this key; have its fingerprint, which is shown at this "
    "authority, compared and accepted there (v2x accept-authority)",
    CaCode.INTERNALERROR: "the root CA cannot use its files; ask its operator",
}
"""What an authority gets in place of the reason. The fingerprint is not sent: others could replace it on the way."""


@dataclass(frozen=True, slots=True)
class AcceptedAuthority:
    """An authority that the root's operator has accepted: the fingerprint of its first key, and its certificates.

    With a URL, and if it is the lab's `own`, the root's CTL names it.
    """

    fingerprint: bytes
    kind: AuthorityKind
    name: str
    url: str = ""
    own: bool = False
    certificates: tuple[Certificate, ...] = ()
    """In the order of their issue: the last one is the current one."""

    @property
    def certificate(self) -> Certificate | None:
        """The current certificate, None before the first."""
        return self.certificates[-1] if self.certificates else None

    def has_key(self, key: bytes) -> bool:
        """Whether it has, or has had, the key with a fingerprint."""
        return key == self.fingerprint or any(key == fingerprint(one.verification_key) for one in self.certificates)


class AuthorityRegister(Protocol):
    """The authorities that a root CA certifies."""

    def by_key(self, key: bytes) -> AcceptedAuthority | None:
        """The authority that has, or has had, the key with a fingerprint."""

    def certified(self, hashed_id8: bytes) -> AcceptedAuthority | None:
        """The authority with a current certificate."""

    def add_certificate(self, authority: AcceptedAuthority, certificate: Certificate) -> None:
        """Note the next certificate of an authority, before it is sent."""


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
        except UserError as error:  # of its files, with a path that only its operator shall see
            raise self._denied(CaCode.INTERNALERROR, str(error)) from error
        self.decided("CA certificate", CaCode.OK, f"certificate {certificate.hashed_id8.hex()}")
        return certificate.octets

    def _denied(self, code: CaCode, reason: str) -> DeniedRequestError:
        self.decided("CA certificate", code, reason)
        return DeniedRequestError(f"{identifier_of(code)}: {_ANSWERS.get(code, reason)}")

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
        key = fingerprint(wanted.keys.verification)
        known = self._register.by_key(key)
        if known and known.certificate and fingerprint(known.certificate.verification_key) == key:
            self._check_revocation(known)
            self.remember(request, CaCode.DENIEDREQUEST)
            return known.certificate  # the answer to the request before was lost
        authority = self._first(key, known) if is_first else self._current(outer, known)
        self._check_revocation(authority)
        attributes = self._granted(authority, wanted.attributes)
        self.remember(request, CaCode.DENIEDREQUEST)
        certificate = self.certify(wanted.keys, self._validity(), attributes, CaCode.DENIEDPERMISSIONS)
        self._register.add_certificate(authority, certificate)
        return certificate

    def _check_keys(self, wanted: CaCertificateRequest) -> None:
        encryption = wanted.keys.encryption
        if encryption is None or not (is_point(wanted.keys.verification) and is_point(encryption)):
            raise Refusal(CaCode.INVALIDKEYS, "a key is missing, or not a point of its curve")

    def _first(self, key: bytes, authority: AcceptedAuthority | None) -> AcceptedAuthority:
        """The authority whose key was accepted. Raises `Refusal`."""
        if authority is None:
            raise Refusal(CaCode.UNKNOWNKEY, f"the key {key.hex()} is not accepted")
        if authority.certificate is not None:
            raise Refusal(CaCode.DENIEDREQUEST, "this key has a certificate; the current one must sign for the next")
        return authority

    def _current(self, outer: SignedData, known: AcceptedAuthority | None) -> AcceptedAuthority:
        """The authority whose current certificate has signed, for a new key. Raises `Refusal`."""
        authority = self._register.certified(outer.digest or b"")
        certificate = authority.certificate if authority else None
        if authority is None or certificate is None:
            raise Refusal(CaCode.UNKNOWNCERTIFICATE, "the signer's certificate is not a current one of this root")
        if certificate.validity.end_s <= self.clock() // 1_000_000:
            raise Refusal(CaCode.UNKNOWNCERTIFICATE, "the signer's certificate has expired")
        if not is_signed_by(outer, certificate.verification_key, certificate.canonical):
            raise Refusal(CaCode.INVALIDSIGNATURE, "it is not signed with the current certificate")
        if known is not None:
            raise Refusal(CaCode.INVALIDKEYS, "this key is in use, or was")
        return authority

    def _check_revocation(self, authority: AcceptedAuthority) -> None:
        """Check that none of its certificates is revoked: who had its key may have signed for the next ones."""
        revoked = self._revoked()
        for certificate in authority.certificates:
            if certificate.hashed_id8 in revoked:
                raise Refusal(CaCode.REVOKED, f"its certificate {certificate.hashed_id8.hex()} is revoked")

    def _granted(self, authority: AcceptedAuthority, wanted: SubjectAttributes) -> SubjectAttributes:
        """The attributes, if they are among those of this authority. Raises `Refusal`."""
        denied = CaCode.DENIEDPERMISSIONS
        most, certificate = authority.kind.attributes, authority.certificate
        permissions, issues = most.permissions or (), most.issue_permissions or ()
        if certificate is not None:
            permissions, issues = certificate.permissions, certificate.issue_permissions
        if wanted.validity is not None or wanted.region is not None or wanted.assurance is not None:
            raise Refusal(denied, "validity, region and assurance level are set by the root CA")
        if not wanted.permissions or not wanted.issue_permissions:
            raise Refusal(denied, "no permissions are asked for")
        check_permissions(wanted.permissions, permissions, denied)
        if not set(wanted.issue_permissions) <= set(issues):
            raise Refusal(denied, "the permissions to issue certificates are not granted")
        return replace(wanted, name=authority.name)

    def _validity(self) -> Validity:
        """Five years, but not longer than the root's in whole hours, from an hour ago on. Raises `Refusal`.

        Clocks of stations may be slow.
        """
        now_s, root = self.clock() // 1_000_000, self._root.validity
        start_s = max(now_s - _HOUR_S, root.start_s)
        left_s = root.end_s - start_s
        if root.end_s - now_s < _HOUR_S:
            raise Refusal(CaCode.DENIEDREQUEST, "the root CA's certificate has expired, or expires within an hour")
        longest_s = AUTHORITY_YEARS * YEAR_S
        return Validity(start_s, start_s + (longest_s if left_s > longest_s else left_s // _HOUR_S * _HOUR_S))
