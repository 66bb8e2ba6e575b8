"""A receiver counts every damaged packet, raises for none, and keeps its memory in a flood of unknown certificates.

`LABCONSOLE_MUTATED_PACKETS=1000000 pytest -m nightly -k mutated -s` runs a million by hand and prints the counts.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator

import psutil
import pytest

from labconsole_v2x.security.distribution import CertificateInclusion, Distribution
from labconsole_v2x.security.encoding import encode_signed_data, encode_signer, encode_to_be_signed_data
from labconsole_v2x.security.keys import signature_digest
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import CAM_PSID, Header
from labconsole_v2x.security.trust import StoreLimits, TrustStore
from labconsole_v2x.security.verification import CheckOrder, CheckSettings, Reason, Verifier
from labconsole_v2x.stations.neighbours import MOST_NEIGHBOURS
from labconsole_v2x.stations.receiving import (
    REASONS,
    ReceivedFrame,
    ReceivedPacket,
    ReceivingStation,
    UnverifiedCheck,
    VerifiedCheck,
)
from labconsole_v2x.stations.routes import Route
from labconsole_v2x.stations.sending import CamSender, Identity
from tests.labconsole_v2x.security.lab_certificates import (
    NOW_US,
    cam_payload,
    root_authority,
    ticket,
    ticket_authority,
)
from tests.labconsole_v2x.stations.mutated_packets import BASIC, Lab, mutated_packets

MUTATED_PACKETS = int(os.environ.get("LABCONSOLE_MUTATED_PACKETS", "100000"))
NEVER = {Reason.MESSAGE_EXPIRED, Reason.REVOKED}
"""Reasons that no packet here has but by chance: none has an expiry time, and no certificate is distrusted."""
LIMITS = StoreLimits()
MB = 1_000_000


class CountingStation:
    """A receiving station that takes part in certificate distribution and counts its packets by reason."""

    def __init__(self, number: int, lab: Lab, order: CheckOrder) -> None:
        self.trust = TrustStore(LIMITS)
        self.trust.add_root(lab.root.certificate)
        own = lab.stations[0]
        self.sender = CamSender(Identity.of(own.certificate.hashed_id8), ticket=own.certificate, key=own.key)
        self.sender.distribution = Distribution(own.certificate, self.trust, CertificateInclusion.ETSI)
        verifier = Verifier(self.trust, CheckSettings(order=order, decode_content=False), clock=lambda: NOW_US)
        check = VerifiedCheck(verifier, [self.sender.distribution])
        self.station = ReceivingStation(number, check, (), self._record)
        self.first: Counter[str] = Counter()
        self.again: Counter[str] = Counter()

    def take(self, frame: ReceivedFrame) -> None:
        self.station.take(frame)

    def _record(self, row: ReceivedPacket) -> None:
        assert_storable(row)
        (self.again if row.waited else self.first)[REASONS[row.reason]] += 1

    def check_bounds(self) -> None:
        """Its certificates, waiting packets and neighbours keep their limits."""
        waiting = list(self.trust._waiting)
        assert len(self.trust) <= 1 + LIMITS.tickets + LIMITS.authorities + LIMITS.probation
        assert len(self.trust._probation) <= LIMITS.probation
        assert len(self.trust._by_octets) <= len(self.trust)
        assert len(waiting) <= LIMITS.waiting_packets
        assert sum(len(packet.octets) for packet in waiting) <= LIMITS.waiting_octets
        assert len(self.station.neighbours) <= MOST_NEIGHBOURS


def assert_storable(row: ReceivedPacket) -> None:
    """A role writes rows as 64-bit numbers."""
    assert all(-(1 << 63) <= value < 1 << 63 for value in row), row


def receive_mutated_packets(count: int) -> tuple[Counter[str], Counter[str]]:
    """Reasons of the verified packets, both orders of checks in turn, and of the same ones without verification."""
    lab = Lab()
    stations = [CountingStation(number, lab, order) for number, order in enumerate(CheckOrder)]
    unverified: Counter[str] = Counter()

    def read(row: ReceivedPacket) -> None:
        assert_storable(row)
        unverified[REASONS[row.reason]] += 1

    reader = ReceivingStation(2, UnverifiedCheck(), (), read)
    for number, packet in enumerate(mutated_packets(lab, count, seed=13)):
        frame = ReceivedFrame((number * 7919 % 5000).to_bytes(6, "big"), packet, number)
        station = stations[number % 2]
        station.take(frame)
        reader.take(frame)
        if number % 50 == 0:
            sent = station.sender.create(Route().at(0))  # with what it was asked for, or asks for
            scan_signed_data(sent.frame[18:])
    for station in stations:
        station.check_bounds()
    assert [station.first.total() for station in stations] == [count - count // 2, count // 2]
    return stations[0].first + stations[1].first, unverified


def check_outcome(count: int, seldom: set[Reason]) -> None:
    """All are counted, and every reason occurs but those that are seldom."""
    began = time.monotonic()
    verified, unverified = receive_mutated_packets(count)
    print(f"\n{count:,} packets in {time.monotonic() - began:.0f} s; verified: {verified.most_common()}")
    print(f"without verification: {unverified.most_common()}")
    rejected = verified.total() - verified["accepted"]
    assert verified["accepted"] + rejected == unverified.total() == count
    assert unverified["accepted"] > verified["accepted"] > 0.005 * count
    assert {reason for reason in Reason if verified[reason.value]} >= set(Reason) - seldom


def test_two_thousand_mutated_packets_are_counted_and_none_raises() -> None:
    times = {Reason.TOO_OLD, Reason.IN_FUTURE, Reason.NOT_YET_VALID, Reason.EXPIRED}
    content = {Reason.UNKNOWN_ITS_AID, Reason.OUTSIDE_REGION, Reason.CONTENT_MALFORMED}
    check_outcome(2_000, NEVER | times | content)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_mutated_packets_are_counted_and_none_raises() -> None:
    check_outcome(MUTATED_PACKETS, NEVER)


def packets_with_fresh_certificates(count: int) -> Iterator[bytes]:
    """Packets with a valid signature, each of another ticket of an unknown AA; their keys are the same."""
    car = ticket(ticket_authority(root_authority()))
    template, spot = car.certificate.octets, len(car.certificate.octets) - 8
    tbs = encode_to_be_signed_data(cam_payload(), Header(CAM_PSID, NOW_US))
    for number in range(count):
        octets = template[:spot] + number.to_bytes(8, "big")  # in the signature of the AA
        signature = car.key.sign_digest(signature_digest("sha256", tbs, octets))
        yield BASIC + encode_signed_data("sha256", tbs, encode_signer((octets,)), signature)


def packets_with_fresh_digests(count: int) -> Iterator[bytes]:
    """Packets of unknown tickets with digest only; what their signatures are does not matter."""
    car = ticket(ticket_authority(root_authority()))
    tbs = encode_to_be_signed_data(cam_payload(), Header(CAM_PSID, NOW_US))
    signature = car.key.sign_digest(bytes(32))
    for number in range(count):
        yield BASIC + encode_signed_data("sha256", tbs, encode_signer(digest=number.to_bytes(8, "big")), signature)


@pytest.mark.parametrize("count", [3_000, pytest.param(50_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("order", CheckOrder)
def test_flood_with_unknown_certificates_keeps_memory(order: CheckOrder, count: int) -> None:
    lab = Lab()
    receiver = CountingStation(0, lab, order)
    with_certificate, with_digest = packets_with_fresh_certificates(count), packets_with_fresh_digests(count)
    process = psutil.Process()
    before = 0
    for number, pair in enumerate(zip(with_certificate, with_digest, strict=True)):
        for packet in pair:
            receiver.take(ReceivedFrame(number.to_bytes(6, "big"), packet, number))
        if number == 1000:  # every buffer is full
            receiver.check_bounds()
            assert len(receiver.trust._probation) == LIMITS.probation
            assert len(receiver.trust._waiting) == LIMITS.waiting_packets
            before = process.memory_info().rss
    receiver.check_bounds()
    assert receiver.first == {Reason.UNKNOWN_ISSUER.value: count, Reason.UNKNOWN_SIGNER.value: count}
    # A stored certificate with its key takes more than 4 kB: 8 MB for 2,000, 200 MB for 50,000.
    assert process.memory_info().rss - before < (4 * MB if count < 10_000 else 20 * MB)
