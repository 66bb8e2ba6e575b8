"""What a station receives over a real socket is verified, counted by reason and kept as neighbours, whatever it is."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from labconsole.clock import now_ns
from labconsole.processes import own_cores
from labconsole_v2x.messages.geonetworking import encode_basic_header
from labconsole_v2x.security.distribution import Distribution
from labconsole_v2x.security.encoding import encode_octets
from labconsole_v2x.security.structures import CAM_PSID, Header, Validity
from labconsole_v2x.security.verification import CheckOrder, Reason, Verifier
from labconsole_v2x.stations.capture import ethernet_frame
from labconsole_v2x.stations.receiving import (
    QUEUE_FULL,
    REASONS,
    PacketCheck,
    ReceivedFrame,
    ReceivedPacket,
    UnverifiedCheck,
    VerifiedCheck,
    full_queue_row,
)
from labconsole_v2x.stations.routes import Route
from labconsole_v2x.stations.sending import packet_hash
from labconsole_v2x.stations.transports import LARGEST_FRAME
from tests.labconsole_v2x.security.lab_certificates import (
    CAR,
    HOUR_S,
    LATITUDE,
    LONGITUDE,
    NOW_S,
    NOW_US,
    cam_payload,
    signed,
    signed_cam,
    spoiled,
    ticket,
    ticket_authority,
)
from tests.labconsole_v2x.stations.cam_senders import Lab, its_us_of
from tests.labconsole_v2x.stations.receivers import (
    AUTHORITY,
    BASIC,
    MAC,
    ROOT,
    TICKET,
    UNSECURED,
    cam_at,
    new_trust,
    receiving,
    secured,
    verified_check,
)


def test_accepted_packet_is_recorded_and_its_sender_a_neighbour() -> None:
    before_ns = now_ns()
    with receiving(verified_check()) as receiver:
        receiver.send(cam_at(NOW_US))
        (row,) = receiver.wait_for(1)
    assert (row.receiver, row.source, row.identity) == (0, int.from_bytes(MAC, "big"), NOW_US)
    assert (REASONS[row.reason], row.waited) == ("accepted", 0)
    assert (row.size, row.content) == (len(cam_at(NOW_US)), len(cam_payload()))
    assert before_ns < row.received_ns <= row.started_ns < row.done_ns < now_ns()
    assert 0 < row.verify_ns < row.done_ns - row.started_ns
    ((mac, neighbour),) = receiver.stations[0].neighbours.heard_since(0)
    assert (mac, neighbour.station_id, neighbour.heard_ns) == (MAC, CAR.station_id, row.received_ns)
    assert (neighbour.latitude, neighbour.longitude) == (LATITUDE, LONGITUDE)


def test_age_is_from_the_generation_time_to_the_end_of_the_checks() -> None:
    lab = Lab(start_s=its_us_of(time.time_ns()) // 1_000_000 - 60)
    sender = lab.sender()
    with receiving(VerifiedCheck(Verifier(lab.trust()))) as receiver:
        before_ns = time.time_ns()
        sent = sender.create(Route().at(0))
        time.sleep(0.05)
        receiver.send_frame(sent.frame)
        (row,) = receiver.wait_for(1)
    assert (REASONS[row.reason], row.identity) == (Reason.ACCEPTED.value, sent.identity)
    assert 50_000_000 < row.age_ns < time.time_ns() - before_ns


def test_unknown_signer_and_then_its_certificate_releases_the_packets_that_waited() -> None:
    with receiving(verified_check()) as receiver:
        receiver.send(cam_at(NOW_US, digest=True), cam_at(NOW_US + 1, digest=True), cam_at(NOW_US + 2))
        rows = receiver.wait_for(5)
    unknown, accepted = Reason.UNKNOWN_SIGNER.value, Reason.ACCEPTED.value
    assert receiver.outcomes() == [(unknown, 0), (unknown, 0), (accepted, 0), (accepted, 1), (accepted, 1)]
    assert [row.identity - NOW_US for row in rows] == [0, 1, 2, 0, 1]
    assert [row.received_ns for row in rows[3:]] == [row.received_ns for row in rows[:2]]
    assert [row.started_ns for row in rows] == sorted(row.started_ns for row in rows)
    ((_, neighbour),) = receiver.stations[0].neighbours.heard_since(0)
    assert neighbour.heard_ns == rows[2].received_ns  # the newest CAM, though others were accepted later


def test_receiver_learns_an_authority_from_the_air() -> None:
    other = ticket_authority(ROOT)
    unknown = secured(signed_cam(ticket(other)))
    answer = cam_at(NOW_US + 5, requested_certificate=other.certificate.octets)
    with receiving(verified_check()) as receiver:
        receiver.send(unknown, answer, source=b"\2\0\0\0\0\7")
        receiver.wait_for(3)
    accepted = Reason.ACCEPTED.value
    assert receiver.outcomes() == [(Reason.UNKNOWN_ISSUER.value, 0), (accepted, 0), (accepted, 1)]


def test_stations_of_a_receiver_take_part_in_certificate_distribution() -> None:
    trust = new_trust(AUTHORITY)
    distribution = Distribution(ticket(AUTHORITY).certificate, trust)
    distribution.next_cam(NOW_US)
    check = VerifiedCheck(Verifier(trust, clock=lambda: NOW_US), [distribution])
    with receiving(check) as receiver:
        receiver.send(cam_at(NOW_US, digest=True))
        receiver.wait_for(1)
    included = distribution.next_cam(NOW_US + 1)
    assert (included.certificate, included.inline_p2pcd_request) == (True, (TICKET.certificate.hashed_id3,))


def flipped(packet: bytes, at: int, bit: int = 0) -> bytes:
    changed = bytearray(packet)
    changed[at] ^= 1 << bit
    return bytes(changed)


def on_unsupported_curve(packet: bytes) -> bytes:
    """The packet with a signature of a choice that no standard defines yet."""
    at = len(packet) - 66
    assert packet[at] == 0x80
    return packet[:at] + b"\x84" + packet[at + 1 :]


def expired() -> bytes:
    return signed_cam(ticket(AUTHORITY, validity=Validity(NOW_S - HOUR_S, NOW_S)))


GOOD = cam_at(NOW_US)
BAD_INPUT: dict[str, tuple[list[bytes], Reason]] = {
    "truncated": ([GOOD[:cut] for cut in (0, 1, 3, 4, 5, 20, 80, 200, len(GOOD) - 1)], Reason.MALFORMED),
    "oversized": ([GOOD + bytes(more) for more in (1, 1000, 2000, 9000)], Reason.MALFORMED),
    "noise": ([bytes(range(256)) * 5, b"\xff" * 300, BASIC + b"\3\x81" + bytes(300)], Reason.MALFORMED),
    "bits flipped in signature or content": (
        [flipped(cam_at(NOW_US + 50), at) for at in (-1, -33, 50, 60)],
        Reason.SIGNATURE_INVALID,
    ),
    "replayed": ([GOOD, GOOD], Reason.DUPLICATE),
    "unknown signer": ([secured(signed_cam(ticket(AUTHORITY), digest=True))], Reason.UNKNOWN_SIGNER),
    "unknown issuer": ([secured(signed_cam(ticket(ticket_authority(ROOT))))], Reason.UNKNOWN_ISSUER),
    "wrong ITS-AID": ([secured(signed(TICKET, Header(138, NOW_US)))], Reason.UNKNOWN_ITS_AID),
    "expired ticket": ([secured(expired())], Reason.EXPIRED),
    "too old": ([cam_at(NOW_US - 2_000_001)], Reason.TOO_OLD),
    "generation time in the future": ([cam_at(NOW_US + 200_001), cam_at((1 << 64) - 1)], Reason.IN_FUTURE),
    "unknown version of the secured data": ([BASIC + b"\2" + GOOD[5:], BASIC + b"\4"], Reason.UNSUPPORTED_VERSION),
    "unknown version of GeoNetworking": ([bytes((GOOD[0] + 16,)) + GOOD[1:]], Reason.MALFORMED),
    "unsupported curve": ([on_unsupported_curve(GOOD)], Reason.UNSUPPORTED_CURVE),
    "not secured": ([UNSECURED, BASIC + b"\3\x80" + encode_octets(cam_payload())], Reason.UNSECURED),
    "CAM cut short": (
        [secured(signed(TICKET, Header(CAM_PSID, NOW_US + 9), cam_payload()[:-1]))],
        Reason.CONTENT_MALFORMED,
    ),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("order", CheckOrder)
def test_every_bad_input_is_counted_by_its_reason_and_the_next_packet_accepted(order: CheckOrder, threads: int) -> None:
    expected = Counter({Reason.ACCEPTED.value: 2})
    with receiving(verified_check(order), threads=threads) as receiver:
        receiver.send(GOOD)
        receiver.wait_for(1)
        count = 1
        for packets, reason in BAD_INPUT.values():
            receiver.send(*packets)
            expected[reason.value] += len(packets)
            count += len(packets)
            receiver.wait_for(count)
        receiver.send(cam_at(NOW_US + 77))
        receiver.wait_for(count + 1)
    assert Counter(REASONS[row.reason] for row in receiver.rows) == expected
    assert {row.age_ns for row in receiver.rows if row.reason} == {0}
    assert {row.content for row in receiver.rows if row.reason} == {0}
    assert max(row.size for row in receiver.rows) == LARGEST_FRAME - 14


def test_frames_of_another_kind_are_not_processed() -> None:
    seen: list[bytes] = []
    good = ethernet_frame(GOOD, MAC)
    with receiving(verified_check(), on_frame=lambda frame, received_ns: seen.append(frame)) as receiver:
        for frame in (b"", b"\0", good[:13], good[:12] + b"\x08\x00" + GOOD, good[:14], good):
            receiver.send_frame(frame)
        receiver.wait_for(2)
    assert [REASONS[row.reason] for row in receiver.rows] == [Reason.MALFORMED.value, Reason.ACCEPTED.value]
    assert seen == [good[:14], good]


def test_own_frames_are_ignored() -> None:
    own = b"\2\0\0\0\0\x63"
    with receiving(verified_check(), ignored=(own,)) as receiver:
        receiver.send(GOOD, b"noise", source=own)
        receiver.send(GOOD)
        receiver.wait_for(1)
    assert receiver.outcomes() == [(Reason.ACCEPTED.value, 0)]
    assert [mac for mac, _ in receiver.stations[0].neighbours.heard_since(0)] == [MAC]


def test_every_station_checks_every_packet_by_itself() -> None:
    with receiving(verified_check(), verified_check(trust=new_trust())) as receiver:
        receiver.send(GOOD)
        rows = receiver.wait_for(2)
    assert [(row.receiver, REASONS[row.reason]) for row in rows] == [
        (0, Reason.ACCEPTED.value),
        (1, Reason.UNKNOWN_ISSUER.value),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="cores of a thread: Linux only")
def test_packets_are_checked_on_the_cores_that_are_given() -> None:
    core, found = min(own_cores()), set[frozenset[int]]()
    rows: list[ReceivedPacket] = []

    def record(row: ReceivedPacket) -> None:
        found.add(own_cores())
        rows.append(row)

    with receiving(verified_check(), cores={core}, record=record) as receiver:
        receiver.rows = rows
        receiver.send(cam_at(NOW_US))
        receiver.wait_for(1)
    assert found == {frozenset({core})}


def test_several_threads_count_each_packet_once() -> None:
    cars = [ticket(AUTHORITY) for _ in range(6)]
    sent = [secured(signed_cam(car, NOW_US + number)) for number in range(40) for car in cars]
    with receiving(verified_check(), threads=4) as receiver:
        for number, packet in enumerate(sent):
            receiver.send(packet, packet, source=b"\2\0\0\0\0" + bytes((number % 6,)))
            if number % 60 == 59:
                receiver.wait_for(2 * (number + 1))
    assert Counter(receiver.outcomes()) == {(Reason.ACCEPTED.value, 0): 240, (Reason.DUPLICATE.value, 0): 240}
    assert Counter(row.identity for row in receiver.rows if not row.reason) == {NOW_US + n: 6 for n in range(40)}
    assert len(receiver.stations[0].neighbours) == 6


def test_packet_that_finds_no_room_in_the_queue_is_counted() -> None:
    goes, entered, full = Event(), Event(), list[ReceivedFrame]()
    rows, waiting = list[ReceivedPacket](), list[int]()

    def record(row: ReceivedPacket) -> None:
        entered.set()
        assert goes.wait(60)
        waiting.append(receiver.reception.waiting)
        rows.append(row)

    with receiving(verified_check(), record=record, queue_limit=5, on_full=full.append) as receiver:
        receiver.send(GOOD)
        assert entered.wait(60)
        receiver.send(*(cam_at(NOW_US + number) for number in range(1, 20)))
        goes.set()
        deadline = time.monotonic() + 60
        while len(rows) < 6 and time.monotonic() < deadline:
            time.sleep(0.002)
    assert waiting == [0, 4, 3, 2, 1, 0]
    assert [row.identity - NOW_US for row in rows] == [0, 1, 2, 3, 4, 5]
    assert len(full) == 14
    row = full_queue_row(3, full[0])
    assert (row.receiver, row.source, row.identity, row.size) == (3, int.from_bytes(MAC, "big"), 0, len(GOOD))
    assert (REASONS[row.reason], row.waited, row.verify_ns) == (QUEUE_FULL, 0, 0)
    assert row.received_ns == row.started_ns == row.done_ns == full[0].received_ns


def test_what_comes_during_long_checks_is_lost_in_the_queue_and_not_in_the_socket() -> None:
    """Forty frames come for each that is checked; the socket's buffer alone would say nothing of them."""
    rows, full = list[ReceivedPacket](), list[ReceivedFrame]()

    def record(row: ReceivedPacket) -> None:
        time.sleep(0.02)
        rows.append(row)

    with receiving(verified_check(), record=record, queue_limit=2, on_full=full.append) as receiver:
        for number in range(400):
            receiver.send(cam_at(NOW_US + number))
            time.sleep(0.0005)
        deadline = time.monotonic() + 60
        while len(rows) + len(full) < 400 and time.monotonic() < deadline:
            time.sleep(0.002)
    assert len(rows) + len(full) == 400 and len(full) > 300


def test_what_waits_when_a_receiver_stops_is_counted_as_lost_in_its_queue() -> None:
    """A receiver that is behind by minutes does not make its run wait for them."""
    rows, read, left = list[ReceivedPacket](), list[int](), list[ReceivedFrame]()

    def record(row: ReceivedPacket) -> None:
        time.sleep(0.005)
        rows.append(row)

    with receiving(
        verified_check(), record=record, on_frame=lambda frame, at_ns: read.append(at_ns), on_full=left.append
    ) as receiver:
        receiver.send(*(cam_at(NOW_US + number) for number in range(40)))
        while len(read) < 40:
            receiver.reception.check()
        assert receiver.reception.waiting > 0
    assert len(rows) + len(left) == 40 and left


def test_fault_in_a_thread_is_raised_where_the_run_is_watched() -> None:
    def record(row: ReceivedPacket) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"), receiving(verified_check(), record=record) as receiver:
        receiver.send(GOOD)
        receiver.wait_for(1)


# Without verification


def test_unverified_packets_are_read_whatever_their_signature() -> None:
    with receiving(UnverifiedCheck()) as receiver:
        receiver.send(GOOD, secured(spoiled(signed_cam(TICKET, NOW_US + 1))), UNSECURED)
        rows = receiver.wait_for(3)
    assert [REASONS[row.reason] for row in rows] == ["accepted"] * 3
    assert [row.identity for row in rows] == [NOW_US, NOW_US + 1, packet_hash(UNSECURED)]
    assert [row.content for row in rows] == [len(cam_payload())] * 3
    assert [row.verify_ns for row in rows] == [0] * 3


@pytest.mark.parametrize("check", [verified_check, UnverifiedCheck])
@pytest.mark.parametrize("time_us", [1 << 53, (1 << 63) + 5, (1 << 64) - 1])
def test_generation_time_that_is_none_is_recorded_as_unreadable(check: Callable[[], PacketCheck], time_us: int) -> None:
    """A row has 64 bits with a sign."""
    with receiving(check()) as receiver:
        receiver.send(cam_at(time_us))
        (row,) = receiver.wait_for(1)
    assert row.identity == 0 and np.array(row, np.int64).tolist() == list(row)


def test_age_of_an_unsecured_packet_is_that_of_its_cam() -> None:
    generated_ms = time.time_ns() // 1_000_000 - 3000
    message = CAR._replace(generation_delta_time=its_us_of(generated_ms * 1_000_000) // 1000 % 65_536)
    with receiving(UnverifiedCheck()) as receiver:
        receiver.send(encode_basic_header(1000, 1) + cam_payload(message))
        (row,) = receiver.wait_for(1)
    assert 3_000_000_000 <= row.age_ns <= time.time_ns() - generated_ms * 1_000_000


def test_unverified_packets_that_cannot_be_read_are_counted() -> None:
    unread = [UNSECURED[:-10], UNSECURED[:3], b"", GOOD[:-1], flipped(UNSECURED, 0, 7), secured(b"\3\x80")]
    unread_cams = [
        secured(signed(TICKET, Header(CAM_PSID, NOW_US), cam_payload()[:-1])),
        flipped(UNSECURED, 45, 3),  # messageID of the CAM
    ]
    with receiving(UnverifiedCheck()) as receiver:
        receiver.send(*unread, *unread_cams)
        receiver.wait_for(len(unread) + len(unread_cams))
    assert Counter(REASONS[row.reason] for row in receiver.rows)[Reason.MALFORMED.value] >= len(unread)
    assert "accepted" not in {REASONS[row.reason] for row in receiver.rows}
    assert len(receiver.rows) == len(unread) + len(unread_cams)


def test_numbers_of_reasons_are_those_of_stored_runs() -> None:
    """A row has the number: later reasons are appended."""
    numbered = (
        "ACCEPTED MALFORMED UNSECURED UNSUPPORTED_VERSION UNSUPPORTED_CURVE PROFILE_BROKEN TOO_OLD IN_FUTURE "
        "MESSAGE_EXPIRED UNKNOWN_ITS_AID NOT_YET_VALID EXPIRED OUTSIDE_REGION DUPLICATE "
        "UNKNOWN_SIGNER SIGNATURE_INVALID CHAIN_INVALID UNKNOWN_ISSUER CONTENT_MALFORMED PERMISSION_MISSING"
    )
    assert REASONS[:21] == (*(Reason[name].value for name in numbered.split()), "receiver queue full")
    assert REASONS[21:] == ("certificate revoked", "implausible content")
    assert len(set(REASONS)) == len(REASONS) == len(Reason) + 2


def test_the_guide_to_the_export_has_every_reason_with_its_number() -> None:
    guide = " ".join((Path(__file__).parents[3] / "docs" / "how-to" / "run-v2x-stations.md").read_text("utf-8").split())
    assert ", ".join(f"{number} {reason}" for number, reason in enumerate(REASONS)) + "." in guide
