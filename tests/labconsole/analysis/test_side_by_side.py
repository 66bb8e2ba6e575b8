"""Runs side by side: how they are grouped, averaged and compared, and what a reader is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from pydantic import Field

from labconsole.analysis.side_by_side import Table, side_by_side
from labconsole.store.records import RunRow, RunStatus
from labconsole.trial import Direction, Metric, MetricKind, Origin, Parameters, Trial


class PostParameters(Parameters):
    letters: int = Field(default=10, title="Letters", json_schema_extra={"unit": "letters"})
    sealed: bool = Field(default=False, title="Sealed")


class PostTrial(Trial[PostParameters]):
    kind: ClassVar[str] = "post"
    title: ClassVar[str] = "Post"
    description: ClassVar[str] = "Letters"
    parameters: ClassVar[type[Parameters]] = PostParameters
    series: ClassVar[tuple[Any, ...]] = ()
    live: ClassVar[tuple[Any, ...]] = ()
    metrics: ClassVar[tuple[MetricKind, ...]] = (
        MetricKind("rate", "Rate", "letters/s", Direction.HIGHER, "Letters per second."),
        MetricKind("lost", "Lost", "letters", Direction.LOWER, "Letters that never came."),
    )

    def roles(self, parameters: PostParameters) -> Any:
        raise NotImplementedError

    def run(self, parameters: PostParameters, context: Any) -> None:
        raise NotImplementedError

    def evaluate(self, parameters: PostParameters, samples: Any, events: Any) -> Any:
        raise NotImplementedError


def run(number: int, scenario: str, figures: dict[str, float], **changes: Any) -> RunRow:
    metrics = {
        name: Metric(name, value, "letters/s" if name == "rate" else "letters") for name, value in figures.items()
    }
    moment = datetime(2025, 5, 20, tzinfo=UTC)
    row = RunRow(
        id=number,
        uuid=str(number),
        campaign_id=1,
        campaign="Spring",
        profile="demo",
        scenario=scenario,
        kind="post",
        parameters={"letters": 10, "sealed": scenario == "sealed"},
        repeat=1,
        position=number,
        status=RunStatus.FINISHED,
        reason="",
        seed=1,
        created=moment,
        started=moment,
        ended=moment,
        owner=None,
        tags=(),
        note="",
        trashed=False,
        metrics=metrics,
    )
    return replace(row, **changes)


def line(table: Table, name: str) -> list[tuple[float | None, float | None]]:
    [found] = [line for line in table.metrics if line.kind.name == name]
    return [(cell.value, cell.difference) for cell in found.cells]


def test_repeats_of_a_scenario_are_one_column_with_their_mean() -> None:
    runs = [run(1, "open", {"rate": 100}), run(2, "sealed", {"rate": 40}), run(3, "open", {"rate": 120})]
    table = side_by_side(runs, PostTrial())
    assert [(column.title, column.repeats) for column in table.columns] == [("open", 2), ("sealed", 1)]
    assert line(table, "rate") == [(110.0, None), (40.0, pytest.approx(-63.636, abs=0.001))]


def test_each_run_can_stand_alone_and_any_column_be_the_baseline() -> None:
    runs = [run(1, "open", {"rate": 100}), run(3, "open", {"rate": 125}), run(2, "sealed", {"rate": 50})]
    table = side_by_side(runs, PostTrial(), baseline=2, grouped=False)
    assert [column.title for column in table.columns] == ["open · run 1", "open · run 3", "sealed"]
    assert line(table, "rate") == [(100.0, 100.0), (125.0, 150.0), (50.0, None)]
    with pytest.raises(ValueError, match="column 3 cannot be the baseline of 3"):
        side_by_side(runs, PostTrial(), baseline=3, grouped=False)


def test_the_same_scenario_of_another_campaign_or_with_other_parameters_is_another_column() -> None:
    runs = [
        run(1, "open", {"rate": 1}),
        run(2, "open", {"rate": 2}, campaign_id=2, campaign="Autumn"),
        run(3, "open", {"rate": 3}, campaign_id=2, campaign="Autumn", parameters={"letters": 99}),
    ]
    titles = [column.title for column in side_by_side(runs, PostTrial()).columns]
    assert titles == ["open · Spring", "open · Autumn · run 2", "open · Autumn · run 3"]


def test_a_failed_repeat_is_left_out_of_the_mean_and_named() -> None:
    failed = run(2, "open", {"rate": 1}, status=RunStatus.FAILED)
    table = side_by_side([run(1, "open", {"rate": 100}), failed], PostTrial())
    assert line(table, "rate") == [(100.0, None)]
    assert table.notes == ("Run 2 (failed) is left out of the means of open.",)
    alone = side_by_side([failed], PostTrial())
    assert line(alone, "rate") == [(1.0, None)]
    assert "Run 2 is failed: its figures cover what was sampled until then." in alone.notes


def test_no_difference_is_made_up_from_zero_or_from_nothing() -> None:
    runs = [run(1, "open", {"rate": 5, "lost": 0}), run(2, "sealed", {"lost": 3})]
    table = side_by_side(runs, PostTrial())
    assert line(table, "lost") == [(0.0, None), (3.0, None)]
    assert line(table, "rate") == [(5.0, None), (None, None)]


def test_differing_parameters_are_told_from_equal_ones_with_titles_and_units() -> None:
    table = side_by_side([run(1, "open", {"rate": 1}), run(2, "sealed", {"rate": 1})], PostTrial())
    assert [(p.title, p.unit, p.texts, p.differs) for p in table.parameters] == [
        ("Letters", "letters", ("10", "10"), False),
        ("Sealed", "", ("no", "yes"), True),
    ]


def test_metrics_come_in_the_trials_order_with_its_titles_and_then_unknown_ones() -> None:
    table = side_by_side([run(1, "open", {"odd_one": 1, "lost": 0, "rate": 1})], PostTrial())
    assert [(m.kind.name, m.kind.title) for m in table.metrics] == [
        ("rate", "Rate"),
        ("lost", "Lost"),
        ("odd_one", "odd one"),
    ]


def test_runs_of_different_trials_share_what_they_share_and_it_is_said() -> None:
    other = run(2, "radio", {"lost": 4, "range": 300}, kind="radio")
    table = side_by_side([run(1, "open", {"rate": 1, "lost": 2}), other], PostTrial())
    assert [m.kind.name for m in table.metrics] == ["lost"]
    assert "Runs of different trials: only the metrics they share are shown." in table.notes


def test_few_repeats_and_mixed_origins_are_said_in_the_same_line() -> None:
    five = [run(number, "open", {"rate": 100 + number}) for number in range(1, 6)]
    simulated = [
        run(number, "sealed", {}, metrics={"rate": Metric("rate", 80, "letters/s", origin=Origin.SIMULATED)})
        for number in range(6, 11)
    ]
    assert side_by_side(five[:2], PostTrial()).metrics[0].remark == "fewer than 5 repeats"
    assert side_by_side(five, PostTrial()).metrics[0].remark == ""
    assert side_by_side([*five, *simulated], PostTrial()).metrics[0].remark == "different origins: measured, simulated"


def test_figures_in_different_units_are_not_subtracted() -> None:
    other = run(2, "sealed", {}, metrics={"rate": Metric("rate", 1, "letters/min")})
    table = side_by_side([run(1, "open", {"rate": 1}), other], PostTrial())
    assert line(table, "rate") == [(1.0, None), (1.0, None)]
    assert "different units: letters/min, letters/s" in table.metrics[0].remark


def test_runs_of_a_trial_that_is_not_installed_can_still_be_compared() -> None:
    table = side_by_side([run(1, "open", {"rate": 2}), run(2, "sealed", {"rate": 3})], None)
    assert line(table, "rate") == [(2.0, None), (3.0, 50.0)]
    assert [p.title for p in table.parameters] == ["letters", "sealed"]
