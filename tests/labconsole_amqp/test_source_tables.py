"""SWIM's own tables: the shapes are those of the source, and one campaign fills them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from labconsole.analysis.columns import RunGroup, counterparts, group_repeats
from labconsole.analysis.published_figures import PublishedTable, published_tables
from labconsole.analysis.table_shape import FilledTable, TableShape, fill, table_shapes
from labconsole.model.plugin import Plugins
from labconsole.model.trial import LINK_USE, Metric
from labconsole.profiles.profile import campaign_of, load_profile
from labconsole.store.records import RunRow, RunStatus
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.source_tables import TABLES
from labconsole_amqp.trial.metrics import METRICS
from tests.helpers.run_row import finished_run

SOURCE = Path(__file__).resolve().parents[3] / "shared" / "sources" / "swim-wp16.txt"
KIND = "amqp.messaging"
MEDIUM = "swim-within-malaysia-medium"


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins.discover()


@pytest.fixture(scope="module")
def published(plugins: Plugins) -> Sequence[PublishedTable]:
    return [table for table in published_tables(plugins) if KIND in table.kinds]


def shape(name: str) -> TableShape:
    return next(table for table in TABLES if table.name == name)


def run(run_id: int, value: float, campaign: int = 1, **parameters: Any) -> RunRow:
    """A finished run all whose metrics have `value`."""
    stored = AmqpParameters(**parameters).model_dump(mode="json")
    metrics = {kind.name: Metric(kind.name, value, kind.unit) for kind in METRICS if kind.name != LINK_USE}
    about = {"campaign_id": campaign, "campaign": f"Campaign {campaign}", "scenario": f"Test {stored['test']}"}
    return finished_run(run_id, KIND, stored, metrics, **about)


def campaign(tests: Sequence[int], repeats: int = 5, first: int = 1, number: int = 1, **more: Any) -> list[RunRow]:
    """Repeats of some tests; a run's figures are 100 x its test, and a little more with each repeat."""
    return [
        run(first + repeat * len(tests) + place, 100.0 * test + repeat, number, test=test, **more)
        for repeat in range(repeats)
        for place, test in enumerate(tests)
    ]


def filled(plugins: Plugins, runs: Sequence[RunRow], name: str = MEDIUM) -> FilledTable:
    return fill(shape(name), group_repeats(runs), plugins)


def test_the_manifest_brings_the_six_tables(plugins: Plugins, published: Sequence[PublishedTable]) -> None:
    assert table_shapes(plugins, KIND) == TABLES
    assert [table.name for table in TABLES] == [table.name for table in published]
    assert table_shapes(plugins, "unknown.kind") == ()


@pytest.mark.skipif(not SOURCE.exists(), reason="the source's text is not next to the checkout")
def test_rows_and_columns_are_titled_as_in_the_source() -> None:
    text = SOURCE.read_text(encoding="utf-8")
    for table in TABLES:
        section = text.split(f"# {table.title}\n")[1].split("\n# ")[0]
        lines = [line.split("\t") for line in section.splitlines() if "\t" in line]
        assert [column.title for column in table.columns] == [cell.strip() for cell in lines[0][1:]]
        assert [row.title for row in table.rows] == [line[0] for line in lines[1:]]


def test_every_published_column_has_its_place_in_the_shape(published: Sequence[PublishedTable]) -> None:
    """By its parameters, under the same title, and every printed figure in a row."""
    for table, printed in zip(TABLES, published, strict=True):
        places = {column.title: {**table.parameters, **column.parameters} for column in table.columns}
        for column in printed.columns:
            title = column.title.partition(" · ")[0]
            assert places[title] == dict(column.parameters)
            assert set(column.figures) == {row.metric for row in table.rows}


def test_one_campaign_of_the_source_s_profile_fills_three_tables(plugins: Plugins) -> None:
    """Every column of every row, each with its published figure."""
    new = campaign_of(load_profile("swim-within-malaysia", plugins))
    runs = [run(number, 10.0 * number, **scenario.parameters) for number, scenario in enumerate(new.scenarios, start=1)]
    tables = [filled(plugins, runs, table.name) for table in TABLES if "within" in table.name]
    assert len(tables) == 3
    for table in tables:
        for row in table.cells:
            assert all(cell.value is not None and cell.published is not None and cell.runs == 1 for cell in row)
        assert not any(note.startswith("No run") or "Messages:" in note for note in table.notes)


def test_a_cell_has_centre_interval_runs_and_what_is_published(plugins: Plugins) -> None:
    table = filled(plugins, campaign((1, 2, 3, 4)))
    throughput = table.cells[[row.metric for row in table.shape.rows].index("throughput")]
    cell = throughput[2]
    assert cell.value == pytest.approx(302, abs=0.1)
    assert cell.interval is not None and cell.interval.low < 302 < cell.interval.high
    assert (cell.runs, cell.unit) == (5, "msg/s")
    assert cell.published is not None and cell.published.printed == "196.51 msg / sec"
    assert cell.holds is False
    assert not any("repeats" in note for note in table.notes)


def test_a_run_belongs_to_a_table_by_its_payload(plugins: Plugins) -> None:
    runs = campaign((1, 2), payload="small")
    assert filled(plugins, runs, "swim-within-malaysia-small").filled
    assert filled(plugins, runs, "swim-my-sg-small").filled
    assert not filled(plugins, runs, MEDIUM).filled


def test_a_run_with_drawn_sizes_is_not_the_sources_and_one_of_before_them_is(plugins: Plugins) -> None:
    drawn = [*campaign((1,), message_sizes="uniform"), *campaign((2,), first=50, message_sizes="mix")]
    assert not filled(plugins, drawn).filled
    older = campaign((1, 2))
    before = [dataclasses.replace(one, parameters={**one.parameters}) for one in older]
    for one in before:
        del one.parameters["message_sizes"]  # type: ignore[attr-defined]
    assert filled(plugins, before).filled
    columns = [column for table in published_tables(plugins) for column in table.columns if table.name == MEDIUM]
    groups = group_repeats([*drawn, *before])
    assert {group.parameters.get("message_sizes") for one in columns for group in counterparts(groups, one)} == {None}


def test_missing_columns_and_few_repeats_are_noted(plugins: Plugins) -> None:
    notes = filled(plugins, campaign((1, 3), repeats=2)).notes
    assert "No run of Test 2, Test 4 is among those chosen." in notes
    assert "Fewer than 5 repeats: Test 1 (2), Test 3 (2)." in notes
    assert not any("Test 1" in note for note in filled(plugins, campaign((2,)), "swim-my-sg-medium").notes[:1])


def test_differences_from_the_source_are_noted_where_they_matter(plugins: Plugins) -> None:
    runs = campaign((1, 3), count=10_000) + campaign((2,), first=50, count=4_000)
    notes = filled(plugins, runs).notes
    assert "Messages: 4,000 here, 10,000 in the source (Test 2)." in notes
    assert "Signature fields in: application-properties here, message-annotations in the source (Test 3)." in notes
    assert "Broker: embedded here, external in the source." in notes
    assert "Link rate: not stated here, 2 Mbit/s in the source." in notes
    assert not any("Signature fields" in note for note in filled(plugins, runs, "swim-my-sg-medium").notes)
    shaped = filled(plugins, campaign((1,), broker="external", link_rate=2.0)).notes
    assert not any("Broker:" in note or "Link rate:" in note for note in shaped)


def test_the_source_s_oddities_are_among_the_notes(plugins: Plugins) -> None:
    assert any(
        "903 bytes" in note for note in filled(plugins, campaign((4,), payload="small"), "swim-my-sg-small").notes
    )


def test_of_several_groups_the_one_with_most_runs_is_shown_then_the_newest(plugins: Plugins) -> None:
    one, two = campaign((1,), repeats=2, number=1), campaign((1,), repeats=3, first=20, number=2)
    three = [dataclasses.replace(row, id=row.id + 100, campaign_id=3, campaign="Campaign 3") for row in two]

    def shown(runs: Sequence[RunRow]) -> RunGroup | None:
        return filled(plugins, runs).groups[0]

    chosen = shown(one + two)
    assert chosen is not None and chosen.runs[0].campaign_id == 2
    newest = shown(three + one + two)
    assert newest is not None and newest.runs[0].campaign_id == 3
    notes = filled(plugins, one + two + campaign((2,), first=40, number=1)).notes
    assert any(note.startswith("Test 1: 2 scenarios fit; shown is ") and "Campaign 2" in note for note in notes)
    assert any("several campaigns" in note for note in notes)


def test_running_runs_are_left_out_and_link_bound_ones_are_noted(plugins: Plugins) -> None:
    (row,) = campaign((1,), repeats=1)
    going = dataclasses.replace(row, status=RunStatus.RUNNING, metrics={})
    assert not filled(plugins, [going]).filled
    metrics: Mapping[str, Metric] = {**row.metrics, LINK_USE: Metric(LINK_USE, 92.0, "%")}
    bound = dataclasses.replace(row, metrics=metrics, parameters={**row.parameters, "link_rate": 2.0})
    assert any("92 % of 2 Mbit/s" in note for note in filled(plugins, [bound]).notes)
