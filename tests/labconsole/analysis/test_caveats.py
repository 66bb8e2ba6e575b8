"""Caveats for a reader of a run's figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labconsole.analysis.caveats import busy, caveats, link_bound, link_share, too_few
from labconsole.analysis.comparison import compare, group_repeats
from labconsole.model.metrics import LINK_RATE, LINK_USE
from labconsole.model.series import MACHINE
from labconsole.store.records import RunStatus
from tests.helpers.post_trial import PostTrial, run


@pytest.mark.parametrize(
    ("samples", "quantile", "expected"),
    [
        (5_000, 0.99, False),
        (4_999, 0.99, True),
        (50_000, 0.999, False),
        (49_999, 0.999, True),
        (100, 0.9, False),
        (20, 0.5, False),
        (0, 0.5, True),
        (99, 0.9, True),
        (4_999, 0.01, True),
    ],
)
def test_a_percentile_needs_samples_beyond_it_and_more_of_them_from_p99_on(
    samples: int, quantile: float, expected: bool
) -> None:
    assert bool(too_few(samples, quantile)) is expected


def test_a_percentile_of_too_few_samples_says_how_many_it_needs() -> None:
    assert too_few(250, 0.99) == "p99 needs 5,000 samples (there are 250)"
    assert too_few(250, 0.999) == "p99.9 needs 50,000 samples (there are 250)"


def test_a_run_that_fills_its_link_is_link_bound_and_the_link_is_named() -> None:
    parameters = {"letters": 10, LINK_RATE: 2.0}
    bound = run(1, "open", {LINK_USE: 92.4}, parameters=parameters)
    assert link_bound(bound) and link_share([bound]) == "92 % of 2 Mbit/s"
    assert caveats(bound) == ("Link-bound: 92 % of 2 Mbit/s, so the figures show the link.",)
    assert link_share([bound, run(2, "open", {LINK_USE: 80.4}, parameters=parameters)]) == "86 % of 2 Mbit/s"
    assert link_share([run(1, "open", {LINK_USE: 92.0})]) == "92 % of its link"
    assert not link_bound(run(1, "open", {LINK_USE: 79.9})) and not link_bound(run(1, "open", {}))


def test_a_run_that_took_more_than_its_link_had_another_link() -> None:
    impossible = run(1, "open", {LINK_USE: 1497.0}, parameters={"letters": 10, LINK_RATE: 20.0})
    assert not link_bound(impossible)
    sentence = "took 1,497 % of 20 Mbit/s: the link has another rate than was stated."
    assert caveats(impossible) == (f"It {sentence}",)
    assert f"open {sentence}" in compare(group_repeats([impossible]), PostTrial()).notes


def test_warnings_of_the_trial_come_first_and_the_end_of_the_run_last() -> None:
    found = caveats(run(7, "open", {}, warnings=("Closed loop.",), status=RunStatus.INTERRUPTED))
    assert found == ("Closed loop.", "Run 7 is interrupted: its figures cover what was sampled until then.")
    assert caveats(run(7, "open", {})) == ()


S = 1_000_000_000


class Readings:
    """`Samples` of ten seconds on two cores, a reading each tenth; `outside` and `steal` are shares from 4 s to 6 s."""

    definitions = 1

    def __init__(self, outside: float, steal: float, *computers: str) -> None:
        self._computers = list(computers or ("worker",))
        t_ns = 50 * S + np.arange(101) * (S // 10)
        spent = np.clip(t_ns - 54 * S, 0, 2 * S) * 2
        own = (t_ns - t_ns[0]) // 2
        self._table = {"t_ns": t_ns, "all_ns": (t_ns - t_ns[0]) * 2, "own_ns": own}
        self._table |= {
            "busy_ns": own + (spent * outside).astype(np.int64),
            "steal_ns": (spent * steal).astype(np.int64),
        }

    def roles(self, series: str) -> list[str]:
        return self._computers if series == MACHINE.name else []

    def table(self, series: str, role: str) -> dict[str, Any]:
        return self._table

    def parts(self, series: str, role: str, numbers: Any = None) -> Any:
        yield self._table


@pytest.mark.parametrize(
    ("outside", "steal", "reason"),
    (
        (0.09, 0.0, ""),
        (0.12, 0.0, "the computer was busy (other processes took 12% of its CPU time)"),
        (0.0, 0.019, ""),
        (0.0, 0.03, "the host of this virtual computer was busy (it took 3% of the CPU time)"),
    ),
)
def test_a_busy_computer_is_one_with_other_processes_or_a_greedy_host(
    outside: float, steal: float, reason: str
) -> None:
    assert busy(Readings(outside, steal), 54 * S, 56 * S) == reason


def test_a_busy_host_of_a_run_is_named() -> None:
    assert busy(Readings(0.12, 0.0, "host-obu-1"), 54 * S, 56 * S) == (
        "the computer obu-1 was busy (other processes took 12% of its CPU time)"
    )
    assert busy(Readings(0.0, 0.03, "worker-sender", "host-worker"), 54 * S, 56 * S) == (
        "the host of this virtual computer was busy (it took 3% of the CPU time); "
        "the host of the virtual computer worker was busy (it took 3% of the CPU time)"
    )


def test_load_before_and_after_the_run_does_not_count() -> None:
    assert busy(Readings(0.9, 0.9), 51 * S, 53 * S) == ""
    assert busy(Readings(0.9, 0.0), 57 * S, 59 * S) == ""


def test_no_busy_computer_without_readings() -> None:
    class Nothing(Readings):
        def roles(self, series: str) -> list[str]:
            return []

    assert busy(Nothing(1.0, 1.0), 54 * S, 56 * S) == ""
    assert busy(Readings(1.0, 1.0), 90 * S, 91 * S) == "", "no reading is of that time"
