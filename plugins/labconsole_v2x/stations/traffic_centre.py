"""Traffic information for a centre: CAMs that a station signs and encrypts to it, and the centre's confirmations.

A report is EtsiTs103097Data-SignedAndEncrypted (TS 103 097, 5.4): a signed CAM in BTP-B and GeoNetworking, as on the
radio, encrypted to the centre's ticket (certRecipInfo). The confirmation is signed by the centre and encrypted under
the AES key of the report (pskRecipInfo), as TS 102 941 has it for responses. Both may be sent over HTTP, or on the
radio as the secured packet of GeoNetworking (`secured_frame`).
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock
from typing import NamedTuple

from labconsole.clock import now_ns
from labconsole_v2x.messages.btp import BtpError, encode_btp_b, parse_btp
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.geonetworking import (
    Address,
    GeoNetworkingError,
    PositionVector,
    carried_payload,
    encode_basic_header,
    encode_shb,
    secured_octets,
)
from labconsole_v2x.messages.its_time import gn_timestamp
from labconsole_v2x.security.encryption import (
    KEY_SIZE,
    DecryptionError,
    DecryptionKey,
    decrypt_with_shared_key,
    encrypt_to_certificate,
    encrypt_with_shared_key,
    open_with_certificate,
    scan_encrypted_data,
)
from labconsole_v2x.security.keys import SigningKey
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import CAM_PSID, PRIVATE_PSID, Certificate, Header
from labconsole_v2x.security.verification import Reason, Verifier, its_now
from labconsole_v2x.stations.capture import ETHERNET_HEADER, ethernet_frame
from labconsole_v2x.stations.routes import Movement
from labconsole_v2x.stations.sending import ROADSIDE_UNIT, CamSender, Identity, SentCam

MOST_KEPT = 10_000
"""Reports that a centre keeps by default: the newest."""
CONFIRMATION_PORT = 49_152
"""Port of BTP-B of confirmations: one of those that no registry assigns."""
_HASH_SIZE = 16
_LIFETIME_MS = 1000


class SentReport(NamedTuple):
    """A report, and what its sender needs to read the confirmation."""

    octets: bytes
    """Signed and encrypted data, as it is sent over HTTP."""
    sent: SentCam
    """The frame with the same octets, for the radio, and what is recorded of it."""
    aes_key: bytes
    report_hash: bytes
    """The first 16 octets of the SHA-256 of the signed data."""


class TrafficSender(CamSender):
    """Creates traffic information for one centre under one ticket; none of its CAMs is sent in clear."""

    def __init__(
        self,
        identity: Identity,
        ticket: Certificate,
        key: SigningKey,
        centre: Certificate,
        clock: Callable[[], int] = its_now,
    ) -> None:
        """`centre` is the centre's ticket, which has an encryption key."""
        super().__init__(identity, ticket=ticket, key=key, clock=clock)
        self._centre = centre

    def create(self, movement: Movement, channel_ratio: float = 0.0) -> SentCam:
        """The frame of a report of this moment."""
        return self.report(movement).sent

    def report(self, movement: Movement) -> SentReport:
        """A report of this moment. Raises `EncodingError`: the centre's ticket has no encryption key."""
        sent = super().create(movement)
        signed = secured_octets(sent.frame[ETHERNET_HEADER:]) or b""
        aes_key, began_ns = os.urandom(KEY_SIZE), now_ns()
        octets = encrypt_to_certificate(signed, self._centre, aes_key)
        encrypted = sent._replace(
            frame=secured_frame(octets, self.identity.mac), sign_ns=sent.sign_ns + now_ns() - began_ns
        )
        return SentReport(octets, encrypted, aes_key, _report_hash(signed))

    def _header(self, movement: Movement, its_us: int, channel_ratio: float) -> tuple[Header, bool]:
        """The whole ticket is the signer: a centre does not hear the CAMs in which others learn it."""
        return Header(CAM_PSID, its_us), True


def secured_frame(octets: bytes, source: bytes) -> bytes:
    """Secured data as a GeoNetworking packet to all stations in reach, in an Ethernet frame."""
    return ethernet_frame(encode_basic_header(_LIFETIME_MS, 1, secured=True) + octets, source)


def _report_hash(signed: bytes) -> bytes:
    return hashlib.sha256(signed).digest()[:_HASH_SIZE]


class ReportRefusal(StrEnum):
    """Why a centre refuses a report before, or after, its signature was verified."""

    NOT_ENCRYPTED = "not encrypted data"
    OTHER_RECIPIENT = "encrypted to another recipient"
    NOT_DECRYPTED = "cannot be decrypted"
    OTHER_MESSAGE = "not a CAM"


class ReportDecision(NamedTuple):
    """The decision on a report: `Reason.ACCEPTED` or why it is refused, and the confirmation of either.

    What cannot be decrypted has no confirmation: its key is unknown, and each such report looks the same.
    """

    verdict: Reason | ReportRefusal
    confirmation: bytes | None


class TrafficInformation(NamedTuple):
    """An accepted report: HashedId8 of the sender's ticket, generation time in us (ITS time), and the CAM."""

    sender: bytes
    generated_us: int
    message: Cam


@dataclass(frozen=True)
class CentreIdentity:
    """A centre's ticket with an encryption key, and its two keys."""

    ticket: Certificate
    key: SigningKey
    encryption_key: DecryptionKey


class TrafficCentre:
    """An ITS-S centre: decrypts reports, verifies them, keeps the newest and confirms each. Any thread may call it."""

    def __init__(
        self,
        identity: CentreIdentity,
        verifier: Verifier,
        *,
        most_kept: int = MOST_KEPT,
        clock: Callable[[], int] = its_now,
    ) -> None:
        """`verifier` decodes contents, as it does by default; `clock` returns ITS time in us."""
        self.identity = identity
        self.reports: deque[TrafficInformation] = deque(maxlen=most_kept)
        self.verdicts: Counter[str] = Counter()
        """The number of reports by verdict."""
        self._verifier = verifier
        self._clock = clock
        self._signer = PacketSigner(identity.ticket, identity.key)
        self._mac = Identity.of(identity.ticket.hashed_id8).mac
        self._lock = Lock()

    def receive(self, octets: bytes) -> ReportDecision:
        """The decision on a report; never raises, whatever the octets."""
        decision = self._decide(octets)
        with self._lock:
            self.verdicts[decision.verdict.value] += 1
        return decision

    def confirmation_frame(self, confirmation: bytes) -> bytes:
        """A confirmation in a frame, for the radio."""
        return secured_frame(confirmation, self._mac)

    def _decide(self, octets: bytes) -> ReportDecision:
        ticket, key = self.identity.ticket, self.identity.encryption_key
        try:
            data = scan_encrypted_data(octets)
            if all(recipient.hashed_id8 != ticket.hashed_id8 for recipient in data.recipients):
                return ReportDecision(ReportRefusal.OTHER_RECIPIENT, None)
            signed, aes_key = open_with_certificate(octets, ticket, key)
        except MalformedDataError:
            return ReportDecision(ReportRefusal.NOT_ENCRYPTED, None)
        except DecryptionError:
            return ReportDecision(ReportRefusal.NOT_DECRYPTED, None)
        verdict = self._verified(signed)
        return ReportDecision(verdict, self._confirmation(_report_hash(signed), verdict, aes_key))

    def _verified(self, signed: bytes) -> Reason | ReportRefusal:
        outcome = self._verifier.verify(signed)
        if outcome.reason is not Reason.ACCEPTED:
            return outcome.reason
        if not isinstance(outcome.message, Cam) or outcome.signer is None or outcome.generation_time is None:
            return ReportRefusal.OTHER_MESSAGE
        self.reports.append(TrafficInformation(outcome.signer.hashed_id8, outcome.generation_time, outcome.message))
        return outcome.reason

    def _confirmation(self, report_hash: bytes, verdict: Reason | ReportRefusal, aes_key: bytes) -> bytes:
        now_us = self._clock()
        vector = PositionVector(Address(self._mac, ROADSIDE_UNIT), gn_timestamp(now_us), 0, 0)
        message = encode_btp_b(CONFIRMATION_PORT, report_hash + verdict.value.encode())
        payload = encode_shb(vector, message, mobile=False)
        signed = self._signer.sign(payload, Header(PRIVATE_PSID, now_us), include_certificate=True)
        return encrypt_with_shared_key(signed, aes_key)


class BadConfirmationError(Exception):
    """Octets that are not the centre's confirmation of a report; the text is the reason."""


def read_confirmation(octets: bytes, report: SentReport, centre: Certificate, verifier: Verifier) -> str:
    """The centre's verdict on a report, as text. Raises `BadConfirmationError`.

    `verifier` is that of the station: it trusts the root and knows the AA of the centre's ticket.
    """
    try:
        signed = decrypt_with_shared_key(octets, report.aes_key)
    except (MalformedDataError, DecryptionError) as error:
        raise BadConfirmationError("it is not encrypted under the key of the report") from error
    outcome = verifier.verify(signed)
    if not outcome.accepted:
        raise BadConfirmationError(f"it is not accepted: {outcome.reason}")
    if outcome.psid != PRIVATE_PSID or outcome.signer is None or outcome.signer.hashed_id8 != centre.hashed_id8:
        raise BadConfirmationError("it is not signed by the centre")
    try:
        packet = parse_btp(*carried_payload(outcome.payload or b""))
    except (GeoNetworkingError, BtpError) as error:
        raise BadConfirmationError(f"it is malformed: {error}") from error
    report_hash, verdict = packet.payload[:_HASH_SIZE], packet.payload[_HASH_SIZE:]
    if packet.destination_port != CONFIRMATION_PORT or report_hash != report.report_hash:
        raise BadConfirmationError("it confirms another report")
    return verdict.decode(errors="replace")
