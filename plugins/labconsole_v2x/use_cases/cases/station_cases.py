"""Cases of what stations do besides CAM and DENM: services of an RSU, traffic information, the in-vehicle network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from labconsole_v2x.messages.geonetworking import secured_octets
from labconsole_v2x.pki.http_transport import AuthorityUnreachableError
from labconsole_v2x.pki.traffic_service import post_report, traffic_server
from labconsole_v2x.security.encryption import open_with_certificate
from labconsole_v2x.security.issuing import CENTRE_PERMISSIONS, ROADSIDE_PERMISSIONS, TICKET_PERMISSIONS
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import Permission
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import Verifier
from labconsole_v2x.stations.capture import ETHERNET_HEADER
from labconsole_v2x.stations.roadside import RoadsideSender, RoadsideService
from labconsole_v2x.stations.routes import Route
from labconsole_v2x.stations.sending import Identity, SentCam
from labconsole_v2x.stations.traffic_centre import (
    BadConfirmationError,
    CentreIdentity,
    SentReport,
    TrafficCentre,
    read_confirmation,
)
from labconsole_v2x.stations.transports import Transport
from labconsole_v2x.stations.vehicle_bus import (
    DataId,
    SecuredSensor,
    VehicleCamSender,
    VehicleFrame,
    VehicleKey,
)
from labconsole_v2x.use_cases.cases.bench import Bench
from labconsole_v2x.use_cases.cases.packet_cases import MANY
from labconsole_v2x.use_cases.evidence import Kind
from labconsole_v2x.use_cases.evidence_figures import encode_vehicle_frame

_PLACE = Route().at(0)
_CONTENT = bytes(range(64))
"""Of messages whose contents are not decoded."""
_LOOPBACK = "127.0.0.1"
_UNKNOWN_ID = 0x7FFF


def _service(service: RoadsideService, label: str) -> Callable[[Bench], None]:
    def run(bench: Bench) -> None:
        bench.receiver()
        unit, car = (_unit(bench, permissions) for permissions in (ROADSIDE_PERMISSIONS, TICKET_PERMISSIONS))
        for _ in range(MANY):
            bench.send(label, unit.create(service, _CONTENT).frame)
        bench.send(f"{label} of a car", car.create(service, _CONTENT).frame)

    return run


def _unit(bench: Bench, permissions: Sequence[Permission]) -> RoadsideSender:
    ticket, key = bench.ticket(permissions)
    return RoadsideSender(Identity.of(ticket.hashed_id8), ticket, key, _PLACE, bench.clock)


class _Centre:
    """A centre, a station that sends to it, and another one that hears what is sent."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        encryption_key = SoftwareKey.generate()
        ticket, key = bench.ticket(CENTRE_PERMISSIONS, encryption_key.public_key)
        own = CentreIdentity(ticket, key, encryption_key)
        foreign = CentreIdentity(ticket, key, SoftwareKey.generate())
        self.identity = own
        self.centre = bench.parts.centre(own, self.verifier(), clock=bench.clock)
        self.eavesdropper = TrafficCentre(foreign, self.verifier(), clock=bench.clock)
        ticket_of_station, key_of_station = bench.ticket(TICKET_PERMISSIONS)
        identity = Identity.of(ticket_of_station.hashed_id8)
        self.sender = bench.parts.traffic_sender(identity, ticket_of_station, key_of_station, ticket, bench.clock)

    def verifier(self) -> Verifier:
        """That of a party which trusts the root and knows the AA."""
        trust = TrustStore()
        trust.add_root(self.bench.pki.root)
        trust.add(self.bench.pki.aa)
        return Verifier(trust, clock=self.bench.clock)

    def report(self, *, by_radio: bool = False) -> SentReport:
        """The next report, recorded as sent, with what the centre finds in it and what the other station tries."""
        report = self.sender.report(_PLACE)
        recorder, sent = self.bench.recorder, report.sent.frame if by_radio else report.octets
        recorder.add(Kind.MESSAGE, label="traffic information", octets=sent)
        own = self.identity
        signed = open_with_certificate(report.octets, own.ticket, own.encryption_key)[0]
        recorder.add(Kind.OPENED, label="centre", octets=signed)
        heard = self.eavesdropper.receive(report.octets).verdict
        self.bench.decided("another station: traffic information", heard.value)
        return report


def _traffic_information_by_radio(bench: Bench) -> None:
    parties = _Centre(bench)
    (centre_receives, to_centre), (station_receives, to_station) = (bench.pair() for _ in range(2))
    for _ in range(MANY):
        report = parties.report(by_radio=True)
        to_centre.send(report.sent.frame)
        decision = parties.centre.receive(_received(centre_receives))
        if decision.confirmation is not None:
            to_station.send(parties.centre.confirmation_frame(decision.confirmation))
            octets = _received(station_receives)
            try:
                verdict = read_confirmation(octets, report, parties.identity.ticket, parties.verifier())
            except BadConfirmationError as error:
                verdict = f"no confirmation: {error}"
        else:
            verdict = decision.verdict.value
        bench.decided("centre: traffic information", verdict)


def _received(transport: Transport) -> bytes:
    """The secured octets of the next frame; none where none comes."""
    frame = transport.receive()
    return (secured_octets(frame[ETHERNET_HEADER:]) or b"") if frame is not None else b""


def _traffic_information_by_http(bench: Bench) -> None:
    parties = _Centre(bench)
    with traffic_server(_LOOPBACK, 0, parties.centre) as server:
        for _ in range(MANY):
            try:
                verdict = post_report(server.url, parties.report(), parties.identity.ticket, parties.verifier())
            except AuthorityUnreachableError as error:
                verdict = str(error)
            bench.decided("centre: traffic information", verdict)


_Arriving = Callable[[Sequence[VehicleFrame]], Iterable[tuple[str, VehicleFrame]]]
"""The frames that arrive of those that sensors send, each with what it is."""


class _InVehicleNetwork:
    """The network between sensors and station: what arrives, with the station's verdict on each frame."""

    def __init__(self, bench: Bench, arriving: _Arriving) -> None:
        self._bench = bench
        self._arriving = arriving
        self._station, key = bench.station(), VehicleKey()
        self._data = bench.parts.vehicle_data(key)
        sensors = [SecuredSensor(data_id, key) for data_id in DataId]
        self._sender = VehicleCamSender(self._station.sender, sensors, self._data, self._arrived)

    def _arrived(self, frames: Sequence[VehicleFrame]) -> Iterator[VehicleFrame]:
        for label, frame in self._arriving(frames):
            self._bench.recorder.add(Kind.MESSAGE, label="vehicle frame", octets=encode_vehicle_frame(frame))
            before = self._data.verdicts.copy()
            yield frame
            for verdict in self._data.verdicts - before:
                self._bench.decided(f"vehicle data: {label}", verdict.value)

    def cams(self) -> Iterator[SentCam | None]:
        """What the station creates at each tenth of a second: a CAM, if the frames that arrive give one."""
        return (self._sender.create(self._station.route.at(number / 10)) for number in range(MANY))


def _vehicle_data(bench: Bench) -> None:
    bench.receiver()
    for sent in _InVehicleNetwork(bench, _unchanged).cams():
        if sent is not None:
            bench.send("CAM from vehicle data", sent.frame)


def _forged_vehicle_data(bench: Bench) -> None:
    for sent in _InVehicleNetwork(bench, _falsified).cams():
        bench.decided("station: CAM without authentic data", "created" if sent is not None else "not created")
    for _ in _InVehicleNetwork(bench, _replayed).cams():
        pass


def _unchanged(frames: Sequence[VehicleFrame]) -> Iterator[tuple[str, VehicleFrame]]:
    return (("frame", frame) for frame in frames)


def _falsified(frames: Sequence[VehicleFrame]) -> Iterator[tuple[str, VehicleFrame]]:
    """In their place those of an attacker, who has another key."""
    key = VehicleKey()
    for frame in frames:
        yield "forged frame", frame._replace(mac=key.mac(*frame[:3]))
        yield "changed frame", frame._replace(payload=bytes((frame.payload[0] ^ 1,)) + frame.payload[1:])
        yield "unknown data identifier", frame._replace(data_id=_UNKNOWN_ID)


def _replayed(frames: Sequence[VehicleFrame]) -> Iterator[tuple[str, VehicleFrame]]:
    for label in ("frame before it is replayed", "replayed frame"):
        yield from ((label, frame) for frame in frames)


STATION_CASES: Mapping[str, Callable[[Bench], None]] = {
    "F-SNS-01": _service(RoadsideService.SPATEM, "SPATEM"),
    "F-SNS-02": _service(RoadsideService.SAEM, "service announcement"),
    "F-ENC-01": _traffic_information_by_radio,
    "F-ENC-02": _traffic_information_by_http,
    "F-IVS-01": _vehicle_data,
    "A-IVS-01": _forged_vehicle_data,
}
