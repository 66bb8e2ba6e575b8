"""When CAMs are due: fixed rates without drift, DCC, and the generation rules of EN 302 637-2, 6.1.3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import hypot
from random import Random

import pytest

from labconsole_v2x.stations.cam_timing import CamTiming, RuleTiming
from labconsole_v2x.stations.routes import Movement, Route, place, vehicle_route

MS = 1_000_000
BEGIN_NS = 3_000_000 * MS
STANDING = Movement(0.0, 0.0, *place(0.0, 0.0))


def due_ns(timing: CamTiming, count: int) -> list[int]:
    """The due times of a service that has begun."""
    found = []
    for _ in range(count):
        found.append(timing.due_ns)
        timing.advance()
    return found


def generated_ms(
    timing: CamTiming, movement: Callable[[float], Movement], seconds: float, off_ms: int = 0
) -> list[float]:
    """The times in ms after the beginning at which CAMs are generated."""
    return [at for at, _ in generated(timing, movement, seconds, off_ms)]


def generated(
    timing: CamTiming, movement: Callable[[float], Movement], seconds: float, off_ms: int = 0
) -> Iterator[tuple[float, Movement]]:
    timing.begin(BEGIN_NS)
    while (at_ns := timing.due_ns - BEGIN_NS) < seconds * 1e9:
        now = movement(at_ns / 1e9)
        if timing.generates(now, off_ms):
            yield at_ns / MS, now
        timing.advance()


def straight(speed: float, heading: float = 0.0) -> Callable[[float], Movement]:
    """A vehicle that drives north at a constant speed."""
    return lambda seconds: STANDING._replace(north_m=speed * seconds, speed=speed, heading=heading)


def turning(degrees_s: float) -> Callable[[float], Movement]:
    """A vehicle that turns on the spot, through north."""
    return lambda seconds: STANDING._replace(heading=(350 + degrees_s * seconds) % 360)


def accelerating(change_m_s2: float) -> Callable[[float], Movement]:
    """A vehicle whose speed changes but, as its position is kept, only that."""
    return lambda seconds: STANDING._replace(speed=10 + change_m_s2 * seconds)


def intervals(times: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(times)]


# Fixed rates


@pytest.mark.parametrize("rate", [1, 3, 7, 10, 20, 100, 1000])
def test_due_times_of_a_fixed_rate_do_not_drift(rate: float) -> None:
    timing = CamTiming(12_345, rate)
    timing.begin(BEGIN_NS)
    found = due_ns(timing, 10_001)
    assert found[0] == BEGIN_NS + 12_345
    assert found[-1] - found[0] == round(10_000 * 1e9 / rate)
    assert all(abs(interval - 1e9 / rate) <= 1 for interval in intervals([float(one) for one in found]))


def test_every_due_time_of_a_fixed_rate_gives_a_cam_without_dcc() -> None:
    assert len(generated_ms(CamTiming(0, 20), lambda _: STANDING, 10)) == 200


@pytest.mark.parametrize(
    ("rate", "off_ms", "interval_ms"),
    [
        (10, 100, 100),
        (10, 200, 200),
        (10, 1000, 1000),
        (100, 100, 100),
        (20, 500, 500),
        (1, 1000, 1000),
        (2, 400, 500),
        (4, 400, 500),
        (7, 1000, 1000),
        (3, 400, 2000 / 3),
        (12, 100, 500 / 3),
        (15, 100, 400 / 3),
    ],
)
def test_dcc_lengthens_the_interval_to_the_next_due_time_that_is_allowed(
    rate: float, off_ms: int, interval_ms: float
) -> None:
    times = generated_ms(CamTiming(0, rate), lambda _: STANDING, 20, off_ms)
    assert len(times) > 10
    assert intervals(times) == pytest.approx([interval_ms] * (len(times) - 1))


# Generation rules


def test_standing_station_sends_once_a_second() -> None:
    times = generated_ms(RuleTiming(0), lambda _: STANDING, 30)
    assert times == [1000.0 * number for number in range(30)]


@pytest.mark.parametrize(
    ("movement", "interval_ms"),
    [
        (straight(50), 100),  # 4 m in 80 ms: not before T_GenCamMin
        (straight(39), 200),  # 3.9 m in 100 ms
        (straight(13), 400),  # 4 m in 308 ms
        (straight(10), 500),  # exactly 4 m in 400 ms is not more than 4 m
        (straight(3), 1000),  # 3 m in T_GenCamMax
        (turning(50), 100),
        (turning(40), 200),  # exactly 4 degrees in 100 ms are not more than 4 degrees
        (turning(-41), 100),
        (turning(9), 500),
        (turning(3.9), 1000),
        (accelerating(6), 100),
        (accelerating(5), 200),  # exactly 0.5 m/s in 100 ms
        (accelerating(-2), 300),
        (accelerating(0.49), 1000),
    ],
)
def test_cam_is_generated_when_heading_position_or_speed_has_changed_enough(
    movement: Callable[[float], Movement], interval_ms: float
) -> None:
    times = generated_ms(RuleTiming(0), movement, 15)
    assert intervals(times) == [interval_ms] * (len(times) - 1)
    assert len(times) == -(-15_000 // interval_ms)


def test_heading_across_north_is_a_small_change() -> None:
    """359 degrees and 1 degree differ by 2."""
    times = generated_ms(RuleTiming(0), lambda s: STANDING._replace(heading=359.0 if round(s * 10) % 2 else 1.0), 10)
    assert times == [1000.0 * number for number in range(10)]


def test_interval_of_a_change_is_kept_for_three_cams_and_then_is_a_second() -> None:
    """N_GenCam: after a CAM because of a change, T_GenCam is its interval; after three by time T_GenCamMax again."""
    times = generated_ms(RuleTiming(0), lambda s: straight(13)(min(s, 2.0)), 8)
    assert times[:6] == [0, 400, 800, 1200, 1600, 2000]
    assert intervals(times[5:]) == [400, 400, 400, 1000, 1000, 1000, 1000]


def test_change_during_those_three_counts_them_again() -> None:
    def movement(seconds: float) -> Movement:
        return STANDING._replace(heading=sum(10.0 for at in (0.3, 0.9, 2.3) if seconds >= at))

    # By change at 0.3 (T = 0.3 s), by time at 0.6, by change at 0.9, by time at 1.2, 1.5, 1.8, by change at 2.3 ...
    times = generated_ms(RuleTiming(0), movement, 7)
    assert times == [0, 300, 600, 900, 1200, 1500, 1800, 2300, 2800, 3300, 3800, 4800, 5800, 6800]


@pytest.mark.parametrize("off_ms", [0, 100, 200, 500, 1000])
def test_dcc_delays_a_cam_of_a_fast_vehicle(off_ms: int) -> None:
    times = generated_ms(RuleTiming(0), straight(50), 10, off_ms)
    assert set(intervals(times)) == {max(100, off_ms)}


def test_dcc_never_delays_a_cam_beyond_a_second() -> None:
    assert set(intervals(generated_ms(RuleTiming(0), lambda _: STANDING, 10, 5000))) == {1000}


def test_rules_are_checked_each_100_ms_from_the_offset_on() -> None:
    assert generated_ms(RuleTiming(37 * MS), straight(50), 1)[:3] == [37, 137, 237]


@pytest.mark.parametrize("off_ms", [0, 200, 400, 1000])
@pytest.mark.parametrize("seed", range(25))
def test_any_drive_keeps_the_rules(seed: int, off_ms: int) -> None:
    """For random drives, with stops: no interval under the least, none over a second, no change left unsent."""
    random = Random(f"drive/{seed}")
    route = vehicle_route(random)
    fast = Route(0, 0, random.uniform(15, 60), random.uniform(5, 30), random.uniform(0, 5), random.uniform(2, 9))
    stop_s, turned = random.uniform(3, 20), random.choice((route, fast))

    def movement(seconds: float) -> Movement:
        now = turned.at(min(seconds, stop_s))
        return now if seconds < stop_s else now._replace(speed=0.0, acceleration=0.0)

    least_ms = max(100, off_ms)
    sent = list(generated(RuleTiming(random.randrange(100 * MS)), movement, 30, off_ms))
    gaps = [round(gap, 6) for gap in intervals([at for at, _ in sent])]
    assert all(least_ms <= gap <= 1000 for gap in gaps)
    for (at, last), (following, _) in pairwise(sent):
        checks = [at + 100 * number for number in range(1, round((following - at) / 100))]
        unsent = [check for check in checks if check - at >= least_ms - 1e-6 and changed(last, movement(check / 1000))]
        assert unsent == []


def changed(last: Movement, now: Movement) -> bool:
    """6.1.3: heading by more than 4 degrees, position by more than 4 m, or speed by more than 0.5 m/s."""
    apart = abs(now.heading - last.heading)
    return (
        min(apart, 360 - apart) > 4
        or hypot(now.east_m - last.east_m, now.north_m - last.north_m) > 4
        or abs(now.speed - last.speed) > 0.5
    )
