"""The offset of two clocks by exchanged messages, and times corrected by it; and the hook that shifts a clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from labconsole.clock import SHIFT_VARIABLE, now_ns
from labconsole.clock_comparison import (
    AFTER,
    BEFORE,
    COMPARED,
    HOST_COMPARED,
    HOST_JUMPED,
    ClockComparison,
    Exchange,
    Offset,
    best_offset,
    between_hosts_ns,
    clocks_doubt,
    host_offsets,
    host_uncertainties_ns,
    is_settled,
    jump_ns,
)
from labconsole.model.series import Event, Level

MS = 1_000_000
OFFSET = 3_000 * MS


def exchange(at_ns: int, there_ns: int, back_ns: int, offset_ns: int = OFFSET) -> Exchange:
    """What is measured where the ways take so long, and the receiver needs 1 ms to answer."""
    got_ns = at_ns + there_ns
    return Exchange(at_ns, got_ns + offset_ns, got_ns + MS + offset_ns, got_ns + MS + back_ns)


@pytest.mark.parametrize("seed", range(20))
def test_the_offset_is_within_its_uncertainty_whatever_the_ways_take(seed: int) -> None:
    random = np.random.default_rng(seed)
    longest = 10 ** random.integers(0, 10, (int(random.integers(1, 20)), 2))
    taken = [(int(random.integers(10**12)), *map(int, random.integers(0, one + 1))) for one in longest]
    found = best_offset([exchange(*one) for one in taken], 0, 0)
    assert found is not None
    assert abs(found.offset_ns - OFFSET) <= found.uncertainty_ns
    shortest = min(there + back for _, there, back in taken)
    assert found.uncertainty_ns == max(1, (shortest + 1) // 2)
    assert found.receiver_ns - found.sender_ns == found.offset_ns


def test_the_wall_offset_has_what_each_clock_is_from_unix_time() -> None:
    found = best_offset([exchange(0, MS, MS)], sender_wall_offset_ns=10 * MS, receiver_wall_offset_ns=10 * MS - OFFSET)
    assert found is not None and found.wall_ns == 0


def test_answers_that_no_clock_can_give_are_left_out() -> None:
    good = exchange(0, MS, MS)
    negative = Exchange(0, OFFSET, OFFSET + 9 * MS, MS)
    backwards = Exchange(0, OFFSET, OFFSET - 1, MS)
    assert best_offset([negative, good, backwards], 0, 0) == best_offset([good], 0, 0)
    assert best_offset([negative, backwards], 0, 0) is None


@pytest.mark.parametrize(
    ("round_trips_ms", "settled"),
    [
        ([2.0] * 20, False),
        ([2.0] * 21, True),
        ([9.0, 9.0, *[2.0] * 20], False),
        ([9.0, 9.0, *[2.0] * 21], True),
        ([2.0, *[9.0] * 20], True),
        ([2.0, *[9.0] * 19, 1.7], False),
        ([2.0, *[9.0] * 19, 1.9], True),
        ([2.0, *[2.0 - 0.02 * number for number in range(20)]], False),
        ([], False),
    ],
)
def test_an_offset_is_settled_once_round_trips_are_not_shorter(round_trips_ms: list[float], settled: bool) -> None:
    assert is_settled([exchange(0, 0, round(round_trip * MS)) for round_trip in round_trips_ms]) is settled


def offset(sender_ns: int, offset_ns: int, uncertainty_ns: int = MS) -> Offset:
    return Offset(offset_ns, uncertainty_ns, sender_ns, sender_ns + offset_ns, 0, 0, 8)


def events(*compared: tuple[str, Offset]) -> list[Event]:
    return [Event(0, "clock", Level.INFO, COMPARED, "", {"phase": p, **one.to_json()}) for p, one in compared]


def test_times_are_corrected_by_the_offset_that_changes_evenly_between_both_measurements() -> None:
    """100 ppm over 1,000 s: the clock gains 100 ms."""
    second = 1_000 * MS
    comparison = ClockComparison.of_events(
        events((BEFORE, offset(0, OFFSET)), (AFTER, offset(1000 * second, OFFSET + 100 * MS, 2 * MS)))
    )
    assert comparison is not None and comparison.uncertainty_ns == 2 * MS
    sender_ns = np.array([0, 250, 500, 1000, 1010], np.int64) * second
    receiver_ns = sender_ns + OFFSET + sender_ns // 10_000
    assert np.abs(comparison.to_sender(receiver_ns) - sender_ns).max() <= 1


def test_with_one_measurement_the_offset_stays_and_without_there_is_no_comparison() -> None:
    comparison = ClockComparison.of_events(events((BEFORE, offset(5, OFFSET))))
    assert comparison is not None and comparison.after is None
    assert comparison.to_sender(np.array([OFFSET + 7])).tolist() == [7]
    assert ClockComparison.of_events(events((AFTER, offset(5, OFFSET)))) is None


def host_compared(host: str, phase: str, uncertainty_ns: int) -> Event:
    data = {"host": host, "phase": phase, "clock_domain": host, **Offset(7, uncertainty_ns, 1, 8, 0, 0, 9).to_json()}
    return Event(0, "worker", Level.INFO, HOST_COMPARED, "", data)


def test_the_uncertainty_between_hosts_is_that_of_the_two_worst_each_in_its_worst_phase() -> None:
    one = [host_compared("obu-1", BEFORE, 10), host_compared("obu-1", "during", 40), host_compared("obu-1", AFTER, 20)]
    assert host_uncertainties_ns(one) == {"obu-1": 40} and len(host_offsets(one)["obu-1"]) == 3
    assert between_hosts_ns(one) == 40, "the console has none"
    three = [*one, host_compared("obu-2", BEFORE, 5), host_compared("obu-3", BEFORE, 60)]
    assert between_hosts_ns(three) == 100
    assert between_hosts_ns(events((BEFORE, offset(5, OFFSET)))) == 0 and not host_offsets([])


def test_a_clock_has_jumped_where_uncertainties_and_drift_do_not_explain_its_change() -> None:
    before = Offset(5_000 * MS, 100_000, 0, 0, 0, 0, 1)
    drift_ns = 10_000 * MS * 200 // 1_000_000  # 2 ms in 10 s

    def after(change_ns: int) -> Offset:
        return replace(before, offset_ns=before.offset_ns + change_ns, sender_ns=10_000 * MS)

    explained = drift_ns + 200_000
    for sign in (1, -1):
        assert jump_ns(before, after(sign * explained)) == 0
        assert jump_ns(before, after(sign * (explained + 1))) == sign * (explained + 1)


def test_a_jump_of_a_host_leaves_a_latency_open_however_exact_the_offsets_are() -> None:
    compared = [host_compared("obu-1", BEFORE, 10), host_compared("obu-1", AFTER, 10)]
    assert clocks_doubt(compared, 1000.0) == ""
    jumped = Event(9, "worker", Level.WARNING, HOST_JUMPED, "It jumped.", {"host": "obu-1", "jump_ns": 5})
    assert clocks_doubt([*compared, jumped], 1000.0) == "the clock of obu-1 jumped during the run"


@pytest.mark.parametrize(("at_ns", "jumped_ns"), [(0, -50_000 * MS), (2**62, 0)])
def test_the_hook_lets_a_clock_jump_at_a_moment(at_ns: int, jumped_ns: int) -> None:
    program = "import time; from labconsole import clock; print(clock.now_ns() - time.perf_counter_ns())"
    environment = {**os.environ, SHIFT_VARIABLE: f"1000,0,{-50_000 * MS},{at_ns}"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60)
    assert abs(int(done.stdout) - jumped_ns) < 50 * MS


def test_the_hook_shifts_both_clocks_of_a_console_and_its_clock_domain() -> None:
    program = (
        "import json, time; from labconsole import clock; before = time.perf_counter_ns(); mine = clock.now_ns(); "
        "print(json.dumps([before, mine, clock.wall_ns() - time.time_ns(), clock.wall_offset_ns(), "
        "clock.clock_domain()]))"
    )
    found = []
    for shift in ("", "5000000000,100"):
        command = [sys.executable, "-c", program]
        environment = {**os.environ, SHIFT_VARIABLE: shift}
        done = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60)
        found.append(json.loads(done.stdout))
    (before, plain, wall, wall_offset, domain), (then, shifted, wall_shift, shifted_wall_offset, other) = found
    assert 0 <= plain - before < 50 * MS and abs(wall) < 50 * MS
    expected = 5_000 * MS + then // 10_000
    assert 0 <= shifted - then - expected < 50 * MS
    assert abs(wall_shift - expected) < 50 * MS
    assert abs(shifted_wall_offset - wall_offset) < 50 * MS, "the wall clock is shifted as well"
    assert domain != other
    assert now_ns() > before
