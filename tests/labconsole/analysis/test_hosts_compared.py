"""Runs of the same parameters on other hosts: a column of their own, with the hosts among the parameters."""

from __future__ import annotations

import pytest

from labconsole.analysis.change import WITHIN_CLOCKS
from labconsole.analysis.columns import group_repeats
from labconsole.analysis.comparison import compare
from labconsole.analysis.contrasts import contrasts
from labconsole.model.placement import Placement, RoleRequest
from labconsole.output.report.result_tables import comparison_tables
from tests.helpers.post_trial import PostTrial, metric, published, run

OBU = Placement(roles=(RoleRequest(role="sender-*", tag="obu"),)).stored()


def test_runs_on_other_hosts_are_not_repeats_of_each_other() -> None:
    runs = [
        run(1, "open", {}),
        run(2, "open", {}, placement=OBU),
        run(3, "open", {}),
        run(4, "open", {}, placement=OBU),
    ]
    groups = group_repeats(runs)
    assert [[one.id for one in group.runs] for group in groups] == [[1, 3], [2, 4]]
    assert [group.title for group in groups] == ["open · run 1", "open · run 2"]
    assert [group.hosts for group in groups] == ["", "sender-*: tag obu"]


def test_hosts_are_a_parameter_of_a_comparison_where_a_scenario_asks_for_some() -> None:
    runs = [run(1, "open", {"rate": 1}), run(2, "open", {"rate": 1}, placement=OBU)]
    column = published({"rate": 1}, {"sealed": True})
    [line] = [one for one in compare((*group_repeats(runs), column), PostTrial()).parameters if one.name == "hosts"]
    assert (line.title, line.texts) == ("Hosts", ("this computer", "sender-*: tag obu", "–"))
    assert line.differs and not line.foreign
    both = compare(group_repeats([run(1, "open", {}, placement=OBU), run(2, "sealed", {}, placement=OBU)]), PostTrial())
    assert [one.differs for one in both.parameters if one.name == "hosts"] == [False]
    neither = compare(group_repeats([run(1, "open", {}), run(2, "sealed", {})]), PostTrial())
    assert "hosts" not in [one.name for one in neither.parameters]


def test_a_step_of_the_trial_is_between_scenarios_on_the_same_hosts() -> None:
    runs = [run(1, "open", {}), run(2, "open", {}, placement=OBU), run(3, "sealed", {}, placement=OBU)]
    [pair] = contrasts(group_repeats(runs), 0, PostTrial())
    assert (pair.reference, pair.other, pair.title) == (1, 2, "sealed against open")
    [same] = contrasts(group_repeats(runs[:2]), 0, PostTrial())
    assert (same.reference, same.other, same.title) == (0, 1, "open · run 2 against open · run 1")


def test_a_figure_between_clocks_has_the_largest_uncertainty_of_its_runs() -> None:
    runs = [
        run(number, "open", {}, metrics={"wait_p99": metric("wait_p99", 2.0, uncertainty=uncertainty)})
        for number, uncertainty in ((1, 0.25), (2, 0.5))
    ]
    comparison = compare((*group_repeats(runs), published({"wait_p99": 3.0}, {"letters": 10})), PostTrial())
    [line] = comparison.metrics
    assert [cell.uncertainty for cell in line.cells] == [0.5, 0.0]
    assert any(note.startswith("± ") for note in comparison.notes)
    assert not any(note.startswith("± ") for note in compare(group_repeats([run(1, "open", {})]), PostTrial()).notes)
    [table] = comparison_tables(comparison)
    assert table.rows[0][2].text.startswith("2 ± 0.50") and "±" not in table.rows[0][3].text


@pytest.mark.parametrize(("uncertainty", "judgement"), [(0.0, "worse"), (0.125, "worse"), (0.3, "not judged")])
def test_a_difference_that_the_clocks_alone_may_explain_is_not_judged(uncertainty: float, judgement: str) -> None:
    runs = [
        run(place * 5 + repeat, name, {}, metrics={"wait_p99": figure})
        for place, (name, value) in enumerate((("open", 10.0), ("sealed", 10.25)))
        for repeat in range(5)
        for figure in [metric("wait_p99", value + repeat / 1000, uncertainty=uncertainty * place)]
    ]
    [line] = compare(group_repeats(runs), PostTrial()).metrics
    change = line.cells[1].change
    assert change is not None and change.judgement == judgement
    assert change.notes == ((WITHIN_CLOCKS,) if judgement == "not judged" else ())
