"""The receiver's path: from the octets of signed data to an outcome with one reason, its signer's chain and payload.

IEEE 1609.2, 5.2.3 and 5.2.4 (validity and relevance of signed data); TS 103 097, clauses 5 to 7.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from labconsole_v2x.messages import cam, denm
from labconsole_v2x.messages.asn1_modules import MessageError
from labconsole_v2x.messages.btp import BtpError, parse_btp
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.denm import Denm
from labconsole_v2x.messages.geonetworking import GeoNetworkingError, parse_unsecured
from labconsole_v2x.messages.its_time import its_us
from labconsole_v2x.security.chain import ChainFault
from labconsole_v2x.security.profiles import profile_faults, ssp_faults
from labconsole_v2x.security.reading import MalformedDataError, UnsupportedError
from labconsole_v2x.security.regions import contains, distance_m
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.structures import CAM_PSID, DENM_PSID, Certificate, Header, Region, SignedData
from labconsole_v2x.security.trust import TrustStore

_HASHES = {"sha256": hashlib.sha256, "sha384": hashlib.sha384}


class Reason(StrEnum):
    """The verdict on a packet: accepted, or the reason for its rejection."""

    ACCEPTED = "accepted"
    MALFORMED = "malformed"
    UNSUPPORTED_VERSION = "unsupported version"
    UNSUPPORTED_CURVE = "unsupported curve or algorithm"
    PROFILE_BROKEN = "profile broken"
    TOO_OLD = "generation time too old"
    IN_FUTURE = "generation time in the future"
    MESSAGE_EXPIRED = "message expired"
    NOT_RELEVANT = "generation location too far away"
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
    position: tuple[int, int] | None = None
    """The receiver's latitude and longitude in 0.1 microdegree."""
    relevance_m: float | None = None
    """Messages generated farther away from `position` are rejected, where they have a generation location."""

    decode_content: bool = True
    """Whether an accepted CAM or DENM is decoded, and its position and content checked against region and SSP."""

    def window(self, psid: int) -> AcceptanceWindow:
        """Return the acceptance window of an ITS-AID."""
        if psid == CAM_PSID:
            return self.cam_window
        return self.denm_window if psid == DENM_PSID else self.other_window


@dataclass(slots=True)
class Outcome:
    """The result of one packet's checks; fields of checks that did not run are None or empty."""

    reason: Reason
    detail: str = ""
    signature_valid: bool | None = None
    """None where no signature was verified: an earlier check failed, or the signer's key is unknown."""
    signer: Certificate | None = None
    chain: tuple[Certificate, ...] = ()
    """From the signer's certificate to the root; empty where the chain is incomplete or invalid."""
    header: Header | None = None
    payload: bytes | None = None
    profile_faults: tuple[str, ...] = ()
    further: tuple[Reason, ...] = ()
    """Further faults, where the signature is checked first."""
    missing: bytes | None = None
    """HashedId8 of the certificate to be requested from peers."""
    new_signer: bool = False
    """Whether the signer's certificate was not stored before this packet."""
    message: Cam | Denm | None = None

    @property
    def accepted(self) -> bool:
        """Return whether all checks were passed."""
        return self.reason is Reason.ACCEPTED


def decode_message(psid: int, payload: bytes) -> Cam | Denm | None:
    """Return the CAM or DENM in the payload of signed data; None for other ITS-AIDs.

    Raises:
        GeoNetworkingError, BtpError, MessageError: the headers or the message are malformed.
    """
    if psid not in (CAM_PSID, DENM_PSID):
        return None
    packet = parse_unsecured(payload)
    octets = parse_btp(packet.next_header, packet.payload).payload
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
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def verify(self, octets: bytes, now_us: int | None = None) -> Outcome:
        """Return the outcome of one packet's signed data; never raises, whatever the octets.

        `now_us`: ITS time of reception in us, the clock's time by default. A packet that misses a certificate waits in
        the trust store: call `trust.released()` after each packet, and verify the packets that it returns again.
        """
        now = self._clock() if now_us is None else now_us
        try:
            data = scan_signed_data(octets)
        except MalformedDataError as error:
            return Outcome(_scan_reason(error, octets[:1]), str(error))
        outcome = Outcome(Reason.ACCEPTED, header=data.header, payload=data.payload)
        if data.header.requested_certificate is not None:
            self._learn_authority(data.header.requested_certificate)
        outcome.reason = self._first_fault(octets, data, outcome, now) or Reason.ACCEPTED
        return outcome

    def _first_fault(self, octets: bytes, data: SignedData, outcome: Outcome, now: int) -> Reason | None:
        """Run the checks in the order set, fill in the outcome, and return the first reason to reject the packet."""
        cheap_first = self.settings.order is CheckOrder.CHEAP_FIRST
        if cheap_first and (reason := next(self._message_faults(data, outcome, now), None)):
            return reason
        if data.digest is not None:
            known = self.trust.find(data.digest)
        else:
            known = self.trust.find_octets(data.certificates[0]) if data.certificates else None
        if known is not None:
            certificate = known.certificate
        elif data.certificates:
            try:
                certificate = scan_certificate(data.certificates[0])
            except MalformedDataError as error:
                outcome.detail = str(error)
                return _scan_reason(error, data.certificates[0][1:2])
        else:
            outcome.further = () if cheap_first else tuple(self._message_faults(data, outcome, now))
            if data.digest is None:
                return Reason.PROFILE_BROKEN
            outcome.missing = data.digest
            self.trust.wait_for(data.digest, octets)
            return Reason.UNKNOWN_SIGNER
        outcome.signer = certificate
        region = self.trust.region_of(certificate) if known is None else known.region
        if cheap_first and (reason := next(_ticket_faults(certificate, region, data.header), None)):
            return reason
        if known is None:
            outcome.new_signer = self.trust.find(certificate.hashed_id8) is None
            loaded = self.trust.load(certificate)
            if isinstance(loaded, ChainFault):
                outcome.detail = str(loaded)
                return Reason.CHAIN_INVALID
            known = loaded
        curve = certificate.verification_key.curve
        sha = _HASHES[curve.hash_name]
        digest = sha(sha(data.tbs).digest() + known.canonical_hash).digest()
        if cheap_first and digest in self._seen:
            return Reason.DUPLICATE
        signature = data.signature
        fits = signature.curve is curve and data.hash_name == curve.hash_name
        outcome.signature_valid = fits and known.verify(signature, digest)
        if not outcome.signature_valid:
            return Reason.SIGNATURE_INVALID
        further = (
            []
            if cheap_first
            else [
                *self._message_faults(data, outcome, now),
                *_ticket_faults(certificate, region, data.header),
                *([Reason.DUPLICATE] if digest in self._seen else []),
            ]
        )
        if not known.chain:
            admitted = self.trust.admit(known)
            outcome.further = tuple(further)
            if isinstance(admitted, ChainFault):
                outcome.detail = str(admitted)
                return Reason.CHAIN_INVALID
            known = admitted
            if not known.chain and certificate.issuer is not None:
                outcome.missing = certificate.issuer
                self.trust.wait_for(certificate.issuer, octets)
                return Reason.UNKNOWN_ISSUER
        outcome.chain = known.chain
        if further:
            outcome.further = tuple(further[1:])
            return further[0]
        self._seen[digest] = None
        if len(self._seen) > self.settings.duplicate_window:
            self._seen.popitem(last=False)
        return self._content_fault(certificate, known.region, data, outcome) if self.settings.decode_content else None

    def _message_faults(self, data: SignedData, outcome: Outcome, now: int) -> Iterator[Reason]:
        """Yield the faults that do not depend on the signer: profile, time and relevance."""
        header, settings = data.header, self.settings
        outcome.profile_faults = profile_faults(data)
        if outcome.profile_faults:
            yield Reason.PROFILE_BROKEN
        if header.generation_time is not None:
            age, window = now - header.generation_time, settings.window(header.psid)
            if age > window.past_us:
                yield Reason.TOO_OLD
            if -age > window.future_us:
                yield Reason.IN_FUTURE
        if header.expiry_time is not None and now >= header.expiry_time:
            yield Reason.MESSAGE_EXPIRED
        centre, reach, place = settings.position, settings.relevance_m, header.location
        if centre and reach is not None and place and distance_m(place[:2], centre) > reach:
            yield Reason.NOT_RELEVANT

    def _learn_authority(self, octets: bytes) -> None:
        """Store the certificate of a requestedCertificate field, if it is an authority's under a known issuer."""
        if self.trust.find_octets(octets) is None:
            try:
                certificate = scan_certificate(octets)
            except MalformedDataError:
                return
            if certificate.issue_permissions and certificate.issuer and self.trust.issuer(certificate.issuer):
                self.trust.add(certificate)

    def _content_fault(
        self, certificate: Certificate, region: Region | None, data: SignedData, outcome: Outcome
    ) -> Reason | None:
        """Decode the message, and check a CAM's position and the SSP against its content."""
        assert data.payload is not None
        try:
            outcome.message = message = decode_message(data.header.psid, data.payload)
        except (GeoNetworkingError, BtpError, MessageError) as error:
            outcome.detail = str(error)
            return Reason.CONTENT_MALFORMED
        if message is None:
            return None
        place = (message.position.latitude, message.position.longitude)
        if isinstance(message, Cam) and region is not None and contains(region, place) is False:
            return Reason.OUTSIDE_REGION
        permission = next(p for p in certificate.permissions if p.psid == data.header.psid)
        outcome.detail = ", ".join(ssp_faults(permission, message))
        return Reason.PERMISSION_MISSING if outcome.detail else None


def _scan_reason(error: MalformedDataError, version: bytes) -> Reason:
    """Return the reason for data or a certificate that cannot be read; `version` is empty where that is missing."""
    if version and version != b"\3":
        return Reason.UNSUPPORTED_VERSION
    return Reason.UNSUPPORTED_CURVE if isinstance(error, UnsupportedError) else Reason.MALFORMED


def _ticket_faults(certificate: Certificate, region: Region | None, header: Header) -> Iterator[Reason]:
    """Yield the limits of the signer's certificate that are exceeded: ITS-AID, validity, region."""
    for permission in certificate.permissions:
        if permission.psid == header.psid:
            break
    else:
        yield Reason.UNKNOWN_ITS_AID
    if header.generation_time is not None:
        validity = certificate.validity
        if header.generation_time < validity.start_s * 1_000_000:
            yield Reason.NOT_YET_VALID
        if header.generation_time >= validity.end_s * 1_000_000:
            yield Reason.EXPIRED
    if header.location is not None and region is not None and contains(region, header.location[:2]) is False:
        yield Reason.OUTSIDE_REGION
