"""What RCA, EA and AA share: requests accepted once and in time, refusals, certificates within permissions."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from threading import Lock

from labconsole_v2x.pki.enrolment_messages import identifier_of
from labconsole_v2x.pki.request_parts import Content, PublicKeys, SubjectAttributes, read_data
from labconsole_v2x.pki.secured_messages import check_profile, payload_of
from labconsole_v2x.security.chain import link_fault
from labconsole_v2x.security.encoding import EncodingError
from labconsole_v2x.security.issuing import issue
from labconsole_v2x.security.keys import SigningKey
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import Certificate, Permission, SignedData, Validity
from labconsole_v2x.security.trust import software_verifier

OLDEST_S, NEWEST_S = 300, 5
"""How far the generation time of a request may be in the past and in the future."""
MOST_REMEMBERED = 100_000
"""Accepted requests of the last minutes; more are refused."""


class Refusal(Exception):  # noqa: N818 - it is an answer
    """A request that is refused: the response code, and the reason for the authority's operator."""

    def __init__(self, code: IntEnum, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True)
class Decision:
    """What an authority answered: which request, the standard's identifier of the code, and the reason or result."""

    request: str
    code: str
    reason: str

    def __str__(self) -> str:
        return f"{self.request}: {self.code}: {self.reason}"


class Authority:
    """The base of all: it issues with `key`, whose certificate begins the chain `issuers` up to the root.

    `clock` returns ITS time in us, `notify` is called with each decision, by any thread.
    """

    def __init__(
        self,
        key: SigningKey,
        issuers: Sequence[Certificate],
        clock: Callable[[], int],
        notify: Callable[[Decision], None],
    ) -> None:
        self._key = key
        self._issuers = issuers
        self.clock = clock
        self._notify = notify
        self._started_us = clock()
        self._lock = Lock()
        self._accepted: set[bytes] = set()
        self._in_order: deque[tuple[int, bytes]] = deque()

    def decided(self, request: str, code: IntEnum, reason: str) -> None:
        """Report a decision."""
        self._notify(Decision(request, identifier_of(code), reason))

    def check_time(self, data: SignedData, code: IntEnum) -> None:
        """Check the generation time. Raises `Refusal`.

        A request from before this process is refused: what was accepted before a restart is not remembered.
        """
        now_us, generation_us = self.clock(), data.header.generation_time
        earliest_us = max(now_us - OLDEST_S * 1_000_000, self._started_us)
        if generation_us is None or not earliest_us <= generation_us <= now_us + NEWEST_S * 1_000_000:
            raise Refusal(code, "its generation time is too old or in the future")

    def remember(self, data: SignedData, code: IntEnum) -> None:
        """Accept a request once. Raises `Refusal`: it is a replay, or too many were accepted in the last minutes.

        What was signed is compared: the same may have several signatures, and a signature several forms.
        """
        now_us, signed_hash = self.clock(), hashlib.sha256(data.tbs).digest()
        with self._lock:
            while self._in_order and self._in_order[0][0] < now_us - (OLDEST_S + NEWEST_S) * 1_000_000:
                self._accepted.discard(self._in_order.popleft()[1])
            if signed_hash in self._accepted:
                raise Refusal(code, "the same request was answered before (replay)")
            if len(self._accepted) >= MOST_REMEMBERED:
                raise Refusal(code, "too many requests in the last minutes")
            self._accepted.add(signed_hash)
            self._in_order.append((now_us, signed_hash))

    def certify(
        self, keys: PublicKeys, validity: Validity, attributes: SubjectAttributes, code: IntEnum
    ) -> Certificate:
        """Issue a certificate, checked as a receiver does. Raises `Refusal`: more than this authority may grant."""
        issuer = self._issuers[0]
        try:
            certificate = issue(
                self._key,
                keys.verification,
                validity,
                issuer=issuer,
                name=attributes.name or "",
                region=issuer.region,
                permissions=attributes.permissions or (),
                issue_permissions=attributes.issue_permissions or (),
                encryption_key=keys.encryption,
            )
        except EncodingError as error:
            raise Refusal(code, str(error)) from error
        fault = link_fault(certificate, self._issuers, software_verifier(issuer.verification_key))
        if fault is not None:
            raise Refusal(code, str(fault))
        return certificate


def signed_message(signed_octets: bytes) -> tuple[SignedData, Content, bytes]:
    """Signed data, and the kind and octets of the message in it. Raises `MalformedDataError`."""
    data = scan_signed_data(signed_octets)
    check_profile(data)
    return (data, *read_data(payload_of(data)))


def check_attributes(attributes: SubjectAttributes, code: IntEnum) -> None:
    """Refuse what an authority sets itself. Raises `Refusal`."""
    if attributes.name or attributes.region is not None or attributes.assurance is not None:
        raise Refusal(code, "name, region and assurance level are set by the authority")
    if attributes.issue_permissions is not None:
        raise Refusal(code, "certificates of stations permit no issuing")


def check_permissions(wanted: Sequence[Permission] | None, granted: Sequence[Permission], code: IntEnum) -> None:
    """Check that each permission is among those granted: the same version, no bit more. Raises `Refusal`."""
    for permission in wanted or ():
        if not any(_covers(grant, permission) for grant in granted):
            raise Refusal(code, f"the permission for ITS-AID {permission.psid} is not granted")


def _covers(grant: Permission, wanted: Permission) -> bool:
    if grant == wanted:
        return True
    if grant.psid != wanted.psid or not (grant.bitmap and wanted.bitmap) or not grant.ssp or not wanted.ssp:
        return False
    same_version = grant.ssp[0] == wanted.ssp[0] and len(grant.ssp) == len(wanted.ssp)
    return same_version and all(w & ~g == 0 for g, w in zip(grant.ssp[1:], wanted.ssp[1:], strict=True))


def chosen_validity(
    wanted: Validity | None, now_us: int, default_s: int, longest_s: int, ahead_s: int, code: IntEnum
) -> Validity:
    """The validity of a certificate: from now on by default. Raises `Refusal`: too long, too far ahead, or over."""
    now_s = now_us // 1_000_000
    if wanted is None:
        return Validity(now_s, now_s + default_s)
    if not (
        now_s < wanted.end_s and wanted.start_s <= now_s + ahead_s and 0 < wanted.end_s - wanted.start_s <= longest_s
    ):
        raise Refusal(code, "the validity asked for is over, too long, or too far ahead")
    return wanted
