"""Whether other processes, or the machine below a virtual one, kept the computer busy while a run measured."""

from __future__ import annotations

from typing import Final

import numpy as np

from labconsole.model.trial import Column, Samples, Series

MACHINE: Final = Series(
    "machine",
    "CPU time of the computer and of the run, all cores together, since the first reading",
    (
        Column("t_ns", "i8", "ns", "Time"),
        Column("all_ns", "i8", "ns", "Time of all cores, busy or idle"),
        Column("busy_ns", "i8", "ns", "Time that cores were busy"),
        Column("own_ns", "i8", "ns", "CPU time of the run: its roles, its worker, and the console that started it"),
        Column("steal_ns", "i8", "ns", "Time that a hypervisor gave to others; 0 where it is not known"),
    ),
)
"""Recorded by the worker of each run, ten times a second."""

MOST_OUTSIDE: Final = 0.10
MOST_STEAL: Final = 0.02
"""Shares of all cores above which a figure is not judged."""


def busy(samples: Samples, begin_ns: int, end_ns: int) -> str:
    """Why the computer was too busy between two times of the run's clock, in a few words.

    Empty where it was not, and where nothing is known of it (a run of an earlier version, a system that does not say).
    """
    for role in samples.roles(MACHINE.name):
        table = samples.table(MACHINE.name, role)
        times = table["t_ns"]
        if len(times) < 2:
            continue
        first = max(0, int(np.searchsorted(times, begin_ns, "right")) - 1)
        last = min(len(times) - 1, int(np.searchsorted(times, end_ns, "left")))
        spent = {name: int(column[last] - column[first]) for name, column in table.items()}
        if spent["all_ns"] <= 0:
            continue
        outside = (spent["busy_ns"] - spent["own_ns"]) / spent["all_ns"]
        stolen = spent["steal_ns"] / spent["all_ns"]
        if outside > MOST_OUTSIDE:
            return f"the computer was busy (other processes took {outside:.0%} of its CPU time)"
        if stolen > MOST_STEAL:
            return f"the host of this virtual computer was busy (it took {stolen:.0%} of the CPU time)"
    return ""
