"""The thesis' own tables: the shapes name what the source names, and one campaign fills them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from labconsole.analysis.columns import group_repeats
from labconsole.analysis.published_figures import PublishedTable, published_tables, same_scenario
from labconsole.analysis.table_shape import FilledTable, fill, table_shapes
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Metric, Origin
from labconsole.profiles.profile import campaign_of, load_profile
from labconsole.store.records import RunRow
from labconsole_keypool.results.evaluation import METRICS
from labconsole_keypool.results.service_tables import TABLES
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters
from tests.helpers.run_row import finished_run

SOURCE = Path(__file__).resolve().parents[4] / "shared" / "sources" / "hsm-key-pool-thesis.txt"
KIND = "keypool.simulation"
FIGURES = "keypool-figures-4-1-to-4-5"
FIG_4_1 = {"arrivals": "table-4-1", "keys": "generated", "queue_limit": 0}


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins.discover()


@pytest.fixture(scope="module")
def thesis(plugins: Plugins) -> Mapping[str, PublishedTable]:
    return {table.name: table for table in published_tables(plugins) if KIND in table.kinds}


def run(number: int, parameters: Mapping[str, object], **changes: object) -> RunRow:
    """A finished run whose figures are all its own number."""
    stored = SimulationParameters.model_validate(parameters).model_dump(mode="json")
    metrics = {kind.name: Metric(kind.name, number, kind.unit, origin=Origin.SIMULATED) for kind in METRICS}
    return finished_run(number, KIND, stored, metrics, scenario=f"Scenario {number}", **changes)


def filled(plugins: Plugins, runs: Sequence[RunRow], name: str) -> FilledTable:
    shape = next(table for table in TABLES if table.name == name)
    return fill(shape, group_repeats(runs), plugins)


def test_the_manifest_brings_a_shape_for_every_published_table(
    plugins: Plugins, thesis: Mapping[str, PublishedTable]
) -> None:
    assert table_shapes(plugins, KIND) == TABLES
    assert [table.published for table in TABLES] == list(thesis)


def test_every_published_column_has_its_place_in_the_shape(thesis: Mapping[str, PublishedTable]) -> None:
    """Under the first part of its title, and every printed figure in a row."""
    for table in TABLES:
        rows = {row.metric for row in table.rows}
        for printed in thesis[table.published].columns:
            fitting = [
                column.short_title.partition(" with ")[0]
                for column in table.columns
                if same_scenario(printed.parameters, {**table.parameters, **column.parameters})
            ]
            assert set(fitting) == {printed.title.partition(":")[0]}
            assert set(printed.figures) <= rows


@pytest.mark.skipif(not SOURCE.exists(), reason="the source's text is not next to the checkout")
def test_table_4_2_is_titled_as_in_the_source() -> None:
    section = SOURCE.read_text(encoding="utf-8").split(f"\n{TABLES[0].title}\n")[-1].splitlines()
    heads = [head.removesuffix(" (s)") for head in next(line for line in section if "\t" in line).split("\t")]
    for table in TABLES[:2]:
        assert [row.title for row in table.rows] == [head for head in heads if head in {r.title for r in table.rows}]
        assert len(table.rows) == 2
    tests = [line.split("\t")[:2] for line in section if line[:2] in {"1\t", "2\t", "3\t"}]
    assert [column.title for column in TABLES[0].columns] == [
        f"Test {number}: {rate} requests per second" for number, rate in tests
    ]


def test_one_campaign_of_the_profile_fills_every_table(plugins: Plugins) -> None:
    """Each column by one scenario and no other, next to all its published figures."""
    new = campaign_of(load_profile("keypool-published", plugins))
    runs = [run(number, scenario.parameters) for number, scenario in enumerate(new.scenarios, start=1)]
    for shape in TABLES:
        table = filled(plugins, runs, shape.name)
        assert all(cell.value is not None and cell.runs == 1 for row in table.cells for cell in row), shape.name
        chosen = [group.runs[0].id for group in table.groups if group is not None]
        assert len(chosen) == len(set(chosen)) == len(shape.columns)
        assert not any("scenarios fit" in note or "in the source" in note for note in table.notes), table.notes


def test_runs_with_several_timings_are_shown_next_to_the_printed_figure(plugins: Plugins) -> None:
    runs = [
        run(1, {**FIG_4_1, "timing": "luna-sa-1700", "key_generation": "longest"}),
        run(2, {**FIG_4_1, "timing": "luna-sa-1700", "key_generation": "shortest"}),
        run(3, {**FIG_4_1, "timing": "luna-sa-1700-fig4-1"}),
        run(4, {**FIG_4_1, "timing": "luna-sa-1700", "queue_limit": 50}),
    ]
    peak, *_ = filled(plugins, runs, FIGURES).cells
    assert [cell.value for cell in peak] == [3, 2, 1, None, None, None]
    printed = [cell.published.printed if cell.published is not None else None for cell in peak]
    assert printed == [*["1,400,000 ms"] * 3, "12,000 ms", None, None]


def test_a_run_with_more_requests_afterwards_is_not_figure_4_1(plugins: Plugins) -> None:
    """Fig. 4-2 continues at 1 request per second: a separate scenario."""
    tail = run(1, {**FIG_4_1, "timing": "luna-sa-1700-fig4-1", "tail_requests": 2000})
    assert not filled(plugins, [tail], FIGURES).filled


def test_differences_from_the_source_are_reported(plugins: Plugins) -> None:
    several = run(1, {**FIG_4_1, "timing": "luna-sa-1700-fig4-1", "threads": 4})
    assert any("4 here, 1 in the source" in note for note in filled(plugins, [several], FIGURES).notes)


def test_missing_figures_and_contradictions_are_reported(plugins: Plugins) -> None:
    notes = filled(plugins, [run(1, {**FIG_4_1, "timing": "luna-sa-1700-fig4-1"})], FIGURES).notes
    absent = "Figure 4-1 with 588 ms, Figure 4-1 with 673 ms, Figure 4-3, Figure 4-4, Figure 4-5"
    assert f"No run of {absent} is among those chosen." in notes
    assert any("no single service time" in note for note in notes)
