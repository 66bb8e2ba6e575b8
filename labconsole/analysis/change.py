"""A figure against the baseline's: difference, ratio with its interval, and what may be judged of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from labconsole.analysis.intervals import LEVEL, Interval, centre, holm, ratio
from labconsole.trial import Direction, Origin

ENOUGH_REPEATS = 5
"""Repeats that both sides must have so that a change is judged."""

ONE_RUN = "one run: no interval"
FEW_REPEATS = f"fewer than {ENOUGH_REPEATS} repeats"


class Judgement(StrEnum):
    """What a change against the baseline amounts to. Only the first two are coloured."""

    BETTER = "better"
    WORSE = "worse"
    NO_CHANGE = "no significant change"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Change:
    """A cell against the baseline.

    `percent` is of the baseline (NaN where that is zero and the other is not); `interval` is that of the ratio (1.0: no
    change). `p` is adjusted by Holm over all judged cells of the table, and None where nothing is judged. `note` says
    in a few words why there is no interval, or no judgement ("" otherwise).
    """

    percent: float
    ratio: float | None
    interval: Interval | None
    p: float | None
    judgement: Judgement
    note: str


@dataclass(frozen=True)
class Side:
    """What one column has of a metric: a value per run, or the one published."""

    values: tuple[float, ...]
    origins: frozenset[Origin]
    link_bound: bool

    @property
    def published(self) -> bool:
        """Whether it is a published point, which has no runs."""
        return self.origins == {Origin.PUBLISHED}


def change(reference: Side, other: Side, direction: Direction) -> Change:
    """Compare two sides, both with values; what is judged has its own p and is still to be `corrected`."""
    percent = _percent(centre(reference.values), centre(other.values))
    found = ratio(reference.values, other.values, point=reference.published or other.published)
    if found is None:
        return Change(percent, None, None, None, Judgement.NOT_JUDGED, "zeros: no ratio")
    reason = _not_judged(reference, other, direction)
    if reason or found.interval is None:
        return Change(percent, found.value, found.interval, None, Judgement.NOT_JUDGED, reason)
    judgement = Judgement.NO_CHANGE
    if not found.interval.holds(1.0):
        judgement = Judgement.BETTER if (found.value > 1) is (direction is Direction.HIGHER) else Judgement.WORSE
    return Change(percent, found.value, found.interval, found.p, judgement, "")


def corrected(changes: Sequence[Change | None]) -> list[Change | None]:
    """All changes of a table with Holm's p, and without the judgements that do not withstand it."""
    adjusted = holm([None if one is None else one.p for one in changes])
    return [
        one if one is None or p is None else _withstands(replace(one, p=p), p)
        for one, p in zip(changes, adjusted, strict=True)
    ]


def _withstands(one: Change, p: float) -> Change:
    if one.judgement is Judgement.NO_CHANGE or p < 1 - LEVEL:
        return one
    return replace(one, judgement=Judgement.NO_CHANGE, note=f"not significant after Holm's correction, p {p:.2g}")


def _percent(reference: float, other: float) -> float:
    if other == reference:
        return 0.0
    return (other - reference) / abs(reference) * 100 if reference else math.nan


def _not_judged(reference: Side, other: Side, direction: Direction) -> str:
    """Why the change must not be judged, in a few words; nothing where it may be."""
    sides = (reference, other)
    measured = [side for side in sides if not side.published]
    if not measured:
        return "published points: no interval"
    if any(len(side.values) < 2 for side in measured):
        return ONE_RUN
    if reference.origins != other.origins or len(reference.origins) > 1:
        return "different origins"
    if any(side.link_bound for side in sides):
        return "link-bound"
    if any(len(side.values) < ENOUGH_REPEATS for side in sides):
        return FEW_REPEATS
    if direction is Direction.NEUTRAL:
        return "neither way is better"
    return ""
