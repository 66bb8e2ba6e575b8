"""Verdicts of a comparison: counted over the repeats of a column, next to the published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from labconsole.analysis.columns import group_repeats
from labconsole.analysis.comparison import compare
from labconsole.analysis.published_figures import PublishedColumn, PublishedVerdict
from labconsole.analysis.verdict_lines import VerdictCell
from labconsole.model.metrics import Verdict
from labconsole.store.records import RunStatus
from tests.helpers.post_trial import SCENARIOS, PostTrial, published, run


def printed(scenario: str, **verdicts: str) -> PublishedColumn:
    """A published column of verdicts alone."""
    words = {"pass": "passed", "fail": "failed"}
    found = {name: PublishedVerdict(one, words.get(one, one), "Table 1") for name, one in verdicts.items()}
    return replace(published({}, SCENARIOS[scenario]), verdicts=found)


def cells(
    scenarios: Sequence[str], results: Mapping[int, Mapping[str, str]], *more: PublishedColumn
) -> dict[str, tuple[VerdictCell, ...]]:
    """The lines of runs of these scenarios, in which each verdict that did not pass has its run as its reason."""
    runs = [run(number, scenario, {"rate": 1.0}) for number, scenario in enumerate(scenarios, 1)]
    verdicts = {
        number: [Verdict(name, result, f"Run {number}.") for name, result in of_run.items()]
        for number, of_run in results.items()
    }
    comparison = compare((*group_repeats(runs), *more), PostTrial(), verdicts=verdicts)
    return {line.name: line.cells for line in comparison.verdicts}


def test_results_are_counted_over_the_repeats_with_the_reason_of_the_first_that_did_not_pass() -> None:
    results = {1: {"came": "pass"}, 2: {"came": "fail"}, 3: {"came": "pass"}, 4: {"came": "unknown", "dry": "pass"}}
    lines = cells(["open", "open", "open", "sealed"], results)
    assert list(lines) == ["came", "dry"]
    first, second = lines["came"]
    assert first == VerdictCell("fail", "2 of 3 pass, 1 of 3 fail", 3, "Run 2.")
    assert second == VerdictCell("unknown", "unknown", 1, "Run 4.")
    assert lines["dry"] == (VerdictCell(), VerdictCell("pass", "pass", 1, "Run 4."))
    assert VerdictCell().text == "–"


def test_one_result_that_is_unknown_is_neither_a_pass_nor_a_fail() -> None:
    [cell] = cells(["open", "open"], {1: {"came": "pass"}, 2: {"came": "unknown"}})["came"]
    assert (cell.result, cell.reason) == ("unknown", "Run 2.")


def test_a_published_verdict_is_next_to_ours_with_whether_both_agree() -> None:
    results = {1: {"came": "pass", "dry": "pass"}, 2: {"came": "pass", "dry": "fail"}}
    theirs = printed("open", came="pass", dry="pass", stamped="not tested", weighed="fail")
    lines = cells(["open", "open", "sealed"], results, theirs)
    assert list(lines) == ["came", "dry", "stamped", "weighed"]
    _, came, sealed = lines["came"]
    assert came == VerdictCell("pass", "passed", reference="Table 1", agrees=True), "right of the scenario it is of"
    assert sealed == VerdictCell()
    assert lines["dry"][1].agrees is False, "one of our runs failed"
    assert (lines["stamped"][1].result, lines["stamped"][1].agrees) == ("not tested", None)
    results = {1: {"stamped": "pass"}}
    assert cells(["open"], results, theirs)["stamped"][1].agrees is None, "not tested cannot agree with a result"
    assert (lines["weighed"][1].result, lines["weighed"][1].agrees) == ("fail", None), "our runs do not have it"


def test_a_published_verdict_without_runs_of_its_scenario_agrees_with_nothing() -> None:
    [_, theirs] = cells(["sealed"], {1: {"came": "pass"}}, printed("open", came="pass"))["came"]
    assert theirs.agrees is None


def test_only_runs_whose_figures_count_decide_a_verdict() -> None:
    runs = [run(1, "open", {"rate": 1.0}), run(2, "open", {"rate": 1.0}, status=RunStatus.FAILED)]
    verdicts = {1: [Verdict("came", "pass", "")], 2: [Verdict("came", "fail", "")]}
    [line] = compare(group_repeats(runs), PostTrial(), verdicts=verdicts).verdicts
    assert line.cells == (VerdictCell("pass", "pass", 1),) and line.passed


def test_verdict_passed_everywhere_and_unpublished_is_separated() -> None:
    runs = [run(1, "open", {"rate": 1.0})]
    verdicts = {1: [Verdict("came", "pass", ""), Verdict("dry", "pass", "")]}
    comparison = compare((*group_repeats(runs), printed("open", dry="pass")), PostTrial(), verdicts=verdicts)
    assert {line.name: line.passed for line in comparison.verdicts} == {"came": True, "dry": False}
