"""Units with one fault each, which a use case has to find: receivers, senders, pools, roadside parts and keys."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

from labconsole_v2x.messages import cam
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.geonetworking import secured_octets
from labconsole_v2x.security.chain import DigestVerifier
from labconsole_v2x.security.encryption import DecryptionError, decrypt_with_shared_key
from labconsole_v2x.security.keys import SoftwareKey, compressed_point
from labconsole_v2x.security.scanning import scan_certificate
from labconsole_v2x.security.structures import Certificate, Curve, Header, Point, PointForm, PublicKey, Validity
from labconsole_v2x.security.trust import software_verifier
from labconsole_v2x.security.verification import Reason
from labconsole_v2x.stations.capture import ETHERNET_HEADER
from labconsole_v2x.stations.identity_change import ChangeSchedule
from labconsole_v2x.stations.pseudonyms import Need, Permitted, Pseudonym, PseudonymPool
from labconsole_v2x.stations.receiving import IMPLAUSIBLE, QUEUE_FULL, REASONS, Checked, PacketCheck, ReceivedFrame
from labconsole_v2x.stations.refill import RsuRelay
from labconsole_v2x.stations.routes import Movement
from labconsole_v2x.stations.sending import ALL_LAYERS, CamSender, Identity, Layer
from labconsole_v2x.stations.traffic_centre import SentReport, TrafficCentre, TrafficSender
from labconsole_v2x.stations.vehicle_bus import FrameVerdict, VehicleData, VehicleFrame
from labconsole_v2x.use_cases.evidence_figures import signed_data

# Receivers

Decide = Callable[[str, ReceivedFrame], str]
"""The verdict of a broken receiver, from the right one and the packet."""


@dataclass
class _Receiver:
    inner: PacketCheck
    decide: Decide

    def check(self, frame: ReceivedFrame) -> Checked:
        checked = self.inner.check(frame)
        return checked._replace(reason=REASONS.index(self.decide(REASONS[checked.reason], frame)))

    def released(self) -> Sequence[ReceivedFrame]:
        return self.inner.released()


def deciding(decide: Decide) -> Callable[[PacketCheck], PacketCheck]:
    """A receiver that decides otherwise."""
    return lambda inner: _Receiver(inner, decide)


def ignoring(*reasons: str) -> Callable[[PacketCheck], PacketCheck]:
    """A receiver without the checks that give these verdicts."""
    return deciding(lambda verdict, _: Reason.ACCEPTED.value if verdict in reasons else verdict)


accepting_all = ignoring(*Reason)
rejecting_all = deciding(lambda verdict, _: Reason.SIGNATURE_INVALID.value)


def _without_uncompressed(verdict: str, frame: ReceivedFrame) -> str:
    data = signed_data(bytes(ETHERNET_HEADER) + frame.packet)
    tickets = [scan_certificate(octets) for octets in data.certificates] if data is not None else []
    forms = {ticket.verification_key.point.form for ticket in tickets}
    return Reason.MALFORMED.value if PointForm.UNCOMPRESSED in forms else verdict


reading_compressed_keys_alone = deciding(_without_uncompressed)


def alarming(inner: PacketCheck) -> PacketCheck:
    """A receiver that finds one CAM in a hundred implausible."""
    checked = 0

    def decide(verdict: str, frame: ReceivedFrame) -> str:
        nonlocal checked
        checked += 1
        return verdict if checked % 100 else IMPLAUSIBLE

    return _Receiver(inner, decide)


def slow(inner: PacketCheck) -> PacketCheck:
    """A receiver that needs 20 ms for a packet."""

    def decide(verdict: str, frame: ReceivedFrame) -> str:
        time.sleep(0.02)
        return verdict

    return _Receiver(inner, decide)


def overflowing(inner: PacketCheck) -> PacketCheck:
    """A receiver that has no room once it has got 100 invalid packets."""
    invalid = 0

    def decide(verdict: str, frame: ReceivedFrame) -> str:
        nonlocal invalid
        invalid += verdict != Reason.ACCEPTED.value
        return verdict if invalid < 100 else QUEUE_FULL

    return _Receiver(inner, decide)


# Senders


def with_another_key(kind: type[CamSender], identity: Identity, **settings: Any) -> CamSender:
    """Signs with a key that is not that of its ticket."""
    return kind(identity, **{**settings, "key": SoftwareKey.generate()})


def without_security(kind: type[CamSender], identity: Identity, **settings: Any) -> CamSender:
    """Leaves the security header out."""
    return kind(identity, clock=settings["clock"])


def with_header(change: Callable[[Header], Header], whole: bool | None = None) -> Callable[..., CamSender]:
    """Changes the header of each packet, and whether it has the whole ticket."""

    def create(kind: Any, identity: Identity, **settings: Any) -> CamSender:
        class Changed(kind):  # type: ignore[misc]
            def _header(self, *of_packet: Any) -> tuple[Header, bool]:
                header, certificate = super()._header(*of_packet)
                return change(header), certificate if whole is None else whole

        return Changed(identity, **settings)

    return create


with_digest_alone = with_header(lambda header: header, whole=False)
without_location = with_header(lambda header: replace(header, location=None))
without_requests = with_header(lambda header: replace(header, inline_p2pcd_request=()))
without_answers = with_header(lambda header: replace(header, requested_certificate=None))


def leaving(layer: Layer) -> Callable[..., CamSender]:
    """Leaves one layer as it was when the identity changes."""

    def create(kind: Any, identity: Identity, **settings: Any) -> CamSender:
        class Leaving(kind):  # type: ignore[misc]
            def change_identity(self, pseudonym: Pseudonym | None = None, layers: Any = ALL_LAYERS) -> None:
                super().change_identity(pseudonym, layers - {layer})

        return Leaving(identity, **settings)

    return create


def changing_all(kind: Any, identity: Identity, **settings: Any) -> CamSender:
    """Changes all layers, whichever are asked for."""

    class ChangingAll(kind):  # type: ignore[misc]
        def change_identity(self, pseudonym: Pseudonym | None = None, layers: Any = ALL_LAYERS) -> None:
            super().change_identity(pseudonym)

    return ChangingAll(identity, **settings)


def with_wrong_speed(kind: Callable[..., CamSender], identity: Identity, **settings: Any) -> CamSender:
    """Sends its speed in another unit: km/h."""
    sender = kind(identity, **settings)
    create = sender.create
    sender.create = lambda movement: create(movement._replace(speed=movement.speed * 3.6))  # type: ignore[method-assign]
    return sender


def keeping_distribution(kind: Any, identity: Identity, **settings: Any) -> CamSender:
    """Does not send its new ticket once its identity has changed."""

    class Keeping(kind):  # type: ignore[misc]
        def change_identity(self, *change: Any) -> None:
            distribution, self.distribution = self.distribution, None
            super().change_identity(*change)
            self.distribution = distribution

    return Keeping(identity, **settings)


# Pools and schedules


class PoolOfAnyPermission(PseudonymPool):
    """Says that the current ticket permits all."""

    def permitted(self, need: Need, now_s: int) -> Permitted:
        return Permitted.CURRENT


class PoolOfNoPermission(PseudonymPool):
    """Finds no ticket for special containers."""

    def permitted(self, need: Need, now_s: int) -> Permitted:
        return Permitted.NONE


class PoolNeverFull(PseudonymPool):
    """Requests one ticket less than are missing."""

    def refill(self, authorize: Callable[[int, Validity], Iterable[Pseudonym]], now_s: int) -> int:
        return super().refill(lambda count, validity: authorize(count - 1, validity), now_s)


class PoolOfOneIdentity(PseudonymPool):
    """Gives the ticket in use again."""

    def change(self, now_s: int, *need: Need) -> Pseudonym:
        return self.current or super().change(now_s, *need)


class UnlockedSchedule(ChangeSchedule):
    """Ignores locks."""

    def _is_locked(self, now_ns: int) -> bool:
        return False


class EndlessLock(ChangeSchedule):
    """Forgets changes that were requested during a lock."""

    def request(self, now_ns: int) -> bool:
        return not self.is_locked(now_ns) and super().request(now_ns)


class ScheduleWithoutStart(ChangeSchedule):
    """Does not change the identity at start-up."""

    def __init__(self, *, at_start: bool = False) -> None:
        super().__init__()


class DeafSchedule(ChangeSchedule):
    """Ignores requests."""

    def request(self, now_ns: int) -> bool:
        return True


class AlteringRelay(RsuRelay):
    """Changes a bit of each response."""

    def _answer(self, request: Any) -> Any:
        message = super()._answer(request)
        return message._replace(octets=message.octets[:-1] + bytes((message.octets[-1] ^ 1,)))


# Traffic information


class PlaintextSender(TrafficSender):
    """Signs its reports, and does not encrypt them."""

    def report(self, movement: Movement) -> SentReport:
        sent = CamSender.create(self, movement)
        signed = secured_octets(sent.frame[ETHERNET_HEADER:]) or b""
        return SentReport(signed, sent, os.urandom(16), sha256(signed).digest()[:16])


class PlaintextRadio(TrafficSender):
    """Encrypts its reports, and sends them in clear by radio."""

    def report(self, movement: Movement) -> SentReport:
        report = super().report(movement)
        return report._replace(sent=report.sent._replace(frame=CamSender.create(self, movement).frame))


class SenderOfAnotherKey(TrafficSender):
    """Signs its reports with a key that is not that of its ticket."""

    def __init__(self, identity: Identity, ticket: Certificate, key: Any, *others: Any) -> None:
        super().__init__(identity, ticket, SoftwareKey.generate(), *others)


class CentreOfAnySender(TrafficCentre):
    """Accepts reports without a look at their signatures."""

    def _verified(self, signed: bytes) -> Reason:
        return Reason.ACCEPTED


class CentreOfNoSender(TrafficCentre):
    """Accepts no report."""

    def _verified(self, signed: bytes) -> Reason:
        return Reason.UNKNOWN_SIGNER


class CentreOfAnotherKey(TrafficCentre):
    """Encrypts its confirmations under another key than that of the report."""

    def _confirmation(self, report_hash: bytes, verdict: Any, aes_key: bytes) -> bytes:
        return super()._confirmation(report_hash, verdict, os.urandom(16))


# The in-vehicle network


class DataWithoutMac(VehicleData):
    """Accepts each MAC."""

    def _judged(self, frame: VehicleFrame) -> FrameVerdict:
        return super()._judged(frame._replace(mac=self._key.mac(frame.data_id, frame.freshness, frame.payload)))


class DataWithoutFreshness(VehicleData):
    """Accepts frames that are sent again."""

    def _judged(self, frame: VehicleFrame) -> FrameVerdict:
        self._values.clear()
        return super()._judged(frame)


class DataThatStays(VehicleData):
    """Gives the first movement for ever."""

    _first: Movement | None = None

    def movement(self) -> Movement | None:
        self._first = self._first or super().movement()
        return self._first


class DataOfNoFrame(VehicleData):
    """Accepts no frame."""

    def _judged(self, frame: VehicleFrame) -> FrameVerdict:
        return FrameVerdict.MAC_INVALID


# Underlying functions


@dataclass(frozen=True)
class _UnpairedKey:
    """A key pair whose halves do not belong together."""

    public_key: PublicKey
    signing: SoftwareKey

    @property
    def curve(self) -> Curve:
        return self.public_key.curve

    def sign_digest(self, digest: bytes) -> bytes:
        return self.signing.sign_digest(digest)


def unpaired_key(backend: Any, curve: Curve, token: Any = None) -> _UnpairedKey:
    """Generates a key pair whose public key is that of another one."""
    return _UnpairedKey(SoftwareKey.generate(curve).public_key, SoftwareKey.generate(curve))


def _without_low_frequency(octets: bytes) -> Cam:
    return cam.decode(octets)._replace(low_frequency=None)


losing_codec = SimpleNamespace(encode=cam.encode, decode=_without_low_frequency)
"""A codec of CAMs that does not read the low frequency container."""


def loading_any_point(backend: Any, token: Any = None) -> Callable[[PublicKey], DigestVerifier]:
    """Loads public keys without a check of their points."""

    def load(key: PublicKey) -> DigestVerifier:
        try:
            return software_verifier(key)
        except ValueError:
            return lambda r, s, digest: False

    return load


def accepting_any_signature(backend: Any, token: Any = None) -> Callable[[PublicKey], DigestVerifier]:
    """Loads public keys that accept each signature."""
    return lambda key: lambda r, s, digest: True


def mirrored_point(key: Any) -> Point:
    """The point with the other y."""
    point, forms = compressed_point(key), (PointForm.COMPRESSED_Y0, PointForm.COMPRESSED_Y1)
    return Point(forms[point.form is forms[0]], point.x)


def not_encrypting(plaintext: bytes, aes_key: bytes) -> bytes:
    """Leaves the plaintext as it is, in octets of the right length."""
    return bytes(28) + plaintext


def without_tag(octets: bytes, aes_key: bytes) -> bytes:
    """Gives octets also where the tag is wrong."""
    try:
        return decrypt_with_shared_key(octets, aes_key)
    except DecryptionError:
        return octets
