"""Builds a report from the store: the sections of a report on a run, a comparison, a campaign."""

from __future__ import annotations

from collections.abc import Iterator

from labconsole.analysis.answers import answers
from labconsole.analysis.caveats import caveats
from labconsole.analysis.findings import findings, unjudged
from labconsole.analysis.table_shape import fill, table_shapes
from labconsole.model.plugin import Plugins
from labconsole.output.report.cover import cover_facts, origin_label, runs_in_short
from labconsole.output.report.document import (
    Block,
    Bullets,
    Callout,
    Document,
    Fact,
    Heading,
    Paragraph,
    TextCell,
    Tone,
    section,
)
from labconsole.output.report.outline_report import build_outline_report
from labconsole.output.report.report_charts import Progress, answer_cards, bar_figures, sample_figures
from labconsole.output.report.report_data import ReportData, read_report_data
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.output.report.result_tables import comparison_tables, printed_tables, run_table, shape_tables
from labconsole.output.report.run_details import (
    EVIDENCE,
    NOT_AS_SEALED,
    environment,
    evidence_table,
    notes,
    parameter_blocks,
    run_list,
    site_table,
    verdict_tables,
)
from labconsole.store.reader import Reader

_KINDS = {
    ReportKind.RUN: "Run report",
    ReportKind.COMPARISON: "Comparison report",
    ReportKind.CAMPAIGN: "Campaign report",
}

_MOST_BARE = 2
"""The most findings with only a reason against a judgement: more of them become one sentence."""


def build_report(
    reader: Reader, plugins: Plugins, request: ReportRequest, progress: Progress | None = None
) -> Document:
    """Read the data of a report and build it; takes seconds with many samples.

    Raises StoreError for a run that is not there, UserError for one in progress, for no runs at all, for a baseline
    that is not among them, for an unknown published name, and as `build_outline_report`.
    """
    report = progress if progress is not None else _ignore_progress
    if request.kind is ReportKind.OUTLINE:
        return build_outline_report(reader, plugins, request, report)
    report("Reading the runs")
    material = read_report_data(reader, plugins, request)
    charts = [*bar_figures(material), *sample_figures(material, reader, plugins, report)]
    report("Putting the report together")
    sections = (
        *section("Summary", list(_summary(material))),
        *section("Results", list(_results(material, request))),
        *section("In the source's own tables", list(_source_tables(material, plugins, request))),
        *section("Charts", charts),
        *section("Verdicts", verdict_tables(material)),
        *section("Scenario and parameters", list(parameter_blocks(material))),
        *section("Runs", [run_list(material.rows)]),
        *section("Notes of the operator", list(notes(material.rows))),
        *section("Environment and provenance", list(_environment(material))),
        *section("Evidence", [Paragraph(EVIDENCE, leads=True), evidence_table(material)]),
    )
    return Document(
        kind=_KINDS[request.kind],
        title=request.title or _title(material, request.kind),
        lead=material.trial.description if material.trial is not None else f"Trial {material.rows[0].kind}",
        author=request.author,
        identity=f"{reader.path.name} · {runs_in_short(material)}",
        generated=request.generated,
        cover=_cover(material, request, reader.path.name),
        sections=sections,
        cards=answer_cards(answers(material.with_published, material.trial, material.verdicts)),
    )


def _ignore_progress(_: str) -> None:
    return


def _title(material: ReportData, kind: ReportKind) -> str:
    campaigns = list(dict.fromkeys(row.campaign for row in material.rows))
    titles = [group.title for group in material.groups]
    if kind is ReportKind.RUN:
        return f"{campaigns[0]}: {titles[0]}"
    if len(campaigns) == 1:
        return campaigns[0]
    return " · ".join(titles) if len(titles) <= 2 else f"{titles[0]} and {len(titles) - 1} others"


def _cover(material: ReportData, request: ReportRequest, database: str) -> tuple[Fact, ...]:
    rows, trial = material.rows, material.trial
    kinds = dict.fromkeys(trial.title if trial is not None and row.kind == trial.kind else row.kind for row in rows)
    scenarios = len(material.groups)
    about = (
        Fact("Run", f"{rows[0].id}, repeat {rows[0].repeat}, {rows[0].status.value}")
        if request.kind is ReportKind.RUN
        else Fact("Scope", f"{scenarios} {'scenario' if scenarios == 1 else 'scenarios'}, {len(rows)} runs")
    )
    return (Fact("Trial", ", ".join(kinds)), about, *cover_facts(material, request, database))


def _summary(material: ReportData) -> Iterator[Block]:
    found = findings(material.with_published, material.trial)
    bare = [finding for finding in found if finding.bare]
    folded = bare if len(bare) > _MOST_BARE else []
    sentences = [finding.sentence for finding in found if finding not in folded]
    if folded:
        sentences.append(unjudged(material.with_published, folded))
    if sentences:
        yield Bullets(tuple(TextCell(f"{sentence.removesuffix('.')}.") for sentence in sentences))
    if len(material.rows) == 1:
        known = caveats(material.rows[0])
        known += ("One run: its figures carry no interval; repeat it to learn how much they vary.",)
    else:
        known = material.with_published.notes
    known = tuple(f"Run {run_id} is {NOT_AS_SEALED}: it proves nothing." for run_id in material.changed) + known
    if known:
        yield Callout("What a reader must know", known)


def _results(material: ReportData, request: ReportRequest) -> Iterator[Block]:
    alone = len(material.rows) == 1
    tables = [run_table(material.measured, material.rows[0])] if alone else []
    if not alone or len(material.with_published.columns) > 1:
        if material.with_published.origins:
            yield Paragraph(material.with_published.origins, leads=True)
        tables += comparison_tables(material.with_published)
        if request.kind is not ReportKind.CAMPAIGN:  # there the source's own tables show them
            tables += printed_tables(material.with_published)
    filled = [table for table in tables if table.rows]
    yield from filled
    if not filled:
        yield Paragraph("No run of this report has figures.", Tone.MUTED)


def _source_tables(material: ReportData, plugins: Plugins, request: ReportRequest) -> Iterator[Block]:
    """The tables of the source, as far as runs fill them: part of a campaign's report."""
    if request.kind is not ReportKind.CAMPAIGN or material.trial is None:
        return
    for shape in table_shapes(plugins, material.trial.kind):
        filled = fill(shape, material.groups, plugins)
        if filled.filled:
            yield from shape_tables(filled)


def _environment(material: ReportData) -> Iterator[Block]:
    if (table := site_table(material)) is not None:
        yield table
        yield Heading(f"{origin_label(material)} with")
    yield environment(material)
