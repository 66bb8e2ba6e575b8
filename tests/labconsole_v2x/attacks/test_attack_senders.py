"""Rightly signed CAMs with false content: what differs from the truth, and when the ID of another station is used."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from labconsole.clock import now_ns
from labconsole_v2x.attacks.attack_senders import FALSE_SPEED, JUMP_M, ImplausibleSender
from labconsole_v2x.attacks.tracking import observe
from labconsole_v2x.choices import Falsehood
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.geonetworking import secured_octets
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.regions import distance_m
from labconsole_v2x.security.structures import Curve
from labconsole_v2x.security.verification import Verifier
from labconsole_v2x.stations.routes import Movement, vehicle_route
from labconsole_v2x.stations.sending import Identity
from tests.labconsole_v2x.stations.cam_senders import Clock, Lab, set_clock

ROUTE = vehicle_route(Random(1))
LONG_AGO, VICTIM = 0, 4711


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return set_clock(monkeypatch)


@pytest.fixture(scope="module")
def lab() -> Lab:
    return Lab()


def sent(lab: Lab, falsehood: Falsehood, heard_ids: dict[int, int], count: int) -> list[tuple[Movement, Cam, int]]:
    """True movement, CAM as a receiver accepts it, and the sender's own station ID."""
    key = SoftwareKey.generate(Curve.P256)
    ticket = lab.pki.ticket(key.public_key, lab.start_s)
    identity = Identity.of(ticket.hashed_id8)
    sender = ImplausibleSender(identity, falsehood, heard_ids, Random(1), ticket=ticket, key=key)
    verifier, found = Verifier(lab.trust()), []
    for tenth in range(count):
        movement = ROUTE.at(tenth / 10)
        secured = secured_octets(sender.create(movement).frame[14:])
        assert secured is not None
        outcome = verifier.verify(secured)
        assert outcome.accepted and isinstance(outcome.message, Cam), outcome.detail
        found.append((movement, outcome.message, identity.station_id))
    return found


def moved_m(movement: Movement, message: Cam) -> float:
    """How far the position in a CAM is from the true one."""
    said = message.position
    return distance_m((movement.latitude, movement.longitude), (said.latitude, said.longitude))


def is_fast(message: Cam) -> bool:
    """Whether a CAM has a speed that is none of the route's."""
    return message.motion is not None and message.motion.speed > 4000


def test_false_positions_are_elsewhere_each_time(lab: Lab, clock: Clock) -> None:
    places = set()
    for movement, message, own in sent(lab, Falsehood.POSITION, {}, 50):
        assert JUMP_M[0] * 0.99 <= moved_m(movement, message) <= JUMP_M[1] * 1.01
        assert message.motion is not None and message.motion.speed == round(movement.speed * 100)
        assert message.station_id == own
        places.add(message.position)
    assert len(places) == 50


def test_false_speeds_are_beyond_the_true_ones(lab: Lab, clock: Clock) -> None:
    for movement, message, _ in sent(lab, Falsehood.SPEED, {}, 50):
        assert message.motion is not None
        excess = message.motion.speed / 100 - movement.speed
        assert FALSE_SPEED[0] - 0.01 <= excess <= FALSE_SPEED[1] + 0.01 and moved_m(movement, message) < 0.1


def test_station_id_of_another_station_is_used_once_it_was_heard_long_enough(lab: Lab, clock: Clock) -> None:
    for heard_ids, used in (({VICTIM: LONG_AGO}, True), ({VICTIM: now_ns() + 60 * 10**9}, False), ({}, False)):
        for movement, message, own in sent(lab, Falsehood.DUPLICATE, heard_ids, 5):
            assert message.station_id == (VICTIM if used else own)
            assert (moved_m(movement, message) > JUMP_M[0] * 0.99) is not used


def test_mixed_falsehoods_come_in_turn(lab: Lab, clock: Clock) -> None:
    messages = sent(lab, Falsehood.MIXED, {VICTIM: LONG_AGO}, 9)
    for first in range(3):
        kinds = [
            (
                moved_m(movement, message) > 1,
                message.motion is not None and message.motion.speed > 4000,
                message.station_id,
            )
            for movement, message, _ in islice(messages, first, None, 3)
        ]
        own = messages[0][2]
        assert set(kinds) == [{(True, False, own)}, {(False, True, own)}, {(False, False, VICTIM)}][first]


def test_station_id_is_read_from_signed_cams_alone(lab: Lab, clock: Clock) -> None:
    sender = lab.sender()
    frame = sender.create(ROUTE.at(0)).frame
    seen = observe(frame, 0)
    assert seen is not None and seen.station_id == sender.identity.station_id
    assert observe(frame[:60], 0) is None and observe(bytes(100), 0) is None
