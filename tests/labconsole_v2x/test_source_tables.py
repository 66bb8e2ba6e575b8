"""The source's tables and figures as shapes: each published value has its place, and the profiles fill them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from labconsole.analysis.columns import group_repeats
from labconsole.analysis.published_figures import PublishedTable, published_tables, same_scenario
from labconsole.analysis.table_shape import FilledTable, TableShape, fill, table_shapes
from labconsole.model.parameters import Parameters
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Metric
from labconsole.profiles.profile import campaign_of, load_profile
from labconsole.store.records import RunRow
from labconsole_v2x.attacks.attack_parameters import AttackParameters
from labconsole_v2x.benchmark.benchmark_parameters import BenchmarkParameters
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.source_tables import (
    ATTACK_TABLES,
    BENCHMARK_TABLES,
    LIVE_TABLES,
    NEIGHBOUR_TABLES,
    SIMULATED_TABLES,
    TESTBED_TABLES,
)
from tests.helpers.run_row import finished_run

SHAPES = {
    shape.name: shape
    for shapes in (LIVE_TABLES, TESTBED_TABLES, BENCHMARK_TABLES, ATTACK_TABLES, SIMULATED_TABLES)
    for shape in shapes
}
MODELS: Mapping[str, type[Parameters]] = {
    "v2x.live": LiveParameters,
    "v2x.benchmark": BenchmarkParameters,
    "v2x.simulation": SimulationParameters,
    "v2x.attack": AttackParameters,
}
WITHOUT_SHAPE = {"preserve-table-2-17"}
"""Verdicts: rows of a shape are metrics, and the lines of a comparison have them."""


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins.discover()


@pytest.fixture(scope="module")
def published(plugins: Plugins) -> Mapping[str, PublishedTable]:
    return {table.name: table for table in published_tables(plugins) if {*MODELS, "v2x.use-cases"} & set(table.kinds)}


def run(number: int, shape: TableShape, kind: str, **parameters: Any) -> RunRow:
    """A finished run in which each row of the table has the value of its number."""
    stored = MODELS[kind].model_validate(parameters).model_dump(mode="json")
    metrics = {row.metric: Metric(row.metric, float(number), "") for row in shape.rows}
    return finished_run(number, kind, stored, metrics, scenario=f"Scenario {number}")


def filled(plugins: Plugins, name: str, profile: str) -> FilledTable:
    """A table with one run of each scenario of a profile."""
    new = campaign_of(load_profile(profile, plugins))
    runs = [run(number, SHAPES[name], one.kind, **one.parameters) for number, one in enumerate(new.scenarios, start=1)]
    return fill(SHAPES[name], group_repeats(runs), plugins)


def test_manifest_brings_a_shape_for_every_table_with_figures_of_these_trials(
    plugins: Plugins, published: Mapping[str, PublishedTable]
) -> None:
    assert table_shapes(plugins, "v2x.live") == LIVE_TABLES + TESTBED_TABLES
    assert table_shapes(plugins, "v2x.benchmark") == BENCHMARK_TABLES
    assert (
        table_shapes(plugins, "v2x.simulation") == TESTBED_TABLES + ATTACK_TABLES + SIMULATED_TABLES + NEIGHBOUR_TABLES
    )
    assert table_shapes(plugins, "v2x.attack") == ATTACK_TABLES
    assert table_shapes(plugins, "v2x.use-cases") == ()
    assert published.keys() - SHAPES.keys() == WITHOUT_SHAPE
    assert all(shape.published == name for name, shape in SHAPES.items())


def test_every_published_value_has_its_place(published: Mapping[str, PublishedTable]) -> None:
    """In a column of the same scenario, or of that name, and in a row of its metric."""
    for name, shape in SHAPES.items():
        for column in published[name].columns:
            short = column.name.partition("/")[2]
            fitting = [
                place
                for place in shape.columns
                if (place.published == short)
                or (not place.published and same_scenario(column.parameters, {**shape.parameters, **place.parameters}))
            ]
            assert fitting, column.name
            assert set(column.figures) <= {row.metric for row in shape.rows}, column.name


def test_parameters_are_those_of_the_trials() -> None:
    """One that no trial of the table has would decide nothing."""
    for shape in SHAPES.values():
        fields = {name for kind in shape.kinds for name in MODELS[kind].model_fields}
        assert {name for column in shape.columns for name in {**shape.parameters, **column.parameters}} <= fields


def test_run_with_other_times_is_not_in_a_figure_that_its_profile_does_not_read(plugins: Plugins) -> None:
    table = filled(plugins, "preserve-figure-4-3", "v2x-testbed-published")
    timings = {group.parameters["timing"] for group in table.groups if group is not None}
    assert timings == {"nexcom-vtc6201-fig43-44"}


def test_metrics_of_the_rows_are_those_of_the_trials(plugins: Plugins) -> None:
    for shape in SHAPES.values():
        for trial in shape.kinds:
            names = {kind.name for kind in plugins.trial(trial).metrics}
            assert {row.metric.partition("{")[0] for row in shape.rows} <= names


@pytest.mark.parametrize(
    ("name", "profile", "printed"),
    [
        ("preserve-figure-4-1", "v2x-loads", 2),
        ("preserve-figure-4-3", "v2x-medium-load", 4),
        ("preserve-figure-4-4", "v2x-high-load", 2),
        ("preserve-figure-4-5", "v2x-high-load", 1),
        ("preserve-figure-4-3", "v2x-testbed-published", 4),
        ("preserve-figure-4-4", "v2x-testbed-published", 2),
        ("preserve-figure-4-1-simulated", "v2x-testbed-published", 1),
        ("preserve-figure-4-2-simulated", "v2x-testbed-published", 2),
        ("preserve-figure-4-5-simulated", "v2x-testbed-published", 1),
        ("preserve-table-4-2", "v2x-attacks-published", 42),
        ("preserve-table-4-2", "v2x-attacks-live", 42),
        ("preserve-packet-sizes", "v2x-high-load", 3),
        ("preserve-table-3-2", "v2x-benchmark", 24),
    ],
)
def test_profile_fills_every_column_of_its_figure(plugins: Plugins, name: str, profile: str, printed: int) -> None:
    table = filled(plugins, name, profile)
    assert all(cell.value is not None for row in table.cells for cell in row)
    assert sum(cell.published is not None for row in table.cells for cell in row) == printed
    assert not any(note.startswith("No run") for note in table.notes)


def test_one_campaign_says_how_many_neighbours_a_unit_serves(plugins: Plugins) -> None:
    new = campaign_of(load_profile("v2x-neighbours", plugins))
    seen: set[float | None] = set()
    for shape in NEIGHBOUR_TABLES:
        runs = [run(number, shape, one.kind, **one.parameters) for number, one in enumerate(new.scenarios, start=1)]
        table = fill(shape, group_repeats(runs), plugins)
        seen.update(cell.value for cell in table.cells[0])
        assert not any("scenarios fit" in note for note in table.notes)
    assert len(seen) == 3 * 15 and None not in seen, "each has the run of a scenario of its own"


def test_value_of_a_run_is_next_to_that_of_the_source(plugins: Plugins) -> None:
    """15 senders at 20 Hz are the eleventh scenario of the profile."""
    table = filled(plugins, "preserve-figure-4-1", "v2x-loads")
    titles = [column.title for column in table.shape.columns]
    cell = table.cells[0][titles.index("15 senders: 20 Hz")]
    assert cell.value == 11 and cell.unit == "us"
    assert cell.published is not None and (cell.published.value, cell.published.printed) == (11_000, "0.011 sec")
    printed = [title for title, cell in zip(titles, table.cells[0], strict=True) if cell.published is not None]
    assert printed == ["All loads, on average", "15 senders: 20 Hz"], "no point of the curves"


def test_columns_of_one_name_are_named_with_the_repeats_of_each(plugins: Plugins) -> None:
    shape = SHAPES["preserve-figure-4-3"]
    loads: list[dict[str, Any]] = [{"senders": 5, "rate": rate} for rate in (1.0, 10.0, 10.0)]
    runs = [run(number, shape, "v2x.live", **given) for number, given in enumerate(loads, start=1)]
    runs[2] = replace(runs[2], scenario=runs[1].scenario, repeat=2)
    table = fill(shape, group_repeats(runs), plugins)
    assert "Fewer than 5 repeats: Full security (1), Full security (2)." in table.about


def test_token_is_in_the_place_of_the_asic(plugins: Plugins) -> None:
    shape = SHAPES["preserve-figure-4-2"]
    loads: list[dict[str, Any]] = [{"senders": 5, "rate": rate, "verification": "token"} for rate in (20.0, 100.0)]
    software: dict[str, Any] = {"senders": 5, "rate": 20.0}
    runs = [run(number, shape, "v2x.live", **given) for number, given in enumerate((*loads, software), start=1)]
    table = fill(shape, group_repeats(runs), plugins)
    assert [cell.value for cell in table.cells[0]] == [1, 2]
    assert [cell.published.printed for cell in table.cells[0] if cell.published] == ["0.0086 s", "0.0091 s"]
