"""Loads the contents of the comparison page from store and plugins, in the background. No widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from labconsole.analysis.answers import Answer, answers, pending
from labconsole.analysis.change import ENOUGH_REPEATS
from labconsole.analysis.comparison import Column, Comparison, RunGroup, compare, group_repeats, single_runs
from labconsole.analysis.findings import Finding, findings
from labconsole.analysis.published_figures import PublishedColumn, PublishedTable, published_tables
from labconsole.analysis.table_shape import FilledTable, fill, table_shapes
from labconsole.model.plugin import Plugins
from labconsole.store.records import RunRow, RunStatus
from labconsole_ui.views.comparison.run_samples import ReusedReader

Entry = int | str
"""A run's id, or the name of a published column."""


@dataclass(frozen=True)
class Selection:
    """`baseline` is an entry of the baseline's column; None or an absent one means the first column."""

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
        """The selection with these, too, after the others or before them; present ones keep their places."""
        new = tuple(dict.fromkeys(entry for entry in entries if entry not in self.entries))
        return replace(self, entries=new + self.entries if first else self.entries + new)

    def without(self, entries: Sequence[Entry]) -> Selection:
        """The selection without these."""
        return replace(self, entries=tuple(entry for entry in self.entries if entry not in entries))

    def in_order(self, columns: Sequence[Sequence[Entry]]) -> Selection:
        """The same entries, column by column in this order; those that are in none of the columns come last."""
        ordered = [entry for column in columns for entry in column if entry in self.entries]
        return replace(self, entries=tuple(dict.fromkeys((*ordered, *self.entries))))


def columns_of(
    selection: Selection, runs: Mapping[int, RunRow], published: Mapping[str, PublishedColumn]
) -> tuple[Column, ...]:
    """The columns, each at the place of its first entry."""
    rows = [runs[run_id] for run_id in selection.run_ids]
    grouping: Callable[[Sequence[RunRow]], tuple[RunGroup, ...]] = group_repeats if selection.grouped else single_runs
    columns: list[Column] = [*grouping(rows), *(published[name] for name in selection.published)]
    place = {entry: index for index, entry in enumerate(selection.entries)}
    return tuple(sorted(columns, key=lambda column: min(place[entry] for entry in entries_of(column))))


def entries_of(column: Column) -> tuple[Entry, ...]:
    """The entries of a column."""
    return tuple(run.id for run in column.runs) if isinstance(column, RunGroup) else (column.name,)


def baseline_of(selection: Selection, columns: Sequence[Column]) -> int:
    """The index of the baseline among the columns."""
    for index, column in enumerate(columns):
        if selection.baseline in entries_of(column):
            return index
    return 0


@dataclass(frozen=True)
class ComparisonPage:
    """A selection with its comparison and answers; `notices` are sentences on runs that were left out."""

    selection: Selection
    comparison: Comparison | None
    notices: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()
    progress: str = ""
    """Progress of the campaign whose runs are followed; empty once it is done."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns; none while nothing is chosen."""
        return self.comparison.columns if self.comparison is not None else ()

    def entries(self) -> list[tuple[Entry, ...]]:
        """The entries of each column."""
        return [entries_of(column) for column in self.columns]


@dataclass(frozen=True)
class FindingsAndTables:
    """Additions to a comparison: findings in words, and the sources' own tables that its runs fill."""

    findings: tuple[Finding, ...]
    tables: tuple[FilledTable, ...]


class ComparisonLoader:
    """Reads runs once and composes pages of them. To be used by one thread at a time."""

    def __init__(self, reader: ReusedReader, plugins: Plugins) -> None:
        self._reader = reader
        self._plugins = plugins
        self._runs: dict[int, RunRow] = {}
        self._published: Mapping[str, PublishedColumn] = {}
        self._tables: tuple[PublishedTable, ...] | None = None

    def open(self, selection: Selection) -> ComparisonPage:
        """The first page, with the pinned baseline of its runs' kind. Raises UserError."""
        selection, notices = self._known(selection)
        kinds = {self._runs[run_id].kind for run_id in selection.run_ids}
        if len(kinds) == 1:
            selection, pinned = self._with_pinned(selection, kinds.pop())
            notices += pinned
        return self._page(selection, notices)

    def page(self, selection: Selection) -> ComparisonPage:
        """The page of a selection. Raises UserError."""
        return self._page(*self._known(selection))

    def campaign_page(self, run_ids: Sequence[int], selection: Selection) -> ComparisonPage:
        """The page of a campaign's selected runs, with all questions that it will answer. Raises UserError."""
        rows = self._reader.opened().comparable(run_ids)
        self._runs |= {run.id: run for run in rows if run.status.final}
        page = self.page(selection)
        there = {answer.question for answer in page.answers}
        waiting = (
            one
            for one in pending(group_repeats(rows), self._plugins.installed(rows[0].kind))
            if one.question not in there
        )
        return replace(page, answers=(*page.answers, *waiting), progress=_progress(rows))

    def tables(self) -> tuple[PublishedTable, ...]:
        """The published tables of all plugins. Raises UserError."""
        if self._tables is None:
            self._tables = published_tables(self._plugins)
            self._published = {column.name: column for table in self._tables for column in table.columns}
        return self._tables

    def findings_and_tables(self, page: ComparisonPage) -> FindingsAndTables:
        """Findings and tables of the page. Called last: the reader is released. Raises UserError."""
        self._reader.release()
        if page.comparison is None:
            return FindingsAndTables((), ())
        groups = [column for column in page.columns if isinstance(column, RunGroup)]
        kinds = sorted({group.kind for group in groups})
        shapes = {shape.name: shape for kind in kinds for shape in table_shapes(self._plugins, kind)}
        filled = (fill(shape, groups, self._plugins) for shape in shapes.values())
        return FindingsAndTables(
            findings(page.comparison, self._plugins.installed(page.columns[0].kind)),
            tuple(table for table in filled if table.filled),
        )

    def _known(self, selection: Selection) -> tuple[Selection, tuple[str, ...]]:
        """The selection with its runs; those that have not ended are left out, with a notice."""
        missing = [run_id for run_id in selection.run_ids if run_id not in self._runs]
        if missing:
            self._runs |= {run.id: run for run in self._reader.opened().comparable(missing)}
        live = [run_id for run_id in selection.run_ids if not self._runs[run_id].status.final]
        notices = tuple(
            f"Run {run_id} is still {self._runs[run_id].status.value}: it is left out. Compare it once it has ended."
            for run_id in live
        )
        for run_id in live:
            del self._runs[run_id]
        return selection.without(live), notices

    def _with_pinned(self, selection: Selection, kind: str) -> tuple[Selection, tuple[str, ...]]:
        """The selection with the pinned baseline of `kind`, at its place or first, with its repeats."""
        reader = self._reader.opened()
        pinned = reader.baselines().get(kind)
        if pinned is None or pinned in selection.entries:
            return replace(selection, baseline=pinned), ()
        [row] = reader.comparable([pinned])
        repeats = [
            run.id
            for run in reader.runs(campaign_id=row.campaign_id, metrics=())
            if run.scenario == row.scenario
            and (run.parameters, run.placement) == (row.parameters, row.placement)
            and (run.status is RunStatus.FINISHED or run.id == pinned)
        ]
        self._runs |= {run.id: run for run in reader.comparable(sorted(repeats))}
        notices = f"The pinned baseline, {row.scenario} of {row.campaign}, is the first; its heading's menu removes it."
        return replace(selection.adding(sorted(repeats), first=True), baseline=pinned), (notices,)

    def _page(self, selection: Selection, notices: tuple[str, ...]) -> ComparisonPage:
        if not selection.entries:
            return ComparisonPage(selection, None, notices=notices)
        if selection.published:
            self.tables()
        columns = columns_of(selection, self._runs, self._published)
        trial = self._plugins.installed(columns[0].kind)
        verdicts = self._reader.opened().verdicts(selection.run_ids)
        baseline, further = baseline_of(selection, columns), self._plugins.all_installed(one.kind for one in columns)
        comparison = compare(columns, trial, baseline=baseline, verdicts=verdicts, further=further)
        return ComparisonPage(selection, comparison, notices, answers(comparison, trial, verdicts))


def _progress(rows: Sequence[RunRow]) -> str:
    done = sum(run.status.final for run in rows)
    if done == len(rows):
        return ""
    rounds = max(run.repeat for run in rows)
    now = min(run.repeat for run in rows if not run.status.final)
    notices = (
        f"Round {now} of {rounds}, {done} of {len(rows)} runs done."
        if rounds > 1
        else f"{done} of {len(rows)} runs done."
    )
    if rounds < ENOUGH_REPEATS:
        return notices
    return f"{notices} Answers are grey until each scenario has run {ENOUGH_REPEATS} times."
