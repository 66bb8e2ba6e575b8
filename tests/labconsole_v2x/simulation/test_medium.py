"""The simulated radio channel: which frames wait, which collide, and how often that is on a full channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from labconsole_v2x.simulation.arrivals import periodic_arrivals
from labconsole_v2x.simulation.medium import BEST_EFFORT, SLOT_S, Radio, Transmissions, shared_medium
from labconsole_v2x.stations.channel import airtime_us

AIRTIME_S = 0.001
LONGEST_S = BEST_EFFORT.aifs_s + BEST_EFFORT.cw_min * SLOT_S
"""The most that a lone station waits after a busy time."""


def sent(
    station: Sequence[int], ready_s: Sequence[float], *, room: int = 10, seed: int = 1, radio: Radio = BEST_EFFORT
) -> Transmissions:
    frames = np.array(station), np.array(ready_s), np.full(len(station), AIRTIME_S)
    return shared_medium(*frames, radio=radio, room=room, random=np.random.default_rng(seed))


def test_frame_is_sent_at_once_on_an_idle_medium() -> None:
    (begun,) = sent([1], [0.5]).begun_s
    assert 0.5 <= begun <= 0.5 + SLOT_S


def test_frame_waits_for_a_busy_medium_and_its_backoff() -> None:
    first, second = sent([1, 2], [0.5, 0.5005]).begun_s
    wait = second - (first + AIRTIME_S)
    assert BEST_EFFORT.aifs_s - 1e-9 <= wait <= LONGEST_S + 1e-9
    waits = {round((sent([1, 2], [0.5, 0.5005], seed=seed).begun_s[1] - 0.5) / SLOT_S) for seed in range(100)}
    assert len(waits) == BEST_EFFORT.cw_min + 1


def test_frames_of_one_slot_collide_and_no_station_has_them() -> None:
    found = sent([1, 2, 3], [0.5, 0.5, 0.6])
    assert found.collided.tolist() == [True, True, False]
    assert found.begun_s[0] == found.begun_s[1] < found.begun_s[2]


def test_of_frames_that_collide_the_strongest_by_far_is_received() -> None:
    """Stations stay where they are: the same one is received each time."""
    unequal = replace(BEST_EFFORT, spread_db=100.0)
    found = sent([1, 2, 3] * 4, [0.5] * 3 + [0.6] * 3 + [0.7] * 3 + [0.8] * 3, radio=unequal).collided.reshape(4, 3)
    assert found.sum(axis=1).tolist() == [2] * 4 and (found == found[0]).all()
    alike = replace(BEST_EFFORT, spread_db=0.1)
    assert sent([1, 2, 3], [0.5, 0.5, 0.5], radio=alike).collided.all()


def test_frames_of_one_station_follow_each_other_and_never_collide() -> None:
    found = sent([1] * 5, [0.5] * 5)
    assert not found.collided.any() and (np.diff(found.begun_s) >= AIRTIME_S + BEST_EFFORT.aifs_s - 1e-9).all()


def test_frame_that_finds_no_room_at_its_sender_is_never_sent() -> None:
    found = sent([1] * 5 + [2], [0.5] * 5 + [0.7], room=2)
    assert np.isnan(found.begun_s).tolist() == [False, False, True, True, True, False]
    assert not found.collided.any()


@pytest.mark.parametrize(("size", "share", "tolerance"), [(450, 38, 2), (180, 9, 1.5), (89, 5, 1)])
def test_collisions_of_1500_packets_a_second(size: int, share: float, tolerance: float) -> None:
    """As a simulation of the same medium by others gave them (facts of the project)."""
    random = np.random.default_rng(1)
    packets = periodic_arrivals(15, 100.0, 20, 0.01, random)
    airtime_s = np.full(len(packets.station), airtime_us(size) / 1e6)
    found = shared_medium(packets.station, packets.generated_s, airtime_s, radio=BEST_EFFORT, room=20, random=random)
    assert 100 * found.collided.mean() == pytest.approx(share, abs=tolerance)
