"""Cases of pseudonyms: choice by permissions, change of identity, lock, and refill."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from labconsole.clock import now_ns
from labconsole_v2x.messages.asn1_modules import compiled
from labconsole_v2x.messages.cam import Cam, SpecialVehicle
from labconsole_v2x.messages.geonetworking import Address, ShortPositionVector
from labconsole_v2x.security.structures import CAM_PSID, Permission, Validity
from labconsole_v2x.stations.identity_change import ChangeSchedule, IdentityChanger
from labconsole_v2x.stations.pseudonyms import Need, Permitted, Pseudonym, PseudonymPolicy
from labconsole_v2x.stations.receiving import Reception
from labconsole_v2x.stations.refill import RsuRequester
from labconsole_v2x.stations.routes import Movement, Route
from labconsole_v2x.stations.sending import CamSender, Identity
from labconsole_v2x.stations.transports import Transport
from labconsole_v2x.use_cases.cases.bench import Bench, Station
from labconsole_v2x.use_cases.cases.bench_authorities import BenchAuthorities
from labconsole_v2x.use_cases.cases.packet_cases import MANY, send_many
from labconsole_v2x.use_cases.cases.pki_cases import CAM_ONLY, EMERGENCY
from labconsole_v2x.use_cases.evidence import Kind

_EMERGENCY_CAM = "CAM of an emergency vehicle"
_BEFORE, _AFTER = "CAM before the change", "CAM after the change"
_BEFORE_COUNT = 25
"""So that the next packet would not have the certificate, which one in ten has, unless the identity was changed."""
_POOL = 5
_FULL_POOL = 20
_LOCK_S = 60
_ATTEMPT_S = 2.0
"""How long a station waits for the RSU."""


class EmergencySender(CamSender):
    """Sends CAMs with the container of emergency vehicles."""

    def __init__(self, identity: Identity, **settings: Any) -> None:
        super().__init__(identity, **settings)
        # Their codec is loaded for half a second, which would be part of the first one's age: 2 s on a busy computer.
        compiled(1)

    def _cam(self, movement: Movement, its_us: int) -> Cam:
        components = {"lightBarSirenInUse": (b"\x80", 2)}
        return super()._cam(movement, its_us)._replace(special=SpecialVehicle("emergencyContainer", components))


NEED = Need(CAM_PSID, ((1, 0x02),))
"""What the container needs (EN 302 637-2, 6.2.2.2)."""


class PooledStation:
    """A station that sends under the pseudonyms of a pool."""

    def __init__(
        self, bench: Bench, tickets: Sequence[Sequence[Permission]], kind: type[CamSender] = CamSender
    ) -> None:
        """The first of `tickets`, by their permissions, is in use."""
        self.bench = bench
        self.pool = bench.parts.pool(PseudonymPolicy(most_valid=_FULL_POOL), bench.random)
        for number, permissions in enumerate(tickets):
            self.pool.add(Pseudonym(*bench.ticket(permissions)), self.now_s())
            if number == 0:
                current = self.pool.change(self.now_s())
        self.station: Station = bench.station_of(current.ticket, current.key, kind)

    def now_s(self) -> int:
        return self.bench.clock() // 1_000_000

    def changer(self, schedule: ChangeSchedule) -> IdentityChanger:
        """What changes the identity of its sender."""
        return IdentityChanger(self.station.sender, schedule, self.pool, clock=self.bench.clock)

    def restart(self) -> None:
        """Start again with the same pool: it changes its identity before it sends."""
        current = self.pool.current
        assert current is not None
        self.station = self.bench.station_of(current.ticket, current.key)
        self.changer(self.bench.parts.schedule(at_start=True)).change_if_due(now_ns())

    def send_emergency(self) -> None:
        """Send a CAM of an emergency vehicle under a ticket that permits it, if there is one."""
        permitted = self.pool.permitted(NEED, self.now_s())
        self.bench.decided("station: choice of the ticket", permitted.value)
        if permitted is Permitted.NONE:
            return
        if permitted is Permitted.ANOTHER:
            self.station.sender.change_identity(self.pool.change(self.now_s(), NEED))
        self.bench.send(_EMERGENCY_CAM, self.station.frame())


def _emergency(tickets: Sequence[Sequence[Permission]]) -> Callable[[Bench], None]:
    """A case of a pool with tickets of these permissions, of which the first is in use."""

    def run(bench: Bench) -> None:
        bench.receiver()
        station = PooledStation(bench, tickets, EmergencySender)
        if tickets[0] is CAM_ONLY:  # against the rule
            bench.send("CAM beyond its ticket", station.station.frame())
        for _ in range(MANY):
            station.send_emergency()

    return run


def _change_on_request(bench: Bench) -> None:
    bench.receiver()
    station = PooledStation(bench, [CAM_ONLY] * _POOL)
    schedule = bench.parts.schedule()
    send_many(bench, _BEFORE, station.station, _BEFORE_COUNT)
    schedule.request(now_ns())
    station.changer(schedule).change_if_due(now_ns())
    send_many(bench, _AFTER, station.station)


def _change_at_start(bench: Bench) -> None:
    bench.receiver()
    station = PooledStation(bench, [CAM_ONLY] * _POOL)
    send_many(bench, _BEFORE, station.station, _BEFORE_COUNT)
    station.restart()
    send_many(bench, _AFTER, station.station)


def _locked(bench: Bench) -> None:
    bench.receiver()
    station = PooledStation(bench, [CAM_ONLY] * _POOL)
    schedule = bench.parts.schedule()
    changer = station.changer(schedule)
    handle = schedule.lock(_LOCK_S, now_ns())
    for _ in range(_BEFORE_COUNT):
        at_once = schedule.request(now_ns())
        bench.decided("station: change while locked", "at once" if at_once else "postponed")
        changer.change_if_due(now_ns())
        send_many(bench, _BEFORE, station.station, 1)
    schedule.unlock(handle)
    changer.change_if_due(now_ns())
    send_many(bench, _AFTER, station.station)


def _refill(bench: Bench) -> None:
    authorities = BenchAuthorities(bench, CAM_ONLY)
    credential = authorities.enrol()
    pool = bench.parts.pool(PseudonymPolicy(most_valid=_FULL_POOL, preload_s=0), bench.random)

    def authorize(count: int, validity: Validity) -> Iterable[Pseudonym]:
        for _ in range(count):
            certified = authorities.authorize(credential, CAM_ONLY, validity)
            yield Pseudonym(certified.certificate, certified.key)

    now_s = bench.clock() // 1_000_000
    if pool.is_low(now_s):
        pool.refill(authorize, now_s)
    bench.measured("tickets missing in the pool", pool.missing(now_s))
    bench.receiver()
    for pseudonym in pool.valid(now_s):
        bench.send("CAM with a new ticket", bench.station_of(pseudonym.ticket, pseudonym.key).frame())


def _refill_through_rsu(bench: Bench) -> None:
    authorities = BenchAuthorities(bench, CAM_ONLY)
    credential = authorities.enrol()
    station, unit = bench.station(), bench.station()
    place = Route().at(0)
    (unit_receives, to_unit), (station_receives, to_station) = (bench.pair() for _ in range(2))

    def recorded(transport: Transport) -> Callable[[bytes], None]:
        def send(frame: bytes) -> None:
            bench.recorder.add(Kind.MESSAGE, label="frame by the RSU", octets=frame)
            transport.send(frame)

        return send

    relay = bench.parts.relay(authorities.aa.url, authorities.post, recorded(to_station), unit.sender, place)
    address = ShortPositionVector(Address(unit.sender.identity.gn_mac, 0), 0, place.latitude, place.longitude)
    requester = RsuRequester(recorded(to_unit), station.sender, address, lambda: place, attempt_s=_ATTEMPT_S)
    bench.resources.enter_context(relay)
    _read(bench, unit_receives, relay.take)
    _read(bench, station_receives, requester.take)
    bench.receiver()
    for _ in range(_POOL):
        certified = authorities.authorize(credential, CAM_ONLY, post=requester.post)
        bench.send("CAM with a new ticket", bench.station_of(certified.certificate, certified.key).frame())


def _read(bench: Bench, transport: Transport, take: Callable[[bytes], object]) -> None:
    """Hand each frame of a transport to a station, until the case ends."""

    def on_frame(frame: bytes, _: int) -> None:
        take(frame)

    reception = Reception(transport, [], on_frame=on_frame)
    bench.resources.callback(reception.stop)
    reception.start()


PSEUDONYM_CASES: Mapping[str, Callable[[Bench], None]] = {
    "F-SIG-04": _emergency([EMERGENCY, CAM_ONLY]),
    "F-SIG-05": _emergency([CAM_ONLY, EMERGENCY]),
    "F-SIG-06": _emergency([CAM_ONLY] * _POOL),
    "F-PSN-01": _change_on_request,
    "F-PSN-02": _refill,
    "F-PSN-03": _locked,
    "F-PSN-04": _change_at_start,
    "F-PSN-05": _refill_through_rsu,
}
