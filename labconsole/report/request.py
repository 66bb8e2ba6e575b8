"""What is asked for when a report is made: which runs, in which shape, under whose name."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum


class ReportKind(StrEnum):
    """What a report is about."""

    RUN = "run"
    COMPARISON = "comparison"
    CAMPAIGN = "campaign"


@dataclass(frozen=True)
class ReportRequest:
    """A report on `run_ids`, in this order. Texts left empty are filled from the runs.

    `baseline` is one of `run_ids` (its column is the baseline; None: the first column), `published` are names of
    published tables or columns to stand beside the runs, `place` is where the trial took place.
    """

    run_ids: tuple[int, ...]
    kind: ReportKind
    baseline: int | None = None
    published: tuple[str, ...] = ()
    title: str = ""
    author: str = ""
    place: str = ""
    generated: datetime = field(default_factory=lambda: datetime.now(UTC))


def kind_for(run_ids: tuple[int, ...]) -> ReportKind:
    """What a report on these runs is about where nobody says: one run, or their comparison."""
    return ReportKind.RUN if len(run_ids) == 1 else ReportKind.COMPARISON
