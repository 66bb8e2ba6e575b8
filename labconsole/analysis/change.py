"""A figure against the baseline's: difference, ratio with its interval, and judgement."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from labconsole.analysis.confidence_intervals import LEVEL, Interval, centre, holm, ratio
from labconsole.analysis.number_format import FACTOR_FROM, format_change, format_difference, format_factor
from labconsole.model.metrics import Direction, MetricKind
from labconsole.model.series import Origin

ENOUGH_REPEATS = 5
"""Repeats that both sides must have so that a change is judged."""

ONE_RUN = "one run: no interval"
OTHER_ORIGIN = "different origins"
NEITHER_BETTER = "neither way is better"
WITHIN_CLOCKS = "within the uncertainty of the clocks"
FEW_REPEATS = f"fewer than {ENOUGH_REPEATS} repeats"


class Judgement(StrEnum):
    """The judgement of a change against the baseline. Only the first two are coloured."""

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
    """The values of a metric in one column: one per run, or the published one.

    `not_judged` is why its values may not be judged, or empty; `offered` are the rates at which they were measured,
    where that matters; `uncertainty` is the largest of the values'.
    """

    values: tuple[float, ...]
    origins: frozenset[Origin]
    link_bound: bool
    not_judged: str = ""
    offered: frozenset[float] = frozenset()
    uncertainty: float = 0.0

    @property
    def published(self) -> bool:
        """Whether it is a published point, which has no runs."""
        return self.origins == {Origin.PUBLISHED}


def change(reference: Side, other: Side, direction: Direction) -> Change:
    """Compare two sides, both with values; a judged change has its own p, before it is `corrected`."""
    before, after = centre(reference.values), centre(other.values)
    percent = _percent(before, after)
    found = ratio(reference.values, other.values, point=reference.published or other.published)
    if found is None:
        return Change(percent, None, None, None, Judgement.NOT_JUDGED, ("zeros: no ratio",))
    reasons = tuple(_not_judged(reference, other, direction))
    if reasons or found.interval is None:
        return Change(percent, found.value, found.interval, None, Judgement.NOT_JUDGED, reasons)
    judgement = Judgement.NO_CHANGE
    if not found.interval.holds(1.0):
        if abs(after - before) < reference.uncertainty + other.uncertainty:
            return Change(percent, found.value, found.interval, None, Judgement.NOT_JUDGED, (WITHIN_CLOCKS,))
        judgement = Judgement.BETTER if (found.value > 1) is (direction is Direction.HIGHER) else Judgement.WORSE
    return Change(percent, found.value, found.interval, found.p, judgement)


def corrected(changes: Sequence[Change | None]) -> list[Change | None]:
    """All changes of a table with Holm's p, and without the judgements that do not withstand it."""
    adjusted = holm([None if one is None else one.p for one in changes])
    return [
        one if one is None or p is None else _survives_correction(replace(one, p=p), p)
        for one, p in zip(changes, adjusted, strict=True)
    ]


def _survives_correction(one: Change, p: float) -> Change:
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


_DECIMALS = 6
WRITTEN_AS_FACTOR_FROM = 1.5
"""From this factor on a change is written as a factor, below in %."""


@dataclass(frozen=True)
class Size:
    """How large a change is, up or down: a factor where it is a large one (no unit), otherwise a percentage."""

    value: float
    interval: Interval | None
    unit: str

    @classmethod
    def of(cls, ratio: float, interval: Interval | None) -> Size:
        """The size of a change to `ratio`, whose interval (if any) is on one side of 1."""
        ends = (interval.low, interval.high) if interval is not None else ()
        factor = max(ratio, 1 / ratio)
        if factor >= WRITTEN_AS_FACTOR_FROM:
            scaled = sorted(end if ratio > 1 else 1 / end for end in ends)
            return cls(factor, Interval(*scaled) if scaled else None, "")
        scaled = sorted(abs(end - 1) * 100 for end in ends)
        return cls(abs(ratio - 1) * 100, Interval(*scaled) if scaled else None, " %")

    def __str__(self) -> str:
        size = rounded([self.value], self.value, self.interval)
        return f"{size}{self.unit}" if self.unit else f"a factor {size}"


def title_in_sentence(kind: MetricKind) -> str:
    """A metric's title within a sentence; an abbreviation stays as it is."""
    title = kind.title
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def short_titles(titles: Sequence[str]) -> list[str]:
    """`Test 2` for `Test 2: TLS`, where no other title begins so."""
    first = [title.partition(":")[0] for title in titles]
    return [begin if first.count(begin) == 1 else title for begin, title in zip(first, titles, strict=True)]


def fitting_titles(titles: Sequence[str], fits: Callable[[str], bool]) -> list[str]:
    """The titles in whole if all of them fit, otherwise all of them shortened."""
    return list(titles) if all(map(fits, titles)) else short_titles(titles)


def origin_words(origins: Iterable[Origin]) -> str:
    """The origins of figures in a sentence: `measured` (also without any), `calculated, measured and simulated`."""
    *before, last = sorted(set(origins)) or [Origin.MEASURED]
    return f"{', '.join(before)} and {last}" if before else last


def count(runs: int, origins: Iterable[Origin] = ()) -> str:
    """`1 run`, `5 runs`, and where they did not measure `5 simulated runs`."""
    words = origin_words(origins)
    of_origin = "" if words == Origin.MEASURED else f"{words} "
    return f"{runs} {of_origin}{'run' if runs == 1 else 'runs'}"


def span(centre: float, interval: Interval) -> str:
    """The ends of an interval around `centre`: `48.1–58.0`."""
    return rounded([interval.low, interval.high], centre, interval)


def rounded(values: Sequence[float], centre: float, interval: Interval | None) -> str:
    """Figures around `centre`, as precise as its interval is wide, but two digits of the centre at least."""
    half = (interval.high - interval.low) / 2 if interval is not None else 0.0
    decimals = max(_decimals(half) if half else 0, _decimals(centre / 10) if centre else 0)
    return "–".join(f"{value:,.{decimals}f}" if round(value, decimals) else f"{value:.1g}" for value in values)


def _decimals(value: float) -> int:
    """Decimals that show the first digit of `value`."""
    return min(max(0, -math.floor(math.log10(abs(value)))), _DECIMALS)
