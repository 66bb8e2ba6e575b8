"""When the computer was too busy for a figure to be judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labconsole.analysis.busy import MACHINE, busy

S = 1_000_000_000


class Readings:
    """`Samples` of ten seconds on two cores, a reading each tenth; `outside` and `steal` are shares from 4 s to 6 s."""

    definitions = 1

    def __init__(self, outside: float, steal: float) -> None:
        t_ns = 50 * S + np.arange(101) * (S // 10)
        spent = np.clip(t_ns - 54 * S, 0, 2 * S) * 2
        own = (t_ns - t_ns[0]) // 2
        self._table = {"t_ns": t_ns, "all_ns": (t_ns - t_ns[0]) * 2, "own_ns": own}
        self._table |= {
            "busy_ns": own + (spent * outside).astype(np.int64),
            "steal_ns": (spent * steal).astype(np.int64),
        }

    def roles(self, series: str) -> list[str]:
        return ["worker"] if series == MACHINE.name else []

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


def test_what_others_did_before_and_after_does_not_count() -> None:
    assert busy(Readings(0.9, 0.9), 51 * S, 53 * S) == ""
    assert busy(Readings(0.9, 0.0), 57 * S, 59 * S) == ""


def test_nothing_is_said_where_nothing_is_known() -> None:
    class Nothing(Readings):
        def roles(self, series: str) -> list[str]:
            return []

    assert busy(Nothing(1.0, 1.0), 54 * S, 56 * S) == ""
    assert busy(Readings(1.0, 1.0), 90 * S, 91 * S) == "", "no reading is of that time"
