"""The test bench of a use case: stations and receivers with real sockets, a PKI, one clock, and what it records.

`Parts` are the units under test: a test puts a broken one in the place of one of them.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from random import Random
from threading import Lock
from typing import TYPE_CHECKING, Any

from labconsole.clock import now_ns
from labconsole_v2x.pki.authorization_authority import AuthorizationAuthority
from labconsole_v2x.pki.enrolment_authority import EnrolmentAuthority
from labconsole_v2x.pki.lists.distribution_centre import DistributionCentre
from labconsole_v2x.pki.lists.station_trust import StationTrust
from labconsole_v2x.pki.root.root_authority import RootAuthority
from labconsole_v2x.security.backends import Backend, generate_key, key_loader
from labconsole_v2x.security.distribution import Distribution
from labconsole_v2x.security.issuing import CENTRE_RANGES, ROADSIDE_RANGES, TICKET_PERMISSIONS, TICKET_S, LabPki
from labconsole_v2x.security.keys import SigningKey, load_public_key
from labconsole_v2x.security.structures import Certificate, Permission, Point, PointForm, PublicKey
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import CheckOrder, its_now
from labconsole_v2x.stations.capture import ETHERNET_HEADER
from labconsole_v2x.stations.identity_change import ChangeSchedule
from labconsole_v2x.stations.pseudonyms import PseudonymPool
from labconsole_v2x.stations.receiving import (
    QUEUE_FULL,
    REASONS,
    Checked,
    PacketCheck,
    ReceivedFrame,
    ReceivingStation,
    Reception,
)
from labconsole_v2x.stations.refill import RsuRelay
from labconsole_v2x.stations.routes import Route, vehicle_route
from labconsole_v2x.stations.sending import CamSender, Identity
from labconsole_v2x.stations.traffic_centre import TrafficCentre, TrafficSender
from labconsole_v2x.stations.transports import Transport, open_pair
from labconsole_v2x.stations.vehicle_bus import VehicleData
from labconsole_v2x.use_cases.evidence import Kind, Record
from labconsole_v2x.use_cases.judging import CaseReceiver, ReceiverSettings, give

if TYPE_CHECKING:
    from labconsole.security.token.cryptoki.opening import Token

_LOST_AFTER_S = 2.0
"""A packet that no receiver has judged for so long is lost."""
_SINCE_S, _AUTHORITIES_SINCE_S = 3600, 14 * 24 * 3600
"""For how long tickets and authorities have been valid."""


class Recorder:
    """Takes the records of a case, from any thread."""

    def __init__(self, case: str, clock: Callable[[], int]) -> None:
        self.case = case
        self.records: list[Record] = []
        self._clock = clock
        self._turn = Lock()

    def add(
        self,
        kind: Kind,
        *,
        number: int = 0,
        label: str = "",
        result: str = "",
        octets: bytes = b"",
        at_us: int | None = None,
    ) -> None:
        """Add a record, by default of now."""
        record = Record(self.case, kind, self._clock() if at_us is None else at_us, number, label, result, octets)
        with self._turn:
            self.records.append(record)


class CaseClock:
    """ITS time in us, which a case may advance or stop: all its parties have the same clock."""

    def __init__(self) -> None:
        self._ahead_us = 0
        self._stopped_us: int | None = None

    def __call__(self) -> int:
        stopped_us = self._stopped_us
        return its_now() + self._ahead_us if stopped_us is None else stopped_us

    def advance(self, seconds: float) -> None:
        """Let time pass at once."""
        self._ahead_us += round(seconds * 1e6)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let no time pass meanwhile: what takes long to create is not old when it is sent."""
        self._stopped_us = stopped_us = self()
        try:
            yield
        finally:
            self._ahead_us = stopped_us - its_now()
            self._stopped_us = None


def _created(kind: Callable[..., CamSender], identity: Identity, **settings: Any) -> CamSender:
    return kind(identity, **settings)


@dataclass(frozen=True)
class Parts:
    """The units under test."""

    check: Callable[[PacketCheck], PacketCheck] = lambda check: check
    """The checks of receivers: a broken one gets the right ones."""
    sender: Callable[..., CamSender] = _created
    """Creates a sender of a class, with its identity and settings."""
    enrolment_authority: type[EnrolmentAuthority] = EnrolmentAuthority
    authorization_authority: type[AuthorizationAuthority] = AuthorizationAuthority
    root_authority: type[RootAuthority] = RootAuthority
    pool: type[PseudonymPool] = PseudonymPool
    schedule: type[ChangeSchedule] = ChangeSchedule
    relay: type[RsuRelay] = RsuRelay
    centre: type[TrafficCentre] = TrafficCentre
    station_trust: type[StationTrust] = StationTrust
    distribution_centre: type[DistributionCentre] = DistributionCentre
    traffic_sender: type[TrafficSender] = TrafficSender
    vehicle_data: type[VehicleData] = VehicleData


@dataclass(frozen=True)
class BenchSettings:
    """What all cases of a run share."""

    backend: Backend = Backend.OPENSSL
    rate: float = 1500.0
    """CAMs a second of F-SIG-03."""
    seed: int = 1


@dataclass
class Station:
    """A ticket with its key, and the sender that uses them on a route."""

    ticket: Certificate
    key: SigningKey | None
    sender: CamSender
    route: Route
    clock: Callable[[], int]
    began_us: int

    def frame(self) -> bytes:
        """The frame of the next packet, of where the station is now."""
        movement = self.route.at((self.clock() - self.began_us) / 1e6)
        return self.sender.create(movement).frame


class _RecordedCheck:
    """The checks of a receiver, each recorded with its packet, time and verdict."""

    def __init__(self, number: int, receiver: CaseReceiver, inner: PacketCheck, bench: Bench) -> None:
        self._number = number
        self._receiver = receiver
        self._inner = inner
        self._bench = bench

    def check(self, frame: ReceivedFrame) -> Checked:
        self._receiver.now_us = at_us = self._bench.clock()
        checked = self._inner.check(frame)
        self._bench.judged(self._number, frame.packet, REASONS[checked.reason], at_us)
        return checked

    def released(self) -> Sequence[ReceivedFrame]:
        return self._inner.released()


@dataclass
class BenchReceiver:
    """A receiver that runs: its checks, and the transport by which stations send to it."""

    number: int
    receiver: CaseReceiver
    sending: Transport
    reception: Reception
    distributions: list[Distribution]
    """Of the stations that it belongs to: they take part in the distribution of certificates."""


@dataclass
class Bench:
    """The bench of one case; `close` ends its receivers and servers."""

    recorder: Recorder
    clock: CaseClock
    settings: BenchSettings
    parts: Parts
    token: Token | None = None
    resources: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.random = Random(f"{self.settings.seed}/{self.recorder.case}")
        self.pki = LabPki.create(
            self.clock() // 1_000_000 - _AUTHORITIES_SINCE_S, further_ranges=(*ROADSIDE_RANGES, *CENTRE_RANGES)
        )
        self.recorder.add(Kind.ROOT, octets=self.pki.root.octets)
        for authority in (self.pki.ea, self.pki.aa):
            self.recorder.add(Kind.KNOWN, octets=authority.octets)
        self._trust = TrustStore()
        self._trust.add_root(self.pki.root)
        self._trust.add(self.pki.aa)
        self.receivers: list[BenchReceiver] = []
        self._labels: dict[bytes, tuple[int, str]] = {}
        self._turn = Lock()
        self._outstanding: Counter[tuple[int, bytes]] = Counter()
        """Packets sent to a receiver that it has not judged yet: those that wait for a certificate are judged again."""

    # Stations

    def new_key(self) -> SigningKey:
        """A key of a station, in the backend of the run."""
        return generate_key(self.settings.backend, self.pki.root.verification_key.curve, self.token)

    def station(
        self,
        *,
        permissions: Sequence[Permission] = TICKET_PERMISSIONS,
        pki: LabPki | None = None,
        begin_s: int = -_SINCE_S,
        duration_s: int = TICKET_S,
        signs_with: SigningKey | None = None,
        clock: Callable[[], int] | None = None,
        secured: bool = True,
        uncompressed: bool = False,
        kind: Callable[..., CamSender] = CamSender,
    ) -> Station:
        """A station with a ticket that begins `begin_s` from now.

        `signs_with`: another key than that of its ticket; `clock`: another one than that of the case; `secured`: its
        packets have a security header; `uncompressed`: the key in its ticket has both coordinates; `kind` of its
        sender.
        """
        ticket, key = self.ticket(
            permissions, pki=pki, begin_s=begin_s, duration_s=duration_s, uncompressed=uncompressed
        )
        return self.station_of(ticket, (signs_with or key) if secured else None, kind, clock)

    def station_of(
        self,
        ticket: Certificate,
        key: SigningKey | None,
        kind: Callable[..., CamSender] = CamSender,
        clock: Callable[[], int] | None = None,
    ) -> Station:
        """A station with this ticket, on a route of its own; without a key its packets have no security header."""
        identity = Identity.of(ticket.hashed_id8)
        clock = clock or self.clock
        sender = self.parts.sender(kind, identity, ticket=ticket, key=key, clock=clock)
        sender.distribution = Distribution(ticket, self._trust)
        return Station(ticket, key, sender, vehicle_route(self.random), clock, clock())

    def ticket(
        self,
        permissions: Sequence[Permission] = TICKET_PERMISSIONS,
        encryption_key: PublicKey | None = None,
        *,
        pki: LabPki | None = None,
        begin_s: int = -_SINCE_S,
        duration_s: int = TICKET_S,
        uncompressed: bool = False,
    ) -> tuple[Certificate, SigningKey]:
        """A ticket of the AA that begins `begin_s` from now, without a request, and its key."""
        key = self.new_key()
        public_key = with_both_coordinates(key.public_key) if uncompressed else key.public_key
        ticket = (pki or self.pki).ticket(
            public_key,
            self.clock() // 1_000_000 + begin_s,
            duration_s=duration_s,
            permissions=permissions,
            encryption_key=encryption_key,
        )
        self.recorder.add(Kind.CERTIFICATE, label="station", octets=ticket.octets)
        return ticket, key

    # Receivers

    def receiver(
        self,
        *,
        order: CheckOrder = CheckOrder.CHEAP_FIRST,
        knows: Sequence[Certificate] | None = None,
        plausibility: bool = False,
    ) -> BenchReceiver:
        """A receiver, which runs from now on; it trusts the root, and knows the AA, or what `knows` has."""
        number, settings = len(self.receivers) + 1, ReceiverSettings(order.name, plausibility)
        receiver = CaseReceiver(settings, key_loader(self.settings.backend, self.token))
        self.recorder.add(Kind.RECEIVER, number=number, label=settings.to_json())
        self._give(number, receiver, Kind.ROOT, self.pki.root)
        for certificate in (self.pki.aa,) if knows is None else knows:
            self._give(number, receiver, Kind.KNOWN, certificate)
        distributions: list[Distribution] = []
        check = _RecordedCheck(number, receiver, self.parts.check(receiver.check(distributions)), self)
        station = ReceivingStation(number, check, (), None)
        receiving, sending = self.pair()
        full = lambda frame: self.judged(number, frame.packet, QUEUE_FULL, self.clock())  # noqa: E731
        reception = Reception(receiving, [station], on_full=full)
        self.resources.callback(reception.stop)
        reception.start()
        self.receivers.append(BenchReceiver(number, receiver, sending, reception, distributions))
        return self.receivers[-1]

    def pair(self) -> tuple[Transport, Transport]:
        """A receiver and a sender to it, until the case ends."""
        receiving, sending = open_pair()
        for transport in (receiving, sending):
            self.resources.enter_context(closing(transport))
        return receiving, sending

    def distrusted(self, receiver: BenchReceiver, certificate: Certificate) -> None:
        """Record that a receiver distrusts a certificate from now on."""
        self.recorder.add(Kind.DISTRUSTED, number=receiver.number, octets=certificate.hashed_id8)

    def _give(self, number: int, receiver: CaseReceiver, kind: Kind, certificate: Certificate) -> None:
        record = Record(self.recorder.case, kind, self.clock(), number, octets=certificate.octets)
        self.recorder.add(kind, number=number, octets=certificate.octets)
        give(receiver.trust, record)

    # Packets

    def send(self, label: str, frame: bytes, *, wait: bool = True, to: Sequence[BenchReceiver] | None = None) -> None:
        """Send a frame to all receivers or some, and wait until each has judged it, or it is lost."""
        packet = frame[ETHERNET_HEADER:]
        number, _ = self._labels.setdefault(packet, (len(self._labels) + 1, label))
        self._labels[packet] = (number, label)
        self.recorder.add(Kind.SENT, number=number, label=label, octets=frame)
        receivers = self.receivers if to is None else to
        for receiver in receivers:
            with self._turn:
                self._outstanding[receiver.number, packet] += 1
            receiver.sending.send(frame)
        if wait:
            self.settle()

    def settle(self) -> None:
        """Wait until receivers have judged what was sent, or are silent for two seconds. Raises their faults."""
        with self._turn:
            left, until_ns = self._outstanding.total(), now_ns() + round(_LOST_AFTER_S * 1e9)
        while left and now_ns() < until_ns:
            time.sleep(0.0005)
            for receiver in self.receivers:
                receiver.reception.check()
            with self._turn:
                still = self._outstanding.total()
            if still < left:
                left, until_ns = still, now_ns() + round(_LOST_AFTER_S * 1e9)
        with self._turn:
            self._outstanding.clear()

    def judged(self, receiver: int, packet: bytes, verdict: str, at_us: int) -> None:
        """Record a receiver's verdict."""
        _, label = self._labels.get(packet, (0, "unknown packet"))
        self.recorder.add(Kind.RECEIVED, number=receiver, label=label, result=verdict, octets=packet, at_us=at_us)
        with self._turn:
            if self._outstanding[receiver, packet] > 1:
                self._outstanding[receiver, packet] -= 1
            else:
                del self._outstanding[receiver, packet]

    # Decisions

    def decided(self, label: str, result: str) -> None:
        """Record a decision."""
        self.recorder.add(Kind.DECISION, label=label, result=result)

    def measured(self, label: str, value: float) -> None:
        """Record a figure."""
        self.recorder.add(Kind.MEASURED, label=label, result=f"{value:.6g}")

    def close(self) -> None:
        """End receivers and servers."""
        self.resources.close()


def with_both_coordinates(key: PublicKey) -> PublicKey:
    """The same key as an uncompressed point."""
    numbers = load_public_key(key).public_numbers()
    x, y = (value.to_bytes(key.curve.size, "big") for value in (numbers.x, numbers.y))
    return PublicKey(key.curve, Point(PointForm.UNCOMPRESSED, x, y))
