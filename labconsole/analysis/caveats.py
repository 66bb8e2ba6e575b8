"""Caveats for a reader of a run's figures: the trial's own warnings, its status, and signs in its figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.number_format import format_number
from labconsole.model.metrics import LINK_RATE, LINK_RATE_DOWN, LINK_USE
from labconsole.model.series import MACHINE
from labconsole.model.trial import Samples
from labconsole.store.records import RunRow, RunStatus

LINK_BOUND_FROM = 80.0
"""From this share (%) of a link on, a run measures the link and not the console."""

LINK_BOUND_TO = 120.0
"""Beyond this share (%) the link cannot have the rate that the operator stated; up to it, a queue may have helped."""

ENOUGH_BEYOND = 10
"""The least samples beyond a percentile that is judged."""

_ENOUGH_FAR_BEYOND = 50
"""The same from p99 on, where one slow moment makes several: 5,000 samples for p99, 50,000 for p99.9."""
_FAR = 0.01
_ROUNDING = 1e-9


def caveats(run: RunRow) -> tuple[str, ...]:
    """One sentence each: the warnings stored with the run, link-bound, interrupted (or cancelled, failed), trashed."""
    sentences = list(run.warnings)
    if link_bound(run):
        sentences.append(f"Link-bound: {link_share([run])}, so the figures show the link.")
    if above_link_rate(run):
        sentences.append(f"It took {link_share([run])}: the link has another rate than was stated.")
    if run.status.final and run.status is not RunStatus.FINISHED:
        sentences.append(f"Run {run.id} is {run.status.value}: its figures cover what was sampled until then.")
    if run.placement.get("samples") == "stay" and run.status.final and not run.metrics:
        sentences.append(f"Samples of run {run.id} stay on its hosts: it has figures once they are collected.")
    if run.trashed:
        sentences.append(f"Run {run.id} is in the trash.")
    return tuple(sentences)


def link_bound(run: RunRow) -> bool:
    """Whether the run took so much of its link, `LINK_BOUND_FROM` to `LINK_BOUND_TO`, that the link held it back."""
    return LINK_USE in run.metrics and LINK_BOUND_FROM <= run.metrics[LINK_USE].value <= LINK_BOUND_TO


def above_link_rate(run: RunRow) -> bool:
    """Whether the run took more of its link than there is, so that its rate is not as stated."""
    return LINK_USE in run.metrics and run.metrics[LINK_USE].value > LINK_BOUND_TO


def link_share(runs: Sequence[RunRow]) -> str:
    """The mean share of its link that repeats of a scenario took, in words: "92 % of 2 Mbit/s".

    Raises ValueError where no run has the metric `LINK_USE`.
    """
    shares = [run.metrics[LINK_USE].value for run in runs if LINK_USE in run.metrics]
    if not shares:
        raise ValueError("no run has the metric of its share of the link")
    parameters = runs[0].parameters
    rate = None if parameters.get(LINK_RATE_DOWN) else parameters.get(LINK_RATE)
    link = f"{format_number(rate)} Mbit/s" if isinstance(rate, int | float) and rate else "its link"
    return f"{fmean(shares):,.0f} % of {link}"


def too_few(samples: int, quantile: float) -> str:
    """Why a percentile of so many samples is not judged, in a few words; empty where they are enough."""
    beyond = min(quantile, 1 - quantile)
    needed = math.ceil((_ENOUGH_FAR_BEYOND if beyond <= _FAR + _ROUNDING else ENOUGH_BEYOND) / beyond - _ROUNDING)
    return f"p{quantile * 100:g} needs {needed:,} samples (there are {samples:,})" if samples < needed else ""


MOST_OUTSIDE: Final = 0.10
MOST_STEAL: Final = 0.02
"""Shares of all cores above which a figure is not judged."""


def busy(samples: Samples, begin_ns: int, end_ns: int) -> str:
    """Why the computer was too busy between two times of the run's clock, in a few words.

    Empty where it was not, and where that is unknown (a run of an earlier version, a system without these times).
    """
    (reason,) = busy_spans(samples, [(begin_ns, end_ns)])
    return reason


def busy_spans(samples: Samples, spans: Sequence[tuple[int, int]]) -> list[str]:
    """The same for each of several spans (begin, end); the readings are loaded once."""
    tables = [samples.table(MACHINE.name, role) for role in samples.roles(MACHINE.name)]
    return [next(filter(None, (_busy(table, *span) for table in tables)), "") for span in spans]


def _busy(readings: Mapping[str, NDArray[Any]], begin_ns: int, end_ns: int) -> str:
    times = readings["t_ns"]
    if len(times) < 2:
        return ""
    first = max(0, int(np.searchsorted(times, begin_ns, "right")) - 1)
    last = min(len(times) - 1, int(np.searchsorted(times, end_ns, "left")))
    spent = {name: int(column[last] - column[first]) for name, column in readings.items()}
    if spent["all_ns"] <= 0:
        return ""
    outside = (spent["busy_ns"] - spent["own_ns"]) / spent["all_ns"]
    stolen = spent["steal_ns"] / spent["all_ns"]
    if outside > MOST_OUTSIDE:
        return f"the computer was busy (other processes took {outside:.0%} of its CPU time)"
    if stolen > MOST_STEAL:
        return f"the host of this virtual computer was busy (it took {stolen:.0%} of the CPU time)"
    return ""
