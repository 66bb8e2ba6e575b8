"""The receiver's path: from the octets of signed data to an outcome with one reason, its signer's chain and payload.

IEEE 1609.2, 5.2.3 (validity of signed data); TS 103 097, clauses 5 to 7.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from labconsole_v2x.messages import cam, denm
from labconsole_v2x.messages.asn1_modules import MessageError
from labconsole_v2x.messages.btp import BtpError, parse_btp
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.denm import Denm
from labconsole_v2x.messages.geonetworking import GeoNetworkingError, carried_payload
from labconsole_v2x.messages.its_time import its_us
from labconsole_v2x.security.chain import ChainFault, ChainReason, effective_region
from labconsole_v2x.security.keys import CURVES, integers
from labconsole_v2x.security.profiles import profile_faults, ssp_faults
from labconsole_v2x.security.reading import MalformedDataError, UnsupportedError
from labconsole_v2x.security.regions import contains
from labconsole_v2x.security.scanning import PlainParts, plain_parts, scan_certificate, scan_signed_data
from labconsole_v2x.security.structures import CAM_PSID, DENM_PSID, Certificate, Curve, Header, SignedData
from labconsole_v2x.security.trust import KnownCertificate, Limits, TrustStore, WaitingPacket

UNSECURED_DATA = b"\x03\x80"
"""Version and content of an Ieee1609Dot2Data that is unsecured data (IEEE 1609.2, 6.3.3 and 6.3.4)."""
_P256 = Curve.P256
_P256_ORDER = CURVES[_P256].group_order.to_bytes(32, "big")
_HASHES = {"sha256": hashlib.sha256, "sha384": hashlib.sha384}


class Reason(StrEnum):
    """The verdict on a packet: accepted, or the reason for its rejection."""

    ACCEPTED = "accepted"
    MALFORMED = "malformed"
    UNSECURED = "not secured"
    UNSUPPORTED_VERSION = "unsupported version"
    UNSUPPORTED_CURVE = "unsupported curve or algorithm"
    PROFILE_BROKEN = "profile broken"
    TOO_OLD = "generation time too old"
    IN_FUTURE = "generation time in the future"
    MESSAGE_EXPIRED = "message expired"
    UNKNOWN_ITS_AID = "ITS-AID not among the ticket's permissions"
    NOT_YET_VALID = "ticket not yet valid"
    EXPIRED = "ticket expired"
    OUTSIDE_REGION = "outside the ticket's region"
    DUPLICATE = "duplicate"
    UNKNOWN_SIGNER = "unknown signer"
    SIGNATURE_INVALID = "signature invalid"
    CHAIN_INVALID = "chain invalid"
    UNKNOWN_ISSUER = "unknown issuer"
    CONTENT_MALFORMED = "message content malformed"
    PERMISSION_MISSING = "permission for the content missing"
    REVOKED = "certificate revoked"


ACCEPTED, SIGNATURE_INVALID = Reason.ACCEPTED, Reason.SIGNATURE_INVALID
"""For what is done with each packet: a member of an enumeration is found in 0.1 us, a name of a module in 0.03."""


class CheckOrder(StrEnum):
    """Whether time, permission, region and duplicates are checked before the signature or after it."""

    CHEAP_FIRST = "cheap checks first"
    SIGNATURE_FIRST = "signature first"


@dataclass(frozen=True, slots=True)
class AcceptanceWindow:
    """How far a generation time may be in the past and in the future, in us; both limits are accepted."""

    past_us: int
    future_us: int


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """A receiver's checks.

    The defaults for the past are those of the C2C-CC Basic System Profile (RS_BSP_168): 2 s for CAM, 10 minutes for
    others. 200 ms for the future leave room for clocks of computers without GNSS; that profile has 40 ms.
    """

    order: CheckOrder = CheckOrder.CHEAP_FIRST
    cam_window: AcceptanceWindow = AcceptanceWindow(2_000_000, 200_000)
    denm_window: AcceptanceWindow = AcceptanceWindow(600_000_000, 200_000)
    other_window: AcceptanceWindow = AcceptanceWindow(600_000_000, 200_000)
    duplicate_window: int = 32_768
    """Number of accepted packets that are remembered; at least those that an acceptance window can hold."""
    decode_content: bool = True
    """Whether an accepted CAM or DENM is decoded, and its position and content checked against region and SSP."""

    def window(self, psid: int) -> AcceptanceWindow:
        """Return the acceptance window of an ITS-AID."""
        if psid == CAM_PSID:
            return self.cam_window
        return self.denm_window if psid == DENM_PSID else self.other_window


class Outcome:
    """The result of one packet's checks; what belongs to checks that did not run is None or empty.

    Each packet creates one: its attributes have their defaults in the class, so that only those that differ cost time.
    """

    detail: str = ""
    signature_valid: bool | None = None
    """None where no signature was verified: an earlier check failed, or the signer's key is unknown."""
    signer: Certificate | None = None
    chain: tuple[Certificate, ...] = ()
    """From the signer's certificate to the root; empty where the chain is incomplete or invalid."""
    read_header: Header | None = None
    """The header, unless it has nothing but PSID and generation time."""
    profile_faults: tuple[str, ...] = ()
    further: tuple[Reason, ...] = ()
    """Further faults, where the signature is checked first."""
    missing: bytes | None = None
    """HashedId8 of the certificate to be requested from peers."""
    new_signer: bool = False
    """Whether the signer's certificate was not stored before this packet."""
    message: Cam | Denm | None = None

    def __init__(
        self,
        reason: Reason,
        psid: int | None = None,
        generation_time: int | None = None,
        payload: bytes | None = None,
    ) -> None:
        self.reason = reason
        self.psid = psid
        self.generation_time = generation_time
        self.payload = payload

    @property
    def accepted(self) -> bool:
        """Return whether all checks were passed."""
        return self.reason is ACCEPTED

    @property
    def header(self) -> Header | None:
        """The header; None where the packet could not be read."""
        if self.read_header is None and self.psid is not None:
            return Header(self.psid, self.generation_time)
        return self.read_header

    @property
    def for_distribution(self) -> bool:
        """Whether the packet concerns the distribution of certificates: it asks, answers, or has a new signer."""
        more = self.read_header is not None and not self.read_header.plain
        return more or self.new_signer or self.missing is not None


_ToVerify = tuple[KnownCertificate, bytes, tuple[Reason, ...]]
"""The signer, the digest of its signature, and the faults so far, where the signature is checked first."""


def decode_message(psid: int, payload: bytes) -> Cam | Denm | None:
    """Return the CAM or DENM in the payload of signed data; None for other ITS-AIDs.

    Raises:
        GeoNetworkingError, BtpError, MessageError: the headers or the message are malformed.
    """
    if psid not in (CAM_PSID, DENM_PSID):
        return None
    octets = parse_btp(*carried_payload(payload)).payload
    return cam.decode(octets) if psid == CAM_PSID else denm.decode(octets)


def its_now() -> int:
    """Return the current ITS time in us."""
    return its_us(time.time_ns())


class Verifier:
    """A station's receiving side: verifies signed data and learns certificates on the way."""

    def __init__(
        self,
        trust: TrustStore,
        settings: CheckSettings | None = None,
        clock: Callable[[], int] = its_now,
    ) -> None:
        self.trust = trust
        self.settings = settings or CheckSettings()
        self._clock = clock
        self._seen: dict[bytes, object] = {}
        self._seen_in_order: deque[bytes] = deque()
        # Read once: each packet needs them.
        self._cheap_first = self.settings.order is CheckOrder.CHEAP_FIRST
        self._decode_content = self.settings.decode_content
        self._duplicate_window = self.settings.duplicate_window
        self._windows = {psid: self.settings.window(psid) for psid in (CAM_PSID, DENM_PSID)}
        self._other_window = self.settings.other_window
        self._plain_windows = {CAM_PSID: (self.settings.cam_window.past_us, -self.settings.cam_window.future_us)}

    def verify(self, octets: bytes, now_us: int | None = None, origin: object = None) -> Outcome:
        """Return the outcome of one packet's signed data; never raises, whatever the octets. Any thread may call it.

        `now_us`: ITS time of reception in us, the clock's time by default. A packet that misses a certificate waits in
        the trust store, with its `origin`: call `released` after each packet, and verify the packets that it
        returns again.
        """
        now = self._clock() if now_us is None else now_us
        plain = plain_parts(octets)
        if plain is None or (outcome := self._verified_plain(plain, now)) is None:
            outcome = self._verified(octets, now, origin)
        if self._decode_content and outcome.reason is ACCEPTED:
            self.check_content(outcome)
        return outcome

    def _verified(self, octets: bytes, now: int, origin: object) -> Outcome:
        """The outcome of any packet."""
        try:
            data = scan_signed_data(octets)
        except MalformedDataError as error:
            unsecured = octets[:2] == UNSECURED_DATA
            outcome = Outcome(Reason.UNSECURED if unsecured else _scan_reason(error, octets[:1]))
            outcome.detail = str(error)
            return outcome
        outcome = Outcome(ACCEPTED, data.header.psid, data.header.generation_time, data.payload)
        outcome.read_header = data.header
        with self.trust.turn:
            signed = self._before_signature(data, outcome, now)
            if isinstance(signed, Reason):
                outcome.reason = signed
                if outcome.missing is not None:
                    self.trust.wait_for(outcome.missing, octets, origin)
                return outcome
        known, digest, faults = signed
        fits = data.signature.curve is known.curve and data.hash_name == known.curve.hash_name
        outcome.signature_valid = fits and known.verify(*integers(data.signature), digest)
        if not outcome.signature_valid:
            outcome.reason = SIGNATURE_INVALID
            return outcome
        if known.chain and not faults:
            outcome.chain = known.chain
            self._note_accepted(digest, outcome)
        else:
            with self.trust.turn:
                self._after_signature(known, digest, faults, outcome)
                if outcome.missing is not None:
                    self.trust.wait_for(outcome.missing, octets, origin)
        return outcome

    def _verified_plain(self, plain: PlainParts, now: int) -> Outcome | None:
        """The outcome of a plain packet of a known signer with nothing against it but, at most, its signature.

        This is the way of nearly all packets, without the parts that only the others need. None leaves a packet to the
        general way, which finds out what is against it.
        """
        payload, psid, generated, signer, r, s, tbs = plain
        known, window = self.trust.ticket(signer), self._plain_windows.get(psid)
        if known is None or window is None or r >= _P256_ORDER:
            return None
        psids, start_us, end_us, _ = known.limits
        past_us, future_us = window
        in_time = start_us <= generated < end_us and future_us <= now - generated <= past_us
        if not in_time or psid not in psids or known.curve is not _P256:
            return None
        digest = sha256(sha256(tbs).digest() + known.canonical_hash).digest()
        if digest in self._seen:
            return None
        valid = known.verify(r, s, digest)
        outcome = Outcome(ACCEPTED if valid else SIGNATURE_INVALID, psid, generated, payload)
        outcome.signature_valid, outcome.signer, outcome.chain = valid, known.certificate, known.chain
        if valid:
            self._note_accepted(digest, outcome)
        return outcome

    def released(self) -> list[WaitingPacket]:
        """The packets that waited for a certificate which is now known: verify them again."""
        if not self.trust.has_waiting:
            return []
        with self.trust.turn:
            return self.trust.released()

    def check_content(self, outcome: Outcome) -> None:
        """Decode the message of an accepted packet, and check a CAM's position and the SSP against its content.

        `verify` does so itself if `decode_content` is set.
        """
        psid, certificate = outcome.psid, outcome.signer
        assert psid is not None and certificate is not None and outcome.payload is not None
        try:
            outcome.message = message = decode_message(psid, outcome.payload)
        except (GeoNetworkingError, BtpError, MessageError) as error:
            outcome.reason, outcome.detail = Reason.CONTENT_MALFORMED, str(error)
            return
        if message is None:
            return
        region, place = effective_region(outcome.chain), (message.position.latitude, message.position.longitude)
        if isinstance(message, Cam) and region is not None and contains(region, place) is False:
            outcome.reason = Reason.OUTSIDE_REGION
            return
        permission = next(p for p in certificate.permissions if p.psid == psid)
        if missing := ssp_faults(permission, message):
            outcome.reason, outcome.detail = Reason.PERMISSION_MISSING, ", ".join(missing)

    def _before_signature(self, data: SignedData, outcome: Outcome, now: int) -> _ToVerify | Reason:
        """Run the checks before the signature, and find the signer; return the first reason to reject the packet."""
        cheap_first = self._cheap_first
        faults = self._message_faults(data, outcome, now)
        if faults and cheap_first:
            return faults[0]
        if data.header.requested_certificate is not None:
            self._learn_authority(data.header.requested_certificate)
        if data.digest is not None:
            known = self.trust.find(data.digest)
        else:
            known = self.trust.find_octets(data.certificates[0]) if data.certificates else None
        if known is not None:
            certificate, limits = known.certificate, known.limits
        elif data.certificates:
            try:
                certificate = scan_certificate(data.certificates[0])
            except MalformedDataError as error:
                outcome.detail = str(error)
                return _scan_reason(error, data.certificates[0][1:2])
            limits = self.trust.limits_of(certificate)
        else:
            outcome.further = faults
            if data.digest is not None and self.trust.is_distrusted(data.digest):
                return Reason.REVOKED
            outcome.missing = data.digest
            return Reason.UNKNOWN_SIGNER if data.digest else Reason.PROFILE_BROKEN
        outcome.signer = certificate
        faults = (*faults, *_ticket_faults(limits, data.header))
        if faults and cheap_first:
            return faults[0]
        if known is None:
            outcome.new_signer = self.trust.find(certificate.hashed_id8) is None
            loaded = self.trust.load(certificate)
            if isinstance(loaded, ChainFault):
                outcome.detail = str(loaded)
                return _chain_reason(loaded)
            known = loaded
        sha = _HASHES[data.hash_name]
        digest = sha(sha(data.tbs).digest() + known.canonical_hash).digest()
        if cheap_first and digest in self._seen:
            return Reason.DUPLICATE
        return known, digest, faults

    def _after_signature(
        self, known: KnownCertificate, digest: bytes, faults: tuple[Reason, ...], outcome: Outcome
    ) -> None:
        """Validate the signer's chain, once its signature is known to be valid, and give the outcome its reason."""
        outcome.further = faults
        if not known.chain:
            admitted = self.trust.admit(known)
            if isinstance(admitted, ChainFault):
                outcome.detail = str(admitted)
                outcome.reason = _chain_reason(admitted)
                return
            known = admitted
            if not known.chain:
                outcome.missing = known.certificate.issuer
                outcome.reason = Reason.UNKNOWN_ISSUER
                return
        outcome.chain = known.chain
        if digest in self._seen:
            faults = (*faults, Reason.DUPLICATE)
        if faults:
            outcome.further = faults[1:]
            outcome.reason = faults[0]
            return
        self._note_accepted(digest, outcome)

    def _note_accepted(self, digest: bytes, outcome: Outcome) -> None:
        """Remember an accepted packet, unless another thread has accepted the same one meanwhile."""
        mark = object()
        if self._seen.setdefault(digest, mark) is not mark:
            outcome.reason = Reason.DUPLICATE
            return
        self._seen_in_order.append(digest)
        if len(self._seen_in_order) > self._duplicate_window:
            del self._seen[self._seen_in_order.popleft()]

    def _message_faults(self, data: SignedData, outcome: Outcome, now: int) -> tuple[Reason, ...]:
        """The faults that do not depend on the signer: profile and time."""
        header = data.header
        faults: tuple[Reason, ...] = ()
        if profile := profile_faults(data):
            outcome.profile_faults, faults = profile, (Reason.PROFILE_BROKEN,)
        generated = header.generation_time
        if generated is not None:
            window = self._windows.get(header.psid, self._other_window)
            if not -window.future_us <= now - generated <= window.past_us:
                faults = (*faults, Reason.TOO_OLD if generated < now else Reason.IN_FUTURE)
        if header.plain:
            return faults
        if header.expiry_time is not None and now >= header.expiry_time:
            faults = (*faults, Reason.MESSAGE_EXPIRED)
        return faults

    def _learn_authority(self, octets: bytes) -> None:
        """Store the certificate of a requestedCertificate field, if it is an authority's under a known issuer."""
        if self.trust.find_octets(octets) is None:
            try:
                certificate = scan_certificate(octets)
            except MalformedDataError:
                return
            if certificate.issue_permissions and certificate.issuer and self.trust.issuer(certificate.issuer):
                self.trust.add(certificate)


def _chain_reason(fault: ChainFault) -> Reason:
    return Reason.REVOKED if fault.reason is ChainReason.REVOKED else Reason.CHAIN_INVALID


def _scan_reason(error: MalformedDataError, version: bytes) -> Reason:
    """Return the reason for data or a certificate that cannot be read; `version` is empty where that is missing."""
    if version and version != b"\3":
        return Reason.UNSUPPORTED_VERSION
    return Reason.UNSUPPORTED_CURVE if isinstance(error, UnsupportedError) else Reason.MALFORMED


def _ticket_faults(limits: Limits, header: Header) -> tuple[Reason, ...]:
    """The limits of the signer's certificate that are exceeded: ITS-AID, validity, region."""
    faults: tuple[Reason, ...] = () if header.psid in limits.psids else (Reason.UNKNOWN_ITS_AID,)
    generated = header.generation_time
    if generated is not None and not limits.start_us <= generated < limits.end_us:
        faults = (*faults, Reason.NOT_YET_VALID if generated < limits.start_us else Reason.EXPIRED)
    if (
        header.location is not None
        and limits.region is not None
        and contains(limits.region, header.location[:2]) is False
    ):
        faults = (*faults, Reason.OUTSIDE_REGION)
    return faults
