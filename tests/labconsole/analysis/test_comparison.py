"""Columns and lines of a comparison: how runs are grouped, judgements, and remarks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from pydantic import Field

from labconsole.analysis.caveats import caveats
from labconsole.analysis.comparison import (
    Cell,
    Change,
    Column,
    Comparison,
    Judgement,
    MetricLine,
    column_of_run,
    compare,
    group_repeats,
    single_runs,
)
from labconsole.analysis.findings import findings
from labconsole.errors import UserError
from labconsole.model.metrics import LINK_USE, Metric
from labconsole.model.parameters import Parameters
from labconsole.model.series import Origin
from labconsole.store.records import RunRow, RunStatus
from tests.helpers.post_trial import PostParameters, PostTrial, metric, published, repeats, run

QUICK = (100.0, 101.0, 99.0, 100.5, 99.5)
SLOW = (50.0, 50.5, 49.5, 50.2, 49.8)
QUICK_AGAIN = (100.2, 99.1, 100.9, 99.6, 100.4)


def compared(runs: Sequence[RunRow], *more: Column, baseline: int = 0) -> Comparison:
    return compare((*group_repeats(runs), *more), PostTrial(), baseline=baseline)


def line(comparison: Comparison, name: str) -> MetricLine:
    [found] = [line for line in comparison.metrics if line.name == name]
    return found


def change(cell: Cell) -> Change:
    assert cell.change is not None
    return cell.change


def rate_change(runs: Sequence[RunRow], *more: Column) -> Change:
    return change(line(compared(runs, *more), "rate").cells[1])


def test_repeats_of_a_scenario_are_one_column_with_their_geometric_mean() -> None:
    runs = [run(1, "open", {"rate": 100}), run(2, "sealed", {"rate": 40}), run(3, "open", {"rate": 121})]
    comparison = compared(runs)
    assert [(column.title, column.repeats) for column in group_repeats(runs)] == [("open", 2), ("sealed", 1)]
    one, two = line(comparison, "rate").cells
    assert (one.value, one.runs, one.change) == (pytest.approx(110.0), 2, None)
    assert (two.value, two.runs, change(two).percent) == (40.0, 1, pytest.approx(-63.636, abs=0.001))


def test_each_run_can_be_a_column_and_any_column_the_baseline() -> None:
    runs = [run(1, "open", {"rate": 100}), run(3, "open", {"rate": 125}), run(2, "sealed", {"rate": 50})]
    columns = single_runs(runs)
    assert [column.title for column in columns] == ["open · run 1", "open · run 3", "sealed"]
    assert column_of_run(columns, 3) == 1
    cells = line(compare(columns, PostTrial(), baseline=2), "rate").cells
    assert [None if cell.change is None else cell.change.percent for cell in cells] == [100.0, 150.0, None]
    with pytest.raises(ValueError, match="column 3 cannot be the baseline of 3"):
        compare(columns, PostTrial(), baseline=3)
    with pytest.raises(ValueError, match="baseline of 0"):
        compare((), PostTrial())


def test_the_same_scenario_of_another_campaign_or_with_other_parameters_is_another_column() -> None:
    runs = [
        run(1, "open", {"rate": 1}),
        run(2, "open", {"rate": 2}, campaign_id=2, campaign="Autumn"),
        run(3, "open", {"rate": 3}, campaign_id=2, campaign="Autumn", parameters={"letters": 99}),
    ]
    titles = [column.title for column in group_repeats(runs)]
    assert titles == ["open · Spring", "open · Autumn · run 2", "open · Autumn · run 3"]


def test_five_runs_on_both_sides_that_differ_clearly_are_judged_by_the_metrics_direction() -> None:
    slower = rate_change([*repeats(1, "open", "rate", QUICK), *repeats(6, "sealed", "rate", SLOW)])
    assert (slower.judgement, slower.note) == (Judgement.WORSE, "")
    assert slower.ratio == pytest.approx(0.5, abs=0.001) and slower.percent == pytest.approx(-50, abs=0.1)
    assert slower.interval is not None and 0.49 < slower.interval.low < 0.5 < slower.interval.high < 0.51
    assert slower.p is not None and slower.p < 1e-6
    faster = rate_change([*repeats(1, "open", "rate", SLOW), *repeats(6, "sealed", "rate", QUICK)])
    assert faster.judgement is Judgement.BETTER
    fewer_lost = compared([*repeats(1, "open", "lost", QUICK), *repeats(6, "sealed", "lost", SLOW)])
    assert change(line(fewer_lost, "lost").cells[1]).judgement is Judgement.BETTER, "here lower is better"


def test_interval_that_includes_no_change_is_not_judged() -> None:
    same = rate_change([*repeats(1, "open", "rate", QUICK), *repeats(6, "sealed", "rate", QUICK_AGAIN)])
    assert same.judgement is Judgement.NO_CHANGE and same.interval is not None and same.interval.holds(1.0)


@pytest.mark.parametrize(
    ("reference", "other", "note"),
    [
        (repeats(1, "open", "rate", QUICK[:4]), repeats(6, "sealed", "rate", SLOW), "fewer than 5 repeats"),
        (repeats(1, "open", "rate", QUICK), repeats(6, "sealed", "rate", SLOW[:4]), "fewer than 5 repeats"),
        (
            repeats(1, "open", "rate", QUICK),
            repeats(6, "sealed", "rate", SLOW, origin=Origin.SIMULATED),
            "different origins",
        ),
    ],
)
def test_a_figure_that_must_not_be_judged_keeps_its_interval_and_has_the_reason(
    reference: list[RunRow], other: list[RunRow], note: str
) -> None:
    found = rate_change([*reference, *other])
    assert (found.judgement, found.p, found.note) == (Judgement.NOT_JUDGED, None, note)
    assert found.interval is not None and not found.interval.holds(1.0)


@pytest.mark.parametrize("bound_side", ["open", "sealed"])
def test_a_link_bound_run_on_either_side_is_never_judged(bound_side: str) -> None:
    runs = [
        run(
            number, name, {"rate": value, LINK_USE: 92.0 if (name, number) in ((bound_side, 3), (bound_side, 8)) else 9}
        )
        for first, name, values in ((1, "open", QUICK), (6, "sealed", SLOW))
        for number, value in enumerate(values, first)
    ]
    comparison = compared(runs)
    found = line(comparison, "rate")
    assert (change(found.cells[1]).judgement, change(found.cells[1]).note) == (Judgement.NOT_JUDGED, "link-bound")
    assert found.remark == f"link-bound: {bound_side}"
    assert any(note.startswith(f"{bound_side} is link-bound") for note in comparison.notes)


def test_a_metric_without_a_better_way_is_not_judged() -> None:
    comparison = compared([*repeats(1, "open", "weight", QUICK), *repeats(6, "sealed", "weight", SLOW)])
    found = change(line(comparison, "weight").cells[1])
    assert (found.judgement, found.note) == (Judgement.NOT_JUDGED, "neither way is better")


def test_one_run_has_a_difference_and_no_interval() -> None:
    comparison = compared([*repeats(1, "open", "rate", QUICK), *repeats(6, "sealed", "rate", SLOW[:1])])
    found = line(comparison, "rate").cells[1]
    assert found.interval is None and change(found).percent == pytest.approx(-50, abs=0.1)
    assert (change(found).interval, change(found).judgement) == (None, Judgement.NOT_JUDGED)
    assert change(found).note == "one run: no interval"
    assert "One run: no interval (sealed)." in comparison.notes


def test_a_change_that_only_the_many_metrics_make_likely_is_not_significant() -> None:
    """p is about 0.02 for the rate alone, and ten metrics are looked at."""
    near = (102.1, 100.9, 101.6, 100.2, 101.5)
    runs = [*repeats(1, "open", "rate", QUICK), *repeats(6, "sealed", "rate", near)]
    alone = rate_change(runs)
    assert alone.judgement is Judgement.BETTER and alone.p is not None and 0.01 < alone.p < 0.05
    names = [f"cpu{{role={index}}}" for index in range(9)]
    many = [
        run(row.id, row.scenario, {}, metrics={**row.metrics, **{name: metric(name, value) for name in names}})
        for row, value in zip(runs, (*QUICK, *QUICK_AGAIN), strict=True)
    ]
    corrected = rate_change(many)
    assert corrected.judgement is Judgement.NO_CHANGE and corrected.p == pytest.approx(10 * alone.p)
    assert corrected.note.startswith("not significant after Holm's correction")
    assert corrected.interval == alone.interval and corrected.interval is not None and corrected.interval.low > 1


def test_columns_that_the_trial_calls_incomparable_have_no_difference_and_are_named() -> None:
    class Particular(PostTrial):
        def comparable(self, reference: Parameters, other: Parameters) -> bool:
            return reference.model_dump()["letters"] == other.model_dump()["letters"]

    runs = [
        *repeats(1, "open", "rate", QUICK),
        *repeats(6, "stamped", "rate", SLOW),
        *repeats(11, "more", "rate", SLOW, parameters={"letters": 99}),
    ]
    comparison = compare(group_repeats(runs), Particular())
    _, same, apart = line(comparison, "rate").cells
    assert change(same).judgement is Judgement.WORSE
    assert (apart.value, apart.change) == (pytest.approx(same.value), None)
    assert "No difference from the baseline, which was asked to do something else: more." in comparison.notes
    assert "Holm's correction over the table's one comparison" in comparison.notes[-1]


def test_zero_or_missing_baseline_has_no_ratio() -> None:
    runs = [run(1, "open", {"rate": 5, "lost": 0}), run(2, "sealed", {"lost": 3}), run(3, "stamped", {"lost": 0})]
    comparison = compared(runs)
    lost = line(comparison, "lost").cells
    assert math.isnan(change(lost[1]).percent) and change(lost[2]).percent == 0.0
    for cell in lost[1:]:
        assert (change(cell).ratio, change(cell).judgement) == (None, Judgement.NOT_JUDGED)
        assert change(cell).note == "zeros: no ratio"
    absent = line(comparison, "rate").cells[1]
    assert (absent.value, absent.runs, absent.change) == (None, 0, None)


def test_a_failed_repeat_is_left_out_and_named() -> None:
    failed = run(2, "open", {"rate": 1}, status=RunStatus.FAILED)
    comparison = compared([run(1, "open", {"rate": 100}), failed])
    assert line(comparison, "rate").cells[0].value == 100.0
    assert "Run 2 (failed) is left out of the figures of open." in comparison.notes


def test_an_interrupted_run_is_compared_and_marked() -> None:
    interrupted = run(2, "sealed", {"rate": 1}, status=RunStatus.INTERRUPTED)
    comparison = compared([run(1, "open", {"rate": 2}), interrupted])
    assert change(line(comparison, "rate").cells[1]).percent == -50.0
    assert line(comparison, "rate").remarks == ("fewer than 5 repeats", "not finished: sealed")
    assert "Run 2 of sealed is interrupted: its figures cover what was sampled until then." in comparison.notes


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RUNNING])
def test_live_run_is_refused_in_one_sentence(status: RunStatus) -> None:
    runs = [run(1, "open", {"rate": 2}), run(2, "open", {}, status=status)]
    with pytest.raises(UserError, match=f"Run 2 is still {status}: compare it once it has ended"):
        compared(runs)


def test_differing_parameters_are_marked_with_titles_and_units() -> None:
    comparison = compared([run(1, "open", {"rate": 1}), run(2, "sealed", {"rate": 1})])
    assert [(p.title, p.unit, p.texts, p.differs) for p in comparison.parameters] == [
        ("Letters", "letters", ("10", "10"), False),
        ("Sealed", "", ("no", "yes"), True),
        ("Stamped", "", ("no", "no"), False),
    ]


def test_metrics_are_in_the_trials_order_and_unknown_ones_last() -> None:
    figures = {"odd_one": 1, "cpu{role=sender}": 4, "lost": 0, "cpu{role=receiver}": 5, "rate": 1}
    comparison = compared([run(1, "open", figures)])
    assert [(m.name, m.kind.title, m.kind.unit) for m in comparison.metrics] == [
        ("rate", "Rate", "letters/s"),
        ("lost", "Lost", "letters"),
        ("cpu{role=receiver}", "CPU per letter (role receiver)", "us"),
        ("cpu{role=sender}", "CPU per letter (role sender)", "us"),
        ("odd_one", "odd one", "letters"),
    ]
    assert comparison.metrics[3].kind.direction == "lower"


def test_runs_of_different_trials_are_compared_on_common_metrics_with_a_note() -> None:
    other = run(2, "radio", {"lost": 4, "range": 300}, kind="radio")
    comparison = compared([run(1, "open", {"rate": 1, "lost": 2}), other])
    assert [m.name for m in comparison.metrics] == ["lost"]
    assert "Runs of different trials: only the metrics they share are shown." in comparison.notes


def test_a_publication_of_both_trials_keeps_the_metrics_that_their_runs_share() -> None:
    runs = [run(1, "open", {"rate": 1, "lost": 2}), run(2, "radio", {"rate": 3, "lost": 4, "range": 3}, kind="radio")]
    column = published({"lost": 3}, {}, kinds=(PostTrial.kind, "radio"))
    comparison = compare((*group_repeats(runs), column), PostTrial())
    assert [m.name for m in comparison.metrics] == ["rate", "lost"]
    assert [cell.value for cell in comparison.metrics[1].cells] == [2, 3, 4, 3], "next to both that it is of"
    of_one = published({"lost": 3}, {})
    assert [m.name for m in compare((*group_repeats(runs), of_one), PostTrial()).metrics] == ["lost"]


def test_the_same_value_differs_not_because_a_trial_is_another_or_not_installed() -> None:
    class BoxParameters(PostParameters):
        box: int = Field(default=5672, json_schema_extra={"kind": "port"})

    class BoxTrial(PostTrial):
        parameters = BoxParameters

    runs = [run(1, "open", {"lost": 2}, parameters={"box": 5672})]
    runs.append(run(2, "radio", {"lost": 4}, kind="radio", parameters={"box": 5672}))
    (box,) = compare(group_repeats(runs), BoxTrial()).parameters
    assert (box.texts, box.differs) == (("5672", "5672"), False)


def test_parameters_that_only_another_trial_has_are_as_it_describes_them() -> None:
    class BoxParameters(PostParameters):
        box: int = Field(default=5, title="Size of the box", json_schema_extra={"unit": "cm"})
        sealed: bool = Field(default=False, title="Closed")

    class BoxTrial(PostTrial):
        parameters = BoxParameters

    runs = [run(1, "open", {"lost": 2}, parameters={"sealed": True})]
    runs.append(run(2, "box", {"lost": 4}, kind="box", parameters={"sealed": False, "box": 7}))
    sealed, box = compare(group_repeats(runs), PostTrial(), further={"box": BoxTrial()}).parameters
    assert (sealed.title, sealed.texts, sealed.differs, sealed.foreign) == ("Sealed", ("yes", "no"), True, False)
    assert (box.title, box.unit, box.texts, box.foreign) == ("Size of the box", "cm", ("–", "7"), True)


def test_run_in_the_trash_is_marked() -> None:
    runs = [run(1, "open", {"rate": 1}), run(2, "sealed", {"rate": 2}, trashed=True)]
    assert "Run 2 of sealed is in the trash." in compared(runs).notes
    assert caveats(runs[1]) == ("Run 2 is in the trash.",) and caveats(runs[0]) == ()


def test_few_repeats_are_noted_per_line_and_mixed_origins_once_with_marks() -> None:
    simulated = repeats(6, "sealed", "rate", SLOW, origin=Origin.SIMULATED)
    five = repeats(1, "open", "rate", QUICK)
    assert compared(five[:2]).metrics[0].remark == "fewer than 5 repeats"
    assert compared(five).metrics[0].remark == ""
    mixed = compared([*five, *simulated])
    assert mixed.metrics[0].remark == "", "it is said once, above the table"
    assert mixed.origins == "* Simulated: a ratio to such a figure is shown, and never judged."
    assert [cell.marked for cell in mixed.metrics[0].cells] == [False, True]
    assert compared(five).origins == ""


def test_percentile_with_too_few_samples_is_noted_in_its_line() -> None:
    rich, poor = metric("wait_p99", 5.0, samples=5000), metric("wait_p99", 5.0, samples=4999)
    runs = [run(number, "open", {}, metrics={"wait_p99": rich}) for number in range(1, 6)]
    assert compared(runs).metrics[0].remark == ""
    runs += [run(number, "sealed", {}, metrics={"wait_p99": poor if number == 8 else rich}) for number in range(6, 11)]
    [line] = compared(runs).metrics
    assert line.remark == "fewer than 5 repeats; 1 of 5 runs not judged: sealed"
    assert [(cell.runs, cell.not_judged) for cell in line.cells] == [(5, ""), (4, "")]


def test_a_column_without_judged_figures_has_the_reason_and_no_finding() -> None:
    busy = [metric("rate", value, not_judged=reason) for value, reason in ((7.0, "busy"), (8.0, "busy"), (9.0, "late"))]
    runs = repeats(1, "open", "rate", QUICK)
    runs += [run(6 + place, "sealed", {}, metrics={"rate": one}) for place, one in enumerate(busy)]
    comparison = compared(runs)
    cells = line(comparison, "rate").cells
    assert (cells[1].not_judged, cells[1].runs) == ("busy in 2 of 3 runs; late in 1 of 3 runs", 3)
    assert change(cells[1]).judgement is Judgement.NOT_JUDGED
    assert change(cells[1]).notes[0] == cells[1].not_judged
    assert cells[0].not_judged == ""
    assert line(comparison, "rate").remark == "fewer than 5 repeats; not judged, busy, late: sealed"
    assert line(comparison, "rate").unjudged == line(comparison, "rate").remarks[-1]
    assert [one.sentence for one in findings(comparison, None)] == [
        "sealed against open: rate is not judged: busy in 2 of 3 runs; late in 1 of 3 runs"
    ]


def test_reasons_that_differ_in_figures_alone_are_merged() -> None:
    def late(ms: int, *, busy: bool = False) -> Metric:
        return metric("rate", 5.0, not_judged=f"late (p99 {ms} ms)" + ("; busy" if busy else ""))

    runs = [run(place, "open", {}, metrics={"rate": late(place)}) for place in (1, 2)]
    runs += [run(place, "sealed", {}, metrics={"rate": late(3, busy=True)}) for place in (3, 4)]
    rate = line(compared(runs), "rate")
    assert [cell.not_judged for cell in rate.cells] == ["late", "late (p99 3 ms); busy"]
    assert rate.unjudged == "not judged, late, busy: all columns"


def test_runs_that_may_not_be_judged_are_left_out_where_others_may() -> None:
    spoilt = [run(20, "sealed", {}, metrics={"rate": metric("rate", 1e9, not_judged="busy")})]
    comparison = compared([*repeats(1, "open", "rate", QUICK), *repeats(6, "sealed", "rate", SLOW), *spoilt])
    [_, cell] = line(comparison, "rate").cells
    assert (cell.runs, cell.not_judged) == (5, "")
    assert change(cell).judgement is Judgement.WORSE
    assert line(comparison, "rate").remark == "1 of 6 runs not judged: sealed"


def test_figures_in_different_units_are_not_compared() -> None:
    other = run(2, "sealed", {}, metrics={"rate": metric("rate", 1, unit="letters/min")})
    comparison = compared([run(1, "open", {"rate": 1}), other])
    assert [cell.change for cell in comparison.metrics[0].cells] == [None, None]
    assert "different units: letters/min, letters/s" in comparison.metrics[0].remark


def test_runs_of_a_trial_that_is_not_installed_can_still_be_compared() -> None:
    comparison = compare(group_repeats([run(1, "open", {"rate": 2}), run(2, "sealed", {"rate": 3})]), None)
    assert change(comparison.metrics[0].cells[1]).percent == 50.0
    assert [p.title for p in comparison.parameters] == ["letters", "sealed", "stamped"]


def test_a_published_point_is_held_by_the_interval_of_its_own_scenario_or_is_not() -> None:
    runs = [*repeats(1, "open", "rate", QUICK), *repeats(6, "sealed", "rate", SLOW)]
    point = published({"rate": 50.1, "lost": 3}, {"sealed": True, "stamped": False})
    cells = line(compared(runs, point), "rate").cells
    assert [cell.holds for cell in cells] == [None, None, True]
    assert (cells[2].value, cells[2].runs, cells[2].interval) == (50.1, 0, None)
    far = published({"rate": 100.0}, {"sealed": True})
    assert line(compared(runs, far), "rate").cells[2].holds is False, "held by the open letters, but those are others"
    elsewhere = published({"rate": 50.0}, {"sealed": True, "stamped": True})
    assert line(compared(runs, elsewhere), "rate").cells[2].holds is None
    assert line(compared(runs, point), "lost").cells[2].holds is None, "it was not measured"


def test_published_figures_are_not_judged_and_are_marked() -> None:
    runs = repeats(1, "open", "rate", QUICK)
    comparison = compared(runs, published({"rate": 50.0}, {"sealed": True}), baseline=1)
    against = change(line(comparison, "rate").cells[0])
    assert (against.judgement, against.note) == (Judgement.NOT_JUDGED, "different origins")
    assert against.interval is not None and 1.9 < against.interval.low < 2 < against.interval.high < 2.1
    assert [cell.marked for cell in line(comparison, "rate").cells] == [False, True]
    assert comparison.origins.startswith("* Published by the source, from other computers")
    two = compare([published({"rate": 50.0}, {}), published({"rate": 60.0}, {})], PostTrial())
    assert change(two.metrics[0].cells[1]).note == "published points: no interval"


def test_published_column_is_right_of_its_scenario_with_the_ratio() -> None:
    runs = [*repeats(1, "open", "rate", QUICK), *repeats(11, "sealed", "rate", SLOW)]
    columns = (
        published({"rate": 20.0}, {"sealed": False}, name="gazette/open"),
        *group_repeats(runs),
        published({"rate": 25.0}, {"sealed": True}),
        published({"rate": 1.0}, {"letters": 99}, name="gazette/other"),
    )
    comparison = compare(columns, PostTrial(), baseline=2)
    shown = [getattr(column, "name", column.title) for column in comparison.columns]
    assert shown == ["open", "gazette/open", "sealed", "gazette/sealed", "gazette/other"]
    assert comparison.baseline == 2
    of_open, their_open, of_sealed, their_sealed, other = line(comparison, "rate").cells
    for cell, ratio in ((their_open, 5.0), (their_sealed, 2.0)):
        assert cell.ours is not None and cell.change is None
        assert cell.ours.ratio == pytest.approx(ratio, rel=0.01)
        assert cell.ours.judgement is Judgement.NOT_JUDGED and cell.ours.interval is not None
    assert other.ours is None and change(other).ratio == pytest.approx(0.02, rel=0.01)
    assert (of_open.ours, of_sealed.ours) == (None, None)


def test_published_column_is_right_of_its_scenario_in_each_trial() -> None:
    """Of two columns of one trial it is next to the one with most runs; compared again, nothing changes places."""
    radio = [replace(one, kind="radio") for one in repeats(21, "open", "rate", SLOW)]
    few = [replace(one, campaign="Autumn", campaign_id=2) for one in repeats(31, "open", "rate", QUICK[:2])]
    columns = (
        published({"rate": 20.0}, {"sealed": False}, kinds=(PostTrial.kind, "radio")),
        *group_repeats([*few, *repeats(1, "open", "rate", QUICK), *radio]),
    )
    comparison = compare(columns, PostTrial(), baseline=0)
    assert [len(getattr(column, "runs", ())) for column in comparison.columns] == [2, 5, 0, 5, 0]
    assert comparison.baseline == 2, "the first of both"
    comparison = compare(columns, PostTrial(), baseline=2)
    _few, _open, of_open, _radio, of_radio = line(comparison, "rate").cells
    assert of_open.ours is not None and of_open.ours.ratio == pytest.approx(5.0, rel=0.01)
    assert of_radio.ours is not None and of_radio.ours.ratio == pytest.approx(2.5, rel=0.01)
    again = compare(comparison.columns, PostTrial(), baseline=comparison.baseline)
    assert (again.columns, again.baseline) == (comparison.columns, comparison.baseline)


def test_parameters_that_a_publication_does_not_state_do_not_differ() -> None:
    runs = [run(1, "sealed", {"rate": 1})]
    comparison = compared(runs, published({"rate": 1}, {"sealed": True}, known={"letters": 99}))
    assert [(p.name, p.texts, p.differs) for p in comparison.parameters] == [
        ("letters", ("10", "99"), True),
        ("sealed", ("yes", "yes"), False),
        ("stamped", ("no", "–"), False),
    ]


def test_each_warning_appears_once_with_its_columns() -> None:
    both, one = "Closed loop: latency includes queueing.", "Pre-settled: a letter may be lost."
    runs = [
        run(1, "open", {"rate": 1}, warnings=(both,)),
        run(2, "open", {"rate": 1}, warnings=(both,)),
        run(3, "sealed", {"rate": 1}, warnings=(both, one)),
    ]
    notes = compared(runs).notes
    assert "Closed loop: latency includes queueing (all columns)." in notes
    assert "Pre-settled: a letter may be lost (sealed)." in notes


def test_the_notes_name_the_method_of_the_figures() -> None:
    runs = [
        *repeats(1, "open", "rate", QUICK),
        *repeats(6, "sealed", "rate", SLOW),
        *repeats(11, "stamped", "rate", SLOW),
    ]
    [how] = [note for note in compared(runs).notes if "geometric means over runs" in note]
    assert "Welch" in how and "Holm's correction over the table's 2 comparisons" in how
