"""A report on several campaigns by an outline: runs left out, changed ones, and what it refuses."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from labconsole.analysis.report_outline import OutlineChapter, ReportOutline, VerdictList
from labconsole.analysis.table_shape import ShapeColumn, ShapeRow, TableShape
from labconsole.errors import UserError
from labconsole.model.plugin import Plugins
from labconsole.output.report.document import Block, Callout, Document, Paragraph, Table
from labconsole.output.report.report_builder import build_report
from labconsole.output.report.report_request import ReportKind, ReportRequest, whole_campaigns
from labconsole.store import schema
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole.store.run_store import Store
from tests.helpers.stored_post_trial import PLUGINS, WARNING, end, queue_post, store_post

WHEN = datetime(2026, 11, 20, tzinfo=UTC)
HERE = "tests.labconsole.output.report.test_outline_report"
SHAPE = TableShape(
    name="letters",
    title="Letters",
    kinds=("post",),
    reference="no source",
    parameters={},
    columns=(ShapeColumn("Open", {"sealed": False}), ShapeColumn("Sealed", {"sealed": True})),
    rows=(ShapeRow("Rate", "rate"),),
    published="",
)
SHAPES = (SHAPE,)
LISTED = VerdictList(replace(SHAPE, name="checks", rows=()), {"all letters came": "All of them", "none was read": "No"})
OUTLINE = ReportOutline(
    "The post",
    "All of it.",
    (
        OutlineChapter("Checks", "What was checked.", ("post",), verdicts=LISTED),
        OutlineChapter("Letters", "How fast they are.", ("post",), ("letters",)),
    ),
    lambda *_: (),
)


@pytest.fixture
def plugins() -> Plugins:
    (plugin,) = PLUGINS.found
    outlines = {"post": f"{HERE}:OUTLINE"}
    return Plugins((replace(plugin, table_shapes=(f"{HERE}:SHAPES",), outlines=outlines),))


def built(reader: Reader, plugins: Plugins, run_ids: list[int]) -> Document:
    when = datetime(2026, 11, 20, tzinfo=UTC)
    return build_report(
        reader, plugins, ReportRequest(tuple(run_ids), ReportKind.OUTLINE, generated=when, outline="post")
    )


def blocks(document: Document, title: str) -> list[Block]:
    return [block for section in document.sections if section.title == title for block in section.blocks]


def test_chapters_have_their_verdicts_tables_and_caveats(store: Store, reader: Reader, plugins: Plugins) -> None:
    document = built(reader, plugins, store_post(store))
    assert (document.kind, document.title, document.lead) == ("Trial report", "The post", "All of it.")
    assert [(fact.name, fact.value) for fact in document.cover[:2]] == [
        ("Trials", "Post"),
        ("Scope", "1 campaign, 2 scenarios, 10 runs"),
    ]
    introduction, runs, table, known = blocks(document, "Checks")
    assert isinstance(introduction, Paragraph) and introduction.text == "What was checked."
    assert isinstance(runs, Paragraph) and runs.text == "Measured: runs 1–10."
    assert isinstance(table, Table) and isinstance(known, Callout)
    assert [[cell.text for cell in cells] for cells in table.rows] == [
        ["all letters came", "All of them", "✓ 5 of 5 pass", "✓ 5 of 5 pass"],
        ["none was read", "No", "–", "–"],
    ]
    assert known.sentences == (WARNING,), "once, since it is on all runs"
    *_, letters, _ = blocks(document, "Letters")
    assert isinstance(letters, Table) and [cells[1].text for cells in letters.rows] == ["1,020 (5)", "510.0 (5)"]


def test_runs_that_no_table_has_and_those_not_finished_are_named(
    store: Store, reader: Reader, plugins: Plugins
) -> None:
    older, newer = store_post(store, repeats=1), queue_post(store, repeats=2)
    for run_id in newer:
        end(store, run_id, *((RunStatus.FAILED, "It broke.") if run_id == newer[-1] else ()))
    document = built(reader, plugins, [*older, *newer])
    known = next(block for block in blocks(document, "Letters") if isinstance(block, Callout))
    assert f"Not finished, and left out of the figures: run {newer[-1]}." in known.sentences
    left, *_ = blocks(document, "Runs, computers and evidence")
    assert isinstance(left, Paragraph) and "In no table of these chapters" in left.text
    assert "is shown: runs 1–2." in left.text


def test_a_run_that_changed_since_it_was_sealed_proves_nothing(store: Store, reader: Reader, plugins: Plugins) -> None:
    run_ids = store_post(store, repeats=1)
    with closing(store), store.writer.transaction() as connection:
        connection.execute(update(schema.metric).where(schema.metric.c.run_id == run_ids[1]).values(value=7.0))
    notice, campaigns, _ = blocks(built(reader, plugins, run_ids), "Runs, computers and evidence")
    assert isinstance(notice, Callout) and isinstance(campaigns, Table)
    assert notice.sentences == (f"Not as it was sealed, and prove nothing: run {run_ids[1]}.",)
    assert campaigns.rows[0][-1].text == "1 of 2"


def test_refusals_say_what_to_do(store: Store, reader: Reader, plugins: Plugins) -> None:
    run_ids = store_post(store, repeats=1)
    with store.writer.transaction() as connection:
        connection.execute(update(schema.scenario).where(schema.scenario.c.name == "sealed").values(kind="pigeon"))
    with pytest.raises(UserError, match="Run 2 is of the trial pigeon, which no chapter of the outline post has"):
        built(reader, plugins, run_ids)
    with pytest.raises(UserError, match="is still running"):
        built(reader, plugins, queue_post(store))


def test_whole_campaigns_of_runs_may_be_several(store: Store, reader: Reader) -> None:
    first, second = store_post(store, repeats=1), store_post(store, repeats=2)
    assert whole_campaigns(reader, [second[-1], first[0]]) == (*first, *second)
