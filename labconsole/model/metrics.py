"""Figures of a run: metrics and their definitions, verdicts, and the questions that a comparison answers by them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from labconsole.model.series import Origin


class Direction(StrEnum):
    """Which way a metric is better."""

    HIGHER = "higher"
    LOWER = "lower"
    NEUTRAL = "neutral"


@dataclass(frozen=True)
class MetricKind:
    """A figure that a trial can report: its exact definition is in `description` (shown as tooltip).

    `quantile` is the fraction of a percentile (0.99 for p99), which is flagged where it has too few samples. A figure
    `at_rate` is judged only between runs with the same `OFFERED_RATE`, and only where that is at most a quarter of the
    slowest one's `FULL_SPEED`, as far as that is judged (`labconsole.analysis.column_figures`).
    """

    name: str
    title: str
    unit: str
    direction: Direction
    description: str
    quantile: float | None = None
    at_rate: bool = False


@dataclass(frozen=True)
class Metric:
    """One figure of one run, from `samples` samples.

    `not_judged` is the reason why the figure is shown but never judged (no arrow, colour or finding), or empty; several
    have "; " between them. Figures are in brackets at a reason's end, so that those of several runs can be joined in
    one: "the sender was late (p99 3.1 ms)". `uncertainty` is by how much the value may be wrong for the clocks that it
    was measured between, in its unit (shown as ± behind it); 0 where one clock measured it.
    """

    name: str
    value: float
    unit: str
    direction: Direction = Direction.NEUTRAL
    samples: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    origin: Origin = Origin.MEASURED
    not_judged: str = ""
    uncertainty: float = 0.0

    @property
    def fault(self) -> str:
        """What is wrong with it as a figure, in a few words; empty where nothing is."""
        if math.isfinite(self.value) and 0 <= self.uncertainty < math.inf:
            return ""
        return f"metric {self.name} is {self.value} ± {self.uncertainty}"


OFFERED_RATE = "offered_rate"
"""Name of the metric with the rate at which a run was offered its messages while latency was measured, per second."""

FULL_SPEED = "throughput"
"""Name of the metric with the rate that a run reached at full speed, per second."""

LINK_USE = "link_use"
"""Name of the metric by which a trial says what share of a shaped link its traffic took, in %: it shows which runs are
link-bound (`labconsole.analysis.caveats`)."""

LINK_RATE = "link_rate"
"""Name of the parameter with the rate to which a trial's link is shaped, in Mbit/s; sentences on link-bound runs name
it."""
LINK_RATE_DOWN = "link_rate_down"
"""The same of its other direction, where that has another rate: the sentences name none then."""


class VerdictKind(StrEnum):
    """What a verdict is about: whether the run's data are whole, or what was found in them."""

    INTEGRITY = "integrity"
    """Nothing lost, refused, duplicated or changed: a run that fails it proves nothing (exit code 3)."""
    FINDING = "finding"
    """A service level or another result: the profile's thresholds decide whether it matters."""
    PREFLIGHT = "preflight"
    """A check before T0. Views show those that passed as one line; one that failed ended the run before it began."""


@dataclass(frozen=True)
class Verdict:
    """A pass or fail drawn only from recorded evidence.

    `result` is `"pass"`, `"fail"` or `"unknown"`; that of a preflight check may also be `"warning"` or `"not
    applicable"`.
    """

    name: str
    result: str
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    kind: VerdictKind = VerdictKind.FINDING


@dataclass(frozen=True)
class Evaluation:
    """The result of `Trial.evaluate`. Raises ValueError for a metric that is not a finite number.

    `disturbed` names what disturbed the run from outside (the queue then repeats the run once), or is empty.
    """

    metrics: tuple[Metric, ...]
    verdicts: tuple[Verdict, ...] = ()
    disturbed: str = ""

    def __post_init__(self) -> None:
        for metric in self.metrics:
            if metric.fault:
                raise ValueError(f"{metric.fault}: the trial must leave it out")


@dataclass(frozen=True)
class Question:
    """A question that two scenarios answer by one metric, with the words of the answer.

    With `left_of`, the answer says what is left of it: `subject` "Signing" and `left_of` "messages a second" make
    "Signing leaves 1 of 50 messages a second". Otherwise it has both values: "With a key pool" and "without" make "With
    a key pool 7.5 ms, without 40.6 s: 5,400 times".
    """

    title: str
    metric: str
    subject: str
    left_of: str = ""
    without: str = "without"


@dataclass(frozen=True)
class Ranking:
    """A question that all columns of a comparison answer together, by one metric: what each of them carries, say.

    `subject` begins the sentence: "With p99 under 20 ms" makes "With p99 under 20 ms: from 18,000 msg/s (plain) to 23
    msg/s (hybrid)".
    """

    title: str
    metric: str
    subject: str


@dataclass(frozen=True)
class ServiceLevel:
    """A question on whether a promise was kept, which the runs' verdicts of these names answer."""

    title: str
    verdicts: tuple[str, ...]
