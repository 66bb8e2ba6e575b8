"""The thesis' tables of steps and device: a place for every printed figure, and what the two profiles fill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from labconsole.analysis.columns import group_repeats
from labconsole.analysis.published_figures import PublishedTable, published_tables, same_scenario
from labconsole.analysis.table_shape import TableShape, fill, table_shapes
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Metric, Origin
from labconsole.profiles.profile import campaign_of, load_profile
from labconsole.store.records import RunRow
from labconsole_keypool.measuring.measuring_tables import DEVICE_TABLES, STEP_TABLES
from labconsole_keypool.results import service_tables
from tests.helpers.run_row import finished_run

STEPS, DEVICE = "keypool.step-times", "keypool.device-benchmark"
SHAPES = {STEPS: STEP_TABLES, DEVICE: DEVICE_TABLES}


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins.discover()


@pytest.fixture(scope="module")
def thesis(plugins: Plugins) -> Mapping[str, PublishedTable]:
    return {table.name: table for table in published_tables(plugins)}


def run(number: int, kind: str, parameters: Mapping[str, Any], plugins: Plugins, *shapes: TableShape) -> RunRow:
    """A finished run whose figures are all its own number."""
    trial = plugins.trial(kind)
    origin = Origin.SIMULATED if kind == "keypool.simulation" else Origin.MEASURED
    stored = trial.parameters.model_validate(parameters).model_dump(mode="json")
    units = {metric.name: metric.unit for metric in trial.metrics}
    metrics = {
        row.metric: Metric(row.metric, number, units[row.metric.partition("{")[0]], origin=origin)
        for shape in shapes
        for row in shape.rows
    }
    return finished_run(number, kind, stored, metrics, scenario=f"Scenario {number}")


@pytest.mark.parametrize("kind", SHAPES)
def test_every_published_column_has_its_place(
    kind: str, plugins: Plugins, thesis: Mapping[str, PublishedTable]
) -> None:
    """Under its title up to the colon, with every figure in a row; but for capacities, which no run measures."""
    assert table_shapes(plugins, kind) == SHAPES[kind]
    for shape in SHAPES[kind]:
        rows = {row.metric for row in shape.rows}
        for printed in thesis[shape.published].columns:
            places = [
                column
                for column in shape.columns
                if (
                    printed.name.endswith(f"/{column.published}")
                    if column.published
                    else same_scenario(printed.parameters, {**shape.parameters, **column.parameters})
                )
            ]
            assert len(places) == 1, printed.name
            assert {name for name in printed.figures if not name.startswith("capacity{")} <= rows
    shown = {shape.published for shape in SHAPES[kind]}
    assert {name for name, table in thesis.items() if kind in table.kinds} - shown <= {"keypool-table-2-2"}


def test_the_profile_of_steps_fills_a_column_of_every_table(plugins: Plugins) -> None:
    new = campaign_of(load_profile("keypool-step-times", plugins))
    runs = [
        run(number, STEPS, scenario.parameters, plugins, *SHAPES[STEPS])
        for number, scenario in enumerate(new.scenarios, start=1)
    ]
    for shape in SHAPES[STEPS]:
        table = fill(shape, group_repeats(runs), plugins)
        if shape.name != "keypool-table-2-9":  # needs 9,998 requests: seconds, which the quick profile does not take
            assert table.filled, shape.name
    by_threads = fill(next(s for s in SHAPES[STEPS] if s.name == "keypool-table-2-10"), group_repeats(runs), plugins)
    assert all(cell.value is not None and cell.published is not None for row in by_threads.cells for cell in row)


def test_one_device_run_is_shown_next_to_every_column_of_appendix_c(plugins: Plugins) -> None:
    shape = SHAPES[DEVICE][0]
    table = fill(shape, group_repeats([run(1, DEVICE, {}, plugins, shape)]), plugins)
    first = [(cell.value, cell.published.printed if cell.published else None) for cell in table.cells[0]]
    assert first == [(1, "1800 Ops/Sec"), (1, "3600 Ops/Sec"), (1, "1800 Ops/Sec"), (1, "3600 Ops/Sec")]
    assert len(table.cells) == 48


def test_device_run_with_all_sizes_is_shown_in_appendix_c(plugins: Plugins) -> None:
    campaign = campaign_of(load_profile("keypool-device-benchmark", plugins))
    runs = [run(number, DEVICE, one.parameters, plugins) for number, one in enumerate(campaign.scenarios, start=1)]
    (group, *_) = fill(SHAPES[DEVICE][0], group_repeats(runs), plugins).groups
    assert group is not None and (group.parameters["threads"], group.parameters["largest"]) == (4, "4096")


def test_live_and_simulated_runs_are_columns_of_one_table(plugins: Plugins) -> None:
    """Each under the same column of the source, distinguished by the origin of its figures."""
    shape = next(table for table in service_tables.TABLES if table.name == "keypool-table-4-2")
    scenario = {"arrivals": "constant", "rate": 40.0, "requests": 3000}
    live = run(1, "keypool.signing-service", scenario, plugins, shape)
    simulated = run(2, "keypool.simulation", scenario, plugins, shape)
    only = fill(shape, group_repeats([live]), plugins)
    assert [column.title for column in only.shape.columns] == [column.title for column in shape.columns]
    both = fill(shape, group_repeats([live, simulated]), plugins)
    assert len(both.shape.columns) == 4
    assert [cell.value for cell in both.cells[0]] == [2, 1, None, None]
    assert [cell.published.printed for cell in both.cells[0] if cell.published][:2] == ["1028 requests"] * 2
    assert [column.title for column in both.shape.columns[:2]] == [
        "Test 1, simulated: 40 requests per second",
        "Test 1, measured: 40 requests per second",
    ]
