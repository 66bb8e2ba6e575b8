"""Changes of identity: when they are due, and that one replaces every identifier of a station at once."""

from __future__ import annotations

import time
from random import Random
from threading import Thread
from typing import NamedTuple

import pytest

from labconsole.errors import UserError
from labconsole_v2x.messages import cam
from labconsole_v2x.messages.btp import parse_btp
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.geonetworking import carried_payload, parse_packet, parse_unsecured
from labconsole_v2x.security.distribution import CertificateInclusion
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.verification import Reason, Verifier
from labconsole_v2x.stations.cam_timing import CamTiming
from labconsole_v2x.stations.identity_change import ChangeSchedule, IdentityChanger
from labconsole_v2x.stations.pseudonyms import Pseudonym, PseudonymPolicy, PseudonymPool
from labconsole_v2x.stations.routes import vehicle_route
from labconsole_v2x.stations.sending import ALL_LAYERS, CamSender, Identity, Layer, SecurityMode, SentCam
from labconsole_v2x.stations.transmission import Instance, SentPacket, Transmission
from tests.labconsole_v2x.stations.cam_senders import BEGIN_NS, BEGIN_S, Clock, Lab, its_us_of, set_clock

S = 1_000_000_000
ROUTE = vehicle_route(Random(1))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return set_clock(monkeypatch)


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab()


def new_pseudonym(lab: Lab) -> Pseudonym:
    sender = lab.sender()
    assert sender.ticket is not None and sender._signer is not None
    return Pseudonym(sender.ticket, sender._signer._key)


def pool_of(lab: Lab, count: int) -> PseudonymPool:
    pool = PseudonymPool(PseudonymPolicy(low_water=0))
    for _ in range(count):
        pool.add(new_pseudonym(lab), BEGIN_S)
    return pool


class Seen(NamedTuple):
    """What a packet says of its sender."""

    mac: bytes
    gn_mac: bytes
    digest: bytes
    with_certificate: bool
    message: Cam

    @property
    def path(self) -> int | None:
        """Points of the path history; None without low frequency container."""
        return None if self.message.low_frequency is None else len(self.message.low_frequency.path)


def seen(sent: SentCam) -> Seen:
    packet = parse_packet(sent.frame[14:])
    assert packet.secured is not None
    data = scan_signed_data(packet.secured)
    assert data.payload is not None
    digest = data.digest or scan_certificate(data.certificates[0]).hashed_id8
    message = cam.decode(parse_btp(*carried_payload(data.payload)).payload)
    gn_mac = parse_unsecured(data.payload).sender.address.mac
    return Seen(sent.frame[6:12], gn_mac, digest, bool(data.certificates), message)


class Driver:
    """A sender whose CAMs are created each 100 ms of a clock."""

    def __init__(self, sender: CamSender, clock: Clock) -> None:
        self.sender, self.clock, self.number = sender, clock, 0

    def drive(self, count: int) -> list[SentCam]:
        sent = []
        for _ in range(count):
            self.clock.now_ns = BEGIN_NS + self.number * S // 10
            sent.append(self.sender.create(ROUTE.at(self.number / 10)))
            self.number += 1
        return sent


def test_change_replaces_every_identifier_at_once(lab: Lab, clock: Clock) -> None:
    sender, new = lab.sender(), new_pseudonym(lab)
    driver = Driver(sender, clock)
    before = [seen(sent) for sent in driver.drive(13)]
    sequence_numbers = sender.sequence_numbers
    sender.change_identity(new)
    after = [seen(sent) for sent in driver.drive(13)]
    identity = Identity.of(new.ticket.hashed_id8)
    for one in after:
        assert (one.mac, one.gn_mac, one.digest) == (identity.mac, identity.mac, new.ticket.hashed_id8)
        assert one.message.station_id == identity.station_id
    for name in ("mac", "gn_mac", "digest"):
        assert not {getattr(one, name) for one in before} & {getattr(one, name) for one in after}
    assert before[12].message.station_id != after[0].message.station_id
    assert sender.sequence_numbers is not sequence_numbers


def test_first_cam_of_an_identity_has_the_certificate_and_an_empty_path(lab: Lab, clock: Clock) -> None:
    sender = lab.sender()
    driver = Driver(sender, clock)
    before = [seen(sent) for sent in driver.drive(13)]
    assert [number for number, one in enumerate(before) if one.with_certificate] == [0, 10]
    assert [one.path for one in before] == [0, *[None] * 4, 1, *[None] * 4, 2, None, None]
    sender.change_identity(new_pseudonym(lab))
    after = [seen(sent) for sent in driver.drive(13)]
    assert [number for number, one in enumerate(after) if one.with_certificate] == [0, 10]
    assert [one.path for one in after] == [0, *[None] * 4, 1, *[None] * 4, 2, None, None]


def test_receiver_that_knows_no_ticket_accepts_packets_of_each_identity(lab: Lab, clock: Clock) -> None:
    driver, verifier = Driver(lab.sender(), clock), Verifier(lab.trust())
    for _ in range(3):
        for sent in driver.drive(4):
            packet = parse_packet(sent.frame[14:])
            assert packet.secured is not None
            outcome = verifier.verify(packet.secured, its_us_of(clock.now_ns))
            assert outcome.reason is Reason.ACCEPTED
        driver.sender.change_identity(new_pseudonym(lab))


UNCHANGED = {
    Layer.TICKET: "digest",
    Layer.MAC_ADDRESS: "mac",
    Layer.GN_ADDRESS: "gn_mac",
    Layer.STATION_ID: "station_id",
    Layer.PATH_HISTORY: "path",
}


@pytest.mark.parametrize("layer", UNCHANGED)
def test_layer_can_be_left_unchanged(layer: Layer, lab: Lab, clock: Clock) -> None:
    sender = lab.sender()
    driver = Driver(sender, clock)
    old = seen(driver.drive(11)[-1])
    sender.change_identity(new_pseudonym(lab), ALL_LAYERS - {layer})
    new = seen(driver.drive(5)[-1])
    kept = {
        "digest": new.digest == old.digest,
        "mac": new.mac == old.mac,
        "gn_mac": new.gn_mac == old.gn_mac,
        "station_id": new.message.station_id == old.message.station_id,
        "path": new.path == 3,
    }
    assert [name for name, unchanged in kept.items() if unchanged] == [UNCHANGED[layer]]


def test_sequence_numbers_start_at_a_random_one_and_wrap(lab: Lab) -> None:
    sender = lab.sender()
    starts = set()
    for _ in range(40):
        sender.change_identity(new_pseudonym(lab))
        starts.add((sender.sequence_numbers.next_packet(), sender.sequence_numbers.next_denm()))
    assert len(starts) > 35
    assert len({one for one, _ in starts}) > 35 and len({one for _, one in starts}) > 35
    first = sender.sequence_numbers.next_packet()
    numbers = [sender.sequence_numbers.next_packet() for _ in range(65_536)]
    assert (numbers[0], numbers[-1], len(set(numbers))) == ((first + 1) % 65_536, first, 65_536)
    kept = sender.sequence_numbers
    sender.change_identity(new_pseudonym(lab), ALL_LAYERS - {Layer.SEQUENCE_NUMBERS})
    assert sender.sequence_numbers is kept


def test_sender_without_security_gets_random_identities(lab: Lab) -> None:
    sender = lab.sender(SecurityMode.NONE)
    identities = {sender.identity}
    for _ in range(5):
        sender.change_identity()
        identities.add(sender.identity)
        assert sender.create(ROUTE.at(0)).frame[6:12] == sender.identity.mac
    assert len({one.mac for one in identities}) == len({one.station_id for one in identities}) == 6
    with pytest.raises(ValueError, match="needs another one"):
        sender.change_identity(new_pseudonym(lab))
    with pytest.raises(ValueError, match="needs another one"):
        lab.sender().change_identity()


@pytest.mark.parametrize("policy", [CertificateInclusion.NEVER, CertificateInclusion.ALWAYS])
def test_change_keeps_the_policy_for_certificates(policy: CertificateInclusion, lab: Lab, clock: Clock) -> None:
    sender = lab.sender(inclusion=policy)
    sender.change_identity(new_pseudonym(lab))
    with_certificate = [seen(one).with_certificate for one in Driver(sender, clock).drive(3)]
    assert with_certificate == [policy is CertificateInclusion.ALWAYS] * 3


# When


def test_change_at_start_is_due_at_once_and_only_once() -> None:
    schedule = ChangeSchedule(at_start=True)
    schedule.begin(5 * S)
    assert schedule.is_due(5 * S)
    schedule.done(5 * S)
    assert not schedule.is_due(1000 * S)


def test_change_on_request_is_due_until_it_is_done() -> None:
    schedule = ChangeSchedule()
    schedule.begin(0)
    assert not schedule.is_due(1000 * S)
    assert schedule.request(1000 * S)
    assert schedule.is_due(1000 * S) and schedule.is_due(1001 * S)
    schedule.done(1001 * S)
    assert not schedule.is_due(2000 * S)


def test_periodic_changes_come_with_jitter_that_the_seed_repeats() -> None:
    def intervals(seed: int, jitter: float) -> list[int]:
        schedule = ChangeSchedule(interval_s=10, jitter=jitter, random=Random(seed))
        schedule.begin(0)
        found, last = [], 0
        for now in range(0, 300 * S, S // 10):
            if schedule.is_due(now):
                schedule.done(now)
                found.append(now - last)
                last = now
        return found

    assert set(intervals(1, 0.0)) == {10 * S}
    jittered = intervals(1, 0.3)
    assert min(jittered) >= 7 * S and max(jittered) <= 13 * S + S // 10 and len(set(jittered)) > 5
    assert jittered == intervals(1, 0.3) != intervals(2, 0.3)


def test_change_that_is_due_during_a_lock_is_done_at_its_end() -> None:
    schedule = ChangeSchedule(interval_s=10)
    schedule.begin(0)
    schedule.lock(20, 5 * S)
    assert not any(schedule.is_due(at * S) for at in range(5, 25))
    assert not schedule.request(20 * S) and schedule.is_locked(20 * S)
    assert schedule.is_due(25 * S) and not schedule.is_locked(25 * S)
    schedule.done(25 * S)
    assert not schedule.is_due(34 * S), "both were one change; the next interval begins there"
    assert schedule.is_due(35 * S)


def test_lock_ends_by_its_handle_and_others_stay() -> None:
    schedule = ChangeSchedule()
    long, short = schedule.lock(100, 0), schedule.lock(10, 0)
    schedule.request(0)
    schedule.unlock(long)
    assert not schedule.is_due(9 * S)
    schedule.unlock(short)
    schedule.unlock(short)
    assert schedule.is_due(9 * S)


@pytest.mark.parametrize("seconds", [0, -1, 256])
def test_lock_of_a_duration_that_one_octet_does_not_have_is_refused(seconds: int) -> None:
    with pytest.raises(UserError, match="1 to 255 s"):
        ChangeSchedule().lock(seconds, 0)


def test_station_without_a_further_ticket_keeps_its_identity(lab: Lab, clock: Clock) -> None:
    sender, pool = lab.sender(), pool_of(lab, 1)
    changer = IdentityChanger(sender, ChangeSchedule(interval_s=1), pool, clock=lambda: its_us_of(clock.now_ns))
    changer.schedule.begin(0)
    assert [changer.change_if_due(at * S // 2) for at in range(7)] == [False, False, True, *[False] * 4]
    assert (changer.changes, changer.failures) == (1, 2)
    assert pool.current is not None and sender.ticket is pool.current.ticket


def test_expired_ticket_is_replaced_even_during_a_lock(lab: Lab, clock: Clock) -> None:
    sender, pool = lab.sender(), pool_of(lab, 1)
    pool.change(BEGIN_S)
    later = Lab(start_s=BEGIN_S)
    later.pki = lab.pki
    new = new_pseudonym(later)
    pool.add(new, BEGIN_S)
    changer = IdentityChanger(sender, ChangeSchedule(), pool, clock=lambda: its_us_of(clock.now_ns))
    changer.schedule.lock(255, 0)
    assert not changer.change_if_due(0)
    clock.now_ns += 7 * 24 * 3600 * S - 1800 * S
    assert changer.change_if_due(0)
    assert (sender.ticket, pool.current) == (new.ticket, new)
    assert not changer.change_if_due(0)
    clock.now_ns += 3600 * S
    assert not changer.change_if_due(0)
    assert (changer.changes, changer.failures) == (1, 1)


@pytest.mark.usefixtures("switching_often")
def test_no_packet_mixes_identities_while_another_thread_requests_changes(lab: Lab) -> None:
    """The thread that sends changes the identity; requests and locks come from another one."""
    sender, pool = lab.sender(), pool_of(lab, 30)
    schedule = ChangeSchedule()
    changer = IdentityChanger(sender, schedule, pool, clock=lambda: BEGIN_S * 1_000_000)
    instance = Instance(1, 0, ROUTE, sender, CamTiming(0, 1000.0), changer)
    frames: list[bytes] = []
    rows: list[SentPacket] = []

    class Ether:
        def send(self, frame: bytes) -> None:
            frames.append(frame)

    transmission = Transmission(Ether(), [instance], rows.append)  # type: ignore[arg-type]
    begin_ns = time.perf_counter_ns()
    transmission.start(begin_ns, begin_ns + S // 2)

    def request() -> None:
        while transmission.running:
            schedule.request(time.perf_counter_ns())
            time.sleep(0.01)

    requests = Thread(target=request)
    requests.start()
    requests.join()
    transmission.stop()
    assert changer.changes > 10 and len(frames) > 100
    identities = {one.ticket.hashed_id8: Identity.of(one.ticket.hashed_id8) for one in pool.valid(BEGIN_S)}
    assert sender.ticket is not None
    for frame, row in zip(frames, rows, strict=True):
        one = seen(SentCam(frame, 0, 0, False))
        if one.digest in identities:
            identity = identities[one.digest]
            assert (one.mac, one.gn_mac, one.message.station_id) == (identity.mac, identity.mac, identity.station_id)
        assert row.source == int.from_bytes(one.mac, "big")
    assert len({frame[6:12] for frame in frames}) > 10
