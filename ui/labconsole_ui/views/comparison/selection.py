"""What a comparison is of: runs and published columns in their order, grouped or not, and the baseline. No widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from labconsole.analysis.comparison import Column, RunGroup, group_repeats, single_runs
from labconsole.analysis.published_figures import PublishedColumn
from labconsole.store.records import RunRow

Entry = int | str
"""A run's id, or the name of a published column."""


@dataclass(frozen=True)
class Selection:
    """`baseline` is an entry of the baseline's column; None, or one that is gone, means the first column."""

    entries: tuple[Entry, ...] = ()
    baseline: Entry | None = None
    grouped: bool = True

    @property
    def run_ids(self) -> tuple[int, ...]:
        """The runs, in their order."""
        return tuple(entry for entry in self.entries if isinstance(entry, int))

    @property
    def published(self) -> tuple[str, ...]:
        """The names of the published columns, in their order."""
        return tuple(entry for entry in self.entries if isinstance(entry, str))

    def adding(self, entries: Sequence[Entry], *, first: bool = False) -> Selection:
        """With these too, after the others or before them; those that are there stay where they are."""
        new = tuple(dict.fromkeys(entry for entry in entries if entry not in self.entries))
        return replace(self, entries=new + self.entries if first else self.entries + new)

    def without(self, entries: Sequence[Entry]) -> Selection:
        """Without these."""
        return replace(self, entries=tuple(entry for entry in self.entries if entry not in entries))

    def in_order(self, columns: Sequence[Sequence[Entry]]) -> Selection:
        """The same entries, column by column in this order; those that are in none of the columns come last."""
        ordered = [entry for column in columns for entry in column if entry in self.entries]
        return replace(self, entries=tuple(dict.fromkeys((*ordered, *self.entries))))


def columns_of(
    selection: Selection, runs: Mapping[int, RunRow], published: Mapping[str, PublishedColumn]
) -> tuple[Column, ...]:
    """The columns, each where its first entry stands."""
    rows = [runs[run_id] for run_id in selection.run_ids]
    grouping: Callable[[Sequence[RunRow]], tuple[RunGroup, ...]] = group_repeats if selection.grouped else single_runs
    columns: list[Column] = [*grouping(rows), *(published[name] for name in selection.published)]
    place = {entry: index for index, entry in enumerate(selection.entries)}
    return tuple(sorted(columns, key=lambda column: min(place[entry] for entry in entries_of(column))))


def entries_of(column: Column) -> tuple[Entry, ...]:
    """What a column stands for."""
    return tuple(run.id for run in column.runs) if isinstance(column, RunGroup) else (column.name,)


def baseline_of(selection: Selection, columns: Sequence[Column]) -> int:
    """The index of the baseline among the columns."""
    for index, column in enumerate(columns):
        if selection.baseline in entries_of(column):
            return index
    return 0
