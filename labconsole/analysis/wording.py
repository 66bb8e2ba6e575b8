"""Changes and numbers of runs in words, for findings and answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labconsole.analysis.confidence_intervals import Interval
from labconsole.model.trial import MetricKind

_DECIMALS = 6
FACTOR_SAID_FROM = 1.5
"""From this factor on a change is told as a factor, below in %."""


@dataclass(frozen=True)
class Size:
    """How large a change is, up or down: a factor where it is a large one (no unit), otherwise a percentage."""

    value: float
    interval: Interval | None
    unit: str

    @classmethod
    def of(cls, ratio: float, interval: Interval | None) -> Size:
        """The size of a change to `ratio`, whose interval (if any) lies on one side of 1."""
        ends = (interval.low, interval.high) if interval is not None else ()
        factor = max(ratio, 1 / ratio)
        if factor >= FACTOR_SAID_FROM:
            scaled = sorted(end if ratio > 1 else 1 / end for end in ends)
            return cls(factor, Interval(*scaled) if scaled else None, "")
        scaled = sorted(abs(end - 1) * 100 for end in ends)
        return cls(abs(ratio - 1) * 100, Interval(*scaled) if scaled else None, " %")

    def __str__(self) -> str:
        size = rounded([self.value], self.value, self.interval)
        return f"{size}{self.unit}" if self.unit else f"a factor {size}"


def in_sentence(kind: MetricKind) -> str:
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


def count(runs: int) -> str:
    """`1 run`, `5 runs`."""
    return f"{runs} {'run' if runs == 1 else 'runs'}"


def runs_in_words(reference: int, other: int) -> str:
    """Numbers of runs in words; a published side has none."""
    if not reference or not other:
        return f"{count(reference or other)} against a published figure"
    if reference == other:
        return "one run each" if reference == 1 else f"{reference} runs each"
    return f"{reference} and {count(other)}"


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
