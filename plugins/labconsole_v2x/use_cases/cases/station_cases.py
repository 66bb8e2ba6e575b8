"""Cases of what stations do besides CAM and DENM: services of an RSU, traffic information, the in-vehicle network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

from labconsole_v2x.messages.geonetworking import secured_octets
from labconsole_v2x.pki.http_transport import AuthorityUnreachableError
from labconsole_v2x.pki.traffic_service import post_report, traffic_server
from labconsole_v2x.security.encryption import open_with_certificate
from labconsole_v2x.security.issuing import CENTRE_PERMISSIONS, ROADSIDE_PERMISSIONS, TICKET_PERMISSIONS
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import Permission
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import Verifier
from labconsole_v2x.stations.roadside import RoadsideSender, RoadsideService
from labconsole_v2x.stations.routes import Route
from labconsole_v2x.stations.sending import Identity
from labconsole_v2x.stations.traffic_centre import CentreIdentity, SentReport, TrafficCentre
from labconsole_v2x.stations.transports import open_pair
from labconsole_v2x.stations.vehicle_bus import DataId, SecuredSensor, VehicleFrame, VehicleKey
from labconsole_v2x.use_cases.cases.bench import Bench
from labconsole_v2x.use_cases.cases.packet_cases import MANY
from labconsole_v2x.use_cases.evidence import Kind
from labconsole_v2x.use_cases.evidence_figures import encode_vehicle_frame

_PLACE = Route().at(0)
_CONTENT = bytes(range(64))
"""Of messages whose contents are not decoded."""
_LOOPBACK = "127.0.0.1"


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
    receiving, sending = open_pair()
    with closing(receiving), closing(sending):
        for _ in range(MANY):
            sending.send(parties.report(by_radio=True).sent.frame)
            frame = receiving.receive()
            octets = secured_octets(frame[14:]) if frame is not None else None
            verdict = parties.centre.receive(octets).verdict.value if octets is not None else "nothing was received"
            bench.decided("centre: traffic information", verdict)


def _traffic_information_by_http(bench: Bench) -> None:
    parties = _Centre(bench)
    with traffic_server(_LOOPBACK, 0, parties.centre) as server:
        for _ in range(MANY):
            try:
                verdict = post_report(server.url, parties.report(), parties.identity.ticket, parties.verifier())
            except AuthorityUnreachableError as error:
                verdict = str(error)
            bench.decided("centre: traffic information", verdict)


def _vehicle_data(bench: Bench) -> None:
    bench.receiver()
    station, key = bench.station(), VehicleKey()
    data = bench.parts.vehicle_data(key)
    sensors = [SecuredSensor(data_id, key) for data_id in DataId]
    for number in range(MANY):
        for frame in (sensor.measure(station.route.at(number / 10)) for sensor in sensors):
            bench.recorder.add(Kind.MESSAGE, label="vehicle frame", octets=encode_vehicle_frame(frame))
            bench.decided("vehicle data: frame", data.receive(frame).value)
        movement = data.movement()
        if movement is not None:
            bench.send("CAM from vehicle data", station.sender.create(movement).frame)


def _forged_vehicle_data(bench: Bench) -> None:
    station, key = bench.station(), VehicleKey()
    data, heard = bench.parts.vehicle_data(key), bench.parts.vehicle_data(key)
    sensors, attackers = ([SecuredSensor(data_id, one) for data_id in DataId] for one in (key, VehicleKey()))
    for number in range(MANY):
        movement = station.route.at(number / 10)
        frames = [sensor.measure(movement) for sensor in sensors]
        for frame in frames:
            heard.receive(frame)
        changed = [frame._replace(payload=bytes((frame.payload[0] ^ 1,)) + frame.payload[1:]) for frame in frames]
        attempts: Mapping[str, Sequence[VehicleFrame]] = {
            "forged frame": [attacker.measure(movement) for attacker in attackers],
            "changed frame": changed,
            "unknown data identifier": [frame._replace(data_id=0x7FFF) for frame in frames],
        }
        for name, forged in attempts.items():
            for frame in forged:
                bench.decided(f"vehicle data: {name}", data.receive(frame).value)
        for frame in frames:  # as another station of the network, which has had them before
            bench.decided("vehicle data: replayed frame", heard.receive(frame).value)
        created = data.movement() is not None
        bench.decided("station: CAM without authentic data", "created" if created else "not created")


STATION_CASES: Mapping[str, Callable[[Bench], None]] = {
    "F-SNS-01": _service(RoadsideService.SPATEM, "SPATEM"),
    "F-SNS-02": _service(RoadsideService.SAEM, "service announcement"),
    "F-ENC-01": _traffic_information_by_radio,
    "F-ENC-02": _traffic_information_by_http,
    "F-IVS-01": _vehicle_data,
    "A-IVS-01": _forged_vehicle_data,
}
