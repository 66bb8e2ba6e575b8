"""Builds a report on several trials by an outline: a chapter for each of the source's, with the runs of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from labconsole.analysis.caveats import caveats
from labconsole.analysis.change import origin_words
from labconsole.analysis.columns import RunGroup
from labconsole.analysis.number_format import NO_FIGURE, format_figure
from labconsole.analysis.published_figures import published_columns
from labconsole.analysis.report_outline import (
    OutlineChapter,
    ReportOutline,
    VerdictList,
    report_outline,
)
from labconsole.analysis.table_shape import FilledTable, fill
from labconsole.analysis.verdict_lines import VerdictLine, verdict_lines
from labconsole.errors import UserError
from labconsole.model.plugin import Plugins
from labconsole.output.report.cover import cover_facts, runs_in_short
from labconsole.output.report.document import (
    Align,
    Block,
    Callout,
    Document,
    Fact,
    Head,
    Paragraph,
    Section,
    Table,
    TextCell,
    Tone,
)
from labconsole.output.report.report_charts import answer_cards
from labconsole.output.report.report_data import RunData, read_run_data
from labconsole.output.report.report_request import ReportRequest
from labconsole.output.report.result_tables import compact_shape_table
from labconsole.output.report.run_details import NOT_AS_SEALED, result_cell, run_span
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow

_LONGEST_SPAN = 40
_COMPUTER = (
    ("Computer", ("host",), 1.0),
    ("System", ("os",), 2.4),
    ("CPU", ("cpu",), 1.3),
    ("Cores", ("cores",), 0.7),
    ("Memory", ("memory_bytes",), 1.1),
    ("Lab console", ("console", "revision"), 1.8),
    ("Python", ("python",), 0.8),
)
"""Columns of the table of computers, the provenance in each, and its share of the width."""


def build_outline_report(
    reader: Reader, plugins: Plugins, request: ReportRequest, progress: Callable[[str], None]
) -> Document:
    """The report on runs of several trials by the outline `request.outline`.

    Raises StoreError and UserError as `read_run_data`, UserError for an outline that is unknown or broken, for a run of
    a trial that no chapter has, and for published figures that cannot be read.
    """
    outline = report_outline(plugins, request.outline)
    progress("Reading the runs")
    data = read_run_data(reader, request.run_ids)
    for row in data.rows:
        if row.kind not in outline.kinds:
            raise UserError(
                f"Run {row.id} is of the trial {row.kind}, which no chapter of the outline {request.outline} has: "
                f"leave it out, or choose runs of {', '.join(outline.kinds)}."
            )
    progress("Putting the report together")
    chapters = [_Chapter.of(chapter, data, plugins) for chapter in outline.chapters]
    return Document(
        kind="Trial report",
        title=request.title or outline.title,
        lead=outline.lead,
        author=request.author,
        identity=f"{reader.path.name} · {runs_in_short(data)}",
        generated=request.generated,
        cover=(*_about(data, outline, plugins), *cover_facts(data, request, reader.path.name)),
        sections=(
            *(Section(chapter.outline.title, tuple(chapter.blocks(data, plugins))) for chapter in chapters),
            Section("Runs, computers and evidence", tuple(_runs(data, chapters, plugins))),
        ),
        cards=answer_cards(outline.answers(data.groups, data.verdicts, plugins)),
    )


class _Chapter:
    """A chapter of the outline with its tables, filled."""

    def __init__(self, outline: OutlineChapter, listed: FilledTable | None, tables: Sequence[FilledTable]) -> None:
        self.outline = outline
        self._listed = listed
        self._tables = tables
        shown = (*((listed,) if listed is not None else ()), *tables)
        found = {group.runs[0].id: group for table in shown for group in table.groups if group is not None}
        self.groups = tuple(found[run_id] for run_id in sorted(found))

    @classmethod
    def of(cls, outline: OutlineChapter, data: RunData, plugins: Plugins) -> _Chapter:
        """Raises UserError for published figures that cannot be read."""
        listed = fill(outline.verdicts.shape, data.groups, plugins) if outline.verdicts is not None else None
        tables = [fill(shape, data.groups, plugins) for shape in outline.tables(data.groups, plugins)]
        return cls(outline, listed, [table for table in tables if table.filled])

    def blocks(self, data: RunData, plugins: Plugins) -> Iterator[Block]:
        yield Paragraph(self.outline.introduction, leads=bool(self.groups))
        if not self.groups:
            yield Paragraph("No run of this report is of this chapter.", Tone.MUTED)
            return
        runs = [run for group in self.groups for run in group.used]
        origins = {origin for group in self.groups for origin in group.origins}
        yield Paragraph(f"{origin_words(origins).capitalize()}: {_span(runs)}.", Tone.MUTED, leads=True)
        if self._listed is not None and self.outline.verdicts is not None and any(self._listed.groups):
            yield _verdict_table(self.outline.verdicts, self._listed, data, plugins)
        for table in self._tables:
            yield compact_shape_table(table)
        if known := tuple(_caveats(self.groups)):
            yield Callout("What a reader must know", known)


def _about(data: RunData, outline: ReportOutline, plugins: Plugins) -> Iterator[Fact]:
    kinds = dict.fromkeys(row.kind for row in data.rows)
    titles = ((kind, plugins.installed(kind)) for kind in outline.kinds if kind in kinds)
    yield Fact("Trials", ", ".join(kind if trial is None else trial.title for kind, trial in titles))
    numbers = {
        "campaign": len({row.campaign_id for row in data.rows}),
        "scenario": len(data.groups),
        "run": len(data.rows),
    }
    yield Fact("Scope", ", ".join(f"{number} {what}{'' if number == 1 else 's'}" for what, number in numbers.items()))


def _verdict_table(listed: VerdictList, filled: FilledTable, data: RunData, plugins: Plugins) -> Table:
    """A row for each verdict: its result in our columns, and as published."""
    ours = [(column, group) for column, group in zip(filled.shape.columns, filled.groups, strict=True) if group]
    published = published_columns(plugins, filled.shape.published) if filled.shape.published else ()
    lines = {line.name: line for line in verdict_lines([*(group for _, group in ours), *published], data.verdicts)}
    rows = tuple(
        (
            TextCell(name, Tone.STRONG),
            TextCell(title, details=tuple(_reasons(lines.get(name), [column.title for column, _ in ours]))),
            *(
                (result_cell(cell.result, cell.text) for cell in lines[name].cells)
                if name in lines
                else (TextCell(NO_FIGURE, Tone.MUTED) for _ in (*ours, *published))
            ),
        )
        for name, title in listed.titles.items()
    )
    heads = (
        Head("Code", "", Align.LEFT, 0.9),
        Head("Use case", "", Align.LEFT, 3.6),
        *(Head(column.title, group.run_count, Align.LEFT, 0.7) for column, group in ours),
        *(Head("Published", "", Align.LEFT, 0.95) for _ in published),
    )
    sources = tuple(f"Published: {column.title}, {column.reference}." for column in published)
    return Table(
        f"{filled.shape.title} ({filled.shape.reference})", heads, rows, (*sources, *filled.about), inline=True
    )


def _reasons(line: VerdictLine | None, titles: Sequence[str]) -> Iterator[tuple[str, Tone]]:
    """Why runs of ours did not pass, by the titles of their columns."""
    for cell, title in zip(line.cells if line is not None else (), titles, strict=False):
        if cell.result not in ("", "pass"):
            yield f"{title}: {cell.reason}", Tone.MUTED


def _caveats(groups: Sequence[RunGroup]) -> Iterator[str]:
    """Every caveat once, with the runs that it is on; and the runs that no figure takes."""
    warned: dict[str, list[RunRow]] = {}
    for group in groups:
        for run in group.used:
            for sentence in caveats(run):
                warned.setdefault(sentence, []).append(run)
    shown = sum(len(group.used) for group in groups)
    for sentence, runs in warned.items():
        yield sentence if len(runs) == shown else f"{sentence.removesuffix('.')} ({_span(runs)})."
    if left := [run for group in groups for run in group.runs if run not in group.used]:
        yield f"Not finished, and left out of the figures: {_span(left)}."


def _runs(data: RunData, chapters: Sequence[_Chapter], plugins: Plugins) -> Iterator[Block]:
    shown = {run.id for chapter in chapters for group in chapter.groups for run in group.runs}
    if left := [row for row in data.rows if row.id not in shown]:
        yield Paragraph(
            f"In no table of these chapters, since other scenarios than theirs were run or another one of the same "
            f"scenario is shown: {_span(left)}. Reports on a comparison or a campaign show them.",
            Tone.MUTED,
        )
    if data.changed:
        changed = [row for row in data.rows if row.id in data.changed]
        yield Callout("Evidence", (f"{NOT_AS_SEALED.capitalize()}, and prove nothing: {_span(changed)}.",))
    yield _campaign_table(data, plugins)
    yield _computer_table(data)


def _campaign_table(data: RunData, plugins: Plugins) -> Table:
    heads = (
        Head("Campaign", "", Align.LEFT, 2.4),
        Head("Trial", "", Align.LEFT, 1.2),
        Head("Runs", "", Align.LEFT, 1.2),
        Head("Started", "UTC", Align.LEFT, 1.4),
        Head("As sealed"),
    )
    rows = []
    for campaign_id in dict.fromkeys(row.campaign_id for row in data.rows):
        runs = [row for row in data.rows if row.campaign_id == campaign_id]
        sealed = [run for run in runs if run.id not in data.changed]
        started = [run.started for run in runs if run.started is not None]
        rows.append(
            (
                TextCell(runs[0].campaign, Tone.STRONG),
                TextCell(", ".join(dict.fromkeys(run.kind for run in runs))),
                TextCell(_span(runs)),
                TextCell(f"{min(started):%Y-%m-%d %H:%M}" if started else NO_FIGURE),
                TextCell(f"{len(sealed)} of {len(runs)}", Tone.GOOD if len(sealed) == len(runs) else Tone.BAD),
            )
        )
    note = (
        "As sealed: the SHA-256 digest over all that the database has of a run is the one with which it was sealed. "
        "“labconsole verify RUN” also reads its samples."
    )
    return Table("Campaigns", heads, tuple(rows), (note,), inline=True)


def _computer_table(data: RunData) -> Table:
    found: dict[tuple[str, ...], list[RunRow]] = {}
    for detail in data.details:
        values = tuple(
            ", ".join(
                format_figure(detail.provenance[key], "B") if key == "memory_bytes" else str(detail.provenance[key])
                for key in keys
                if key in detail.provenance
            )
            for _, keys, _ in _COMPUTER
        )
        found.setdefault(values, []).append(detail.row)
    heads = (
        *(Head(title, "", Align.LEFT, share) for title, _, share in _COMPUTER),
        Head("Runs", "", Align.LEFT, 2.4),
    )
    rows = tuple(
        (*(TextCell(value or NO_FIGURE) for value in values), TextCell(_span(runs))) for values, runs in found.items()
    )
    return Table("Computers", heads, rows, inline=True)


def _span(runs: Sequence[RunRow]) -> str:
    """The numbers of runs, where they are not too many for a line."""
    run_ids = [run.id for run in runs]
    span = run_span(run_ids)
    return span if len(span) <= _LONGEST_SPAN else f"{len(run_ids)} runs from {min(run_ids)} to {max(run_ids)}"
