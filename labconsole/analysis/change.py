"""A figure against the baseline's: difference, ratio with its interval, and what may be judged of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from labconsole.analysis.confidence_intervals import LEVEL, Interval, centre, holm, ratio
from labconsole.analysis.number_format import FACTOR_FROM, format_change, format_difference, format_factor
from labconsole.model.trial import Direction, Origin

ENOUGH_REPEATS = 5
"""Repeats that both sides must have so that a change is judged."""

ONE_RUN = "one run: no interval"
OTHER_ORIGIN = "different origins"
NEITHER_BETTER = "neither way is better"
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
    change). `p` is adjusted by Holm over all judged cells of the table, and None where nothing is judged. `notes` are
    all reasons why there is no interval, or no judgement, in a few words each.
    """

    percent: float
    ratio: float | None
    interval: Interval | None
    p: float | None
    judgement: Judgement
    notes: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """All notes in one text; nothing where there is none."""
        return "; ".join(self.notes)

    @property
    def text(self) -> str:
        """`-74.6 % [-74.9, -74.2]`, `÷ 53.1 [48.2, 58.0]`: the change, with its interval where that has a width."""
        if self.ratio is None:
            return format_difference(self.percent)
        shown = format_change(self.ratio)
        if self.interval is None or self.interval.low == self.interval.high:
            return shown
        ends = (self.interval.low, self.interval.high)
        if max(self.ratio, 1 / self.ratio) > FACTOR_FROM:
            texts = [format_factor(end) for end in (ends if self.ratio > 1 else (1 / ends[1], 1 / ends[0]))]
        else:
            texts = [format_difference((end - 1) * 100).removesuffix(" %").removeprefix("+") for end in ends]
        return f"{shown} [{', '.join(texts)}]"


@dataclass(frozen=True)
class Side:
    """What one column has of a metric: a value per run, or the one published.

    `not_judged` is why its values may not be judged, or empty; `offered` are the rates at which they were measured,
    where that matters.
    """

    values: tuple[float, ...]
    origins: frozenset[Origin]
    link_bound: bool
    not_judged: str = ""
    offered: frozenset[float] = frozenset()

    @property
    def published(self) -> bool:
        """Whether it is a published point, which has no runs."""
        return self.origins == {Origin.PUBLISHED}


def change(reference: Side, other: Side, direction: Direction) -> Change:
    """Compare two sides, both with values; what is judged has its own p and is still to be `corrected`."""
    percent = _percent(centre(reference.values), centre(other.values))
    found = ratio(reference.values, other.values, point=reference.published or other.published)
    if found is None:
        return Change(percent, None, None, None, Judgement.NOT_JUDGED, ("zeros: no ratio",))
    reasons = tuple(_not_judged(reference, other, direction))
    if reasons or found.interval is None:
        return Change(percent, found.value, found.interval, None, Judgement.NOT_JUDGED, reasons)
    judgement = Judgement.NO_CHANGE
    if not found.interval.holds(1.0):
        judgement = Judgement.BETTER if (found.value > 1) is (direction is Direction.HIGHER) else Judgement.WORSE
    return Change(percent, found.value, found.interval, found.p, judgement)


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
    return replace(one, judgement=Judgement.NO_CHANGE, notes=(f"not significant after Holm's correction, p {p:.2g}",))


def _percent(reference: float, other: float) -> float:
    if other == reference:
        return 0.0
    return (other - reference) / abs(reference) * 100 if reference else math.nan


def _not_judged(reference: Side, other: Side, direction: Direction) -> Iterator[str]:
    """Why the change must not be judged, in a few words each; nothing where it may be."""
    sides = (reference, other)
    measured = [side for side in sides if not side.published]
    if not measured:
        yield "published points: no interval"
        return
    yield from dict.fromkeys(side.not_judged for side in sides if side.not_judged)
    if any(side.offered for side in measured) and len(frozenset().union(*(side.offered for side in measured))) > 1:
        yield "different offered rates"
    fewest = min(len(side.values) for side in measured)
    if fewest < 2:
        yield ONE_RUN
    if reference.origins != other.origins or len(reference.origins) > 1:
        yield OTHER_ORIGIN
    if any(side.link_bound for side in sides):
        yield "link-bound"
    if 2 <= fewest < ENOUGH_REPEATS:
        yield FEW_REPEATS
    if direction is Direction.NEUTRAL:
        yield NEITHER_BETTER
