"""Pass criteria of use cases: each states a number in words, and finds in the evidence whether it is met."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from labconsole_v2x.use_cases.evidence import Evidence

ACCEPTED = "accepted"


class Finding(NamedTuple):
    """Whether a criterion is met, and the counts that decide."""

    met: bool
    reason: str


class Expectation(Protocol):
    """A part of a pass criterion; `str` gives it in words."""

    def finding(self, evidence: Evidence) -> Finding:
        """What the evidence says."""


@dataclass(frozen=True)
class Packets:
    """Packets with `label`: how many are sent at least, and for which share of them receivers give which verdict.

    Where `results` do not have "accepted", not one may be accepted, unless `some_accepted`.
    """

    label: str
    results: tuple[str, ...] = (ACCEPTED,)
    least: int = 20
    share: float = 1.0
    some_accepted: bool = False

    def __str__(self) -> str:
        none = "" if ACCEPTED in self.results or self.some_accepted else ", none accepted"
        share = "all" if self.share == 1 else f"{self.share:.4g}"
        return f"{self.label}: {share} of at least {self.least} with the verdict {_or(self.results)}{none}"

    def finding(self, evidence: Evidence) -> Finding:
        verdicts = Counter(record.result for record in evidence.received(self.label))
        sent = max(evidence.sent(self.label), verdicts.total())
        right = sum(verdicts[result] for result in self.results)
        accepted = 0 if ACCEPTED in self.results or self.some_accepted else verdicts[ACCEPTED]
        counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()) or "none received"
        met = sent >= self.least and right >= self.share * sent and not accepted
        return Finding(met, f"{self.label}: {sent} sent, {counts}")


@dataclass(frozen=True)
class Decisions:
    """Decisions with `label`: each is one of `results`, and there are `least` of them."""

    label: str
    results: tuple[str, ...]
    least: int = 1

    def __str__(self) -> str:
        return f"{self.label}: at least {self.least}, each {_or(self.results)}"

    def finding(self, evidence: Evidence) -> Finding:
        decided = Counter(evidence.decisions(self.label))
        met = decided.total() >= self.least and not decided.keys() - set(self.results)
        counts = ", ".join(f"{count} x {result}" for result, count in decided.most_common()) or "none"
        return Finding(met, f"{self.label}: {counts}")


@dataclass(frozen=True)
class Figure:
    """The figure `label`, recorded or counted in the evidence (`evidence_figures`): between `least` and `most`.

    Without limits it is reported only.
    """

    label: str
    least: float | None = None
    most: float | None = None
    unit: str = ""

    def __str__(self) -> str:
        low, high, unit = self.least, self.most, f" {self.unit}" if self.unit else ""
        if low is None and high is None:
            return f"{self.label}: reported"
        if low == high:
            return f"{self.label}: {low:g}{unit}"
        limits = (("at least", low), ("at most", high))
        said = (f"{word} {limit:g}{unit}" for word, limit in limits if limit is not None)
        return f"{self.label}: {' and '.join(said)}"

    def finding(self, evidence: Evidence) -> Finding:
        from labconsole_v2x.use_cases.evidence_figures import figures_of

        values = figures_of(evidence, self.label)
        if not values:
            return Finding(False, f"{self.label}: not recorded")
        met = all(
            (self.least is None or value >= self.least) and (self.most is None or value <= self.most)
            for value in values
        )
        shown = ", ".join(f"{value:.4g}" for value in values)
        return Finding(met, f"{self.label}: {shown}{f' {self.unit}' if self.unit else ''}")


def _or(results: tuple[str, ...]) -> str:
    return " or ".join(results)
