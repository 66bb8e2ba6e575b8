"""Answers: one sentence and one number for each question, in grey with the reason where nothing may be judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from labconsole.analysis.answers import Answer, answers
from labconsole.analysis.change import Judgement
from labconsole.analysis.columns import Column, group_repeats
from labconsole.analysis.comparison import compare
from labconsole.analysis.verdict_lines import Verdicts
from labconsole.model.metrics import Metric, Question, Ranking, ServiceLevel, Verdict
from labconsole.store.records import RunRow
from tests.helpers.post_trial import PostParameters, PostTrial, published, repeats, run

FAST = (5000.0, 5050.0, 4950.0, 5020.0, 4980.0)
SLOW = (100.0, 101.0, 99.0, 100.4, 99.6)


class AskedTrial(PostTrial):
    """The made-up trial with questions; stamped letters are not asked how long they wait."""

    service_level: ClassVar[ServiceLevel | None] = ServiceLevel("Was the service level kept?", ("in time",))

    def questions(self, reference: PostParameters, other: PostParameters) -> tuple[Question, ...]:
        added = "Sealing" if not other.stamped else "Stamping"
        rate = Question(f"What does {added.lower()} cost?", "rate", added, left_of="letters a second")
        return (rate, Question("How long is the wait?", "wait_p99", f"With {added.lower()}"))[
            : 1 if other.stamped else 2
        ]


def answered(runs: Sequence[RunRow], *more: Column, verdicts: Verdicts | None = None) -> tuple[Answer, ...]:
    trial = AskedTrial()
    return answers(compare((*group_repeats(runs), *more), trial), trial, verdicts)


def rates(*scenarios: tuple[str, Sequence[float]]) -> list[RunRow]:
    return [
        row
        for place, (scenario, values) in enumerate(scenarios)
        for row in repeats(1 + 10 * place, scenario, "rate", values)
    ]


def waits(*scenarios: tuple[str, Sequence[float]]) -> list[RunRow]:
    return [
        row
        for place, (scenario, values) in enumerate(scenarios)
        for row in repeats(1 + 10 * place, scenario, "wait_p99", values)
    ]


def test_a_small_share_is_one_of_so_many() -> None:
    [answer] = answered(rates(("open", FAST), ("sealed", SLOW)))
    assert answer.sentence == "Sealing leaves 1 of 50 letters a second"
    assert (answer.number, answer.judgement, answer.judged) == ("1 of 50", Judgement.WORSE, True)
    assert answer.small_print.startswith("95 % interval of the factor 49.") and answer.small_print.endswith(
        "5 runs each"
    )
    assert [(bar.title, bar.text) for bar in answer.bars] == [("open", "5,000 letters/s"), ("sealed", "100 letters/s")]
    assert answer.question == "What does sealing cost?"


def test_a_large_share_is_so_many_of_a_hundred() -> None:
    [answer] = answered(rates(("open", (100.0, 101.0, 99.0, 100.5, 99.5)), ("sealed", (80.0, 80.5, 79.5, 80.2, 79.8))))
    assert (answer.sentence, answer.number) == ("Sealing leaves 80 of 100 letters a second", "80 of 100")


def test_times_are_answered_in_readable_units_with_their_factor() -> None:
    slow = (40_600.0, 40_650.0, 40_560.0, 40_610.0, 40_590.0)
    [answer] = answered(waits(("open", slow), ("sealed", (7.5, 7.6, 7.4, 7.52, 7.48))))
    assert answer.sentence == "With sealing 7.5 ms, without 40.6 s: 5,400 times"
    assert (answer.number, answer.judgement) == ("5,400 ×", Judgement.BETTER)


def test_an_answer_between_clocks_has_their_uncertainty() -> None:
    runs = [
        replace(one, metrics={name: replace(figure, uncertainty=0.25) for name, figure in one.metrics.items()})
        for one in waits(("open", [10.0] * 5), ("sealed", [30.0] * 5))
    ]
    [answer] = answered(runs)
    assert answer.sentence == "With sealing 30.0 ± 0.25 ms, without 10.0 ± 0.25 ms: 3.0 times"


def test_small_changes_are_answered_in_percent_and_equal_values_as_no_difference() -> None:
    ten = (10.0, 10.1, 9.9, 10.05, 9.95)
    [more] = answered(waits(("open", ten), ("sealed", [value * 1.2 for value in ten])))
    assert (more.sentence, more.number) == ("With sealing 12.0 ms, without 10.0 ms: 20.0 % more", "+20.0 %")
    [same] = answered(waits(("open", ten), ("sealed", [value * 1.001 for value in ten])))
    assert same.sentence == "With sealing 10.0 ms, without 10.0 ms: no significant difference"
    assert (same.number, same.judgement) == ("≈ +0.1 %", Judgement.NO_CHANGE)
    [vague] = answered(waits(("open", (1.0, 9.0, 2.0, 7.0, 4.0)), ("sealed", (9.0, 2.0, 20.0, 3.0, 15.0))))
    assert (vague.number, vague.judgement) == ("unclear", Judgement.NO_CHANGE), "not about zero"
    [gain] = answered(rates(("open", SLOW), ("sealed", FAST)))
    assert gain.sentence == "Sealing gives 50 times the letters a second" and gain.number == "50 ×"


def test_fewer_than_five_runs_are_shown_and_not_judged() -> None:
    [answer] = answered(rates(("open", FAST[:2]), ("sealed", SLOW[:2])))
    assert (answer.number, answer.judged, answer.reason) == ("1 of 50", False, "fewer than 5 repeats")
    assert answer.footnote.endswith("2 runs each. Not judged: fewer than 5 repeats")
    [alone] = answered(rates(("open", FAST[:1]), ("sealed", SLOW[:1])))
    assert alone.footnote == "One run each: not judged"


def busy(figure: Metric) -> Metric:
    return replace(figure, not_judged="the computer was busy")


def test_a_figure_that_must_not_be_judged_greys_the_answer_with_its_reason() -> None:
    slow = [replace(row, metrics={"wait_p99": busy(row.metrics["wait_p99"])}) for row in waits(("open", SLOW))]
    runs = [*slow, *repeats(11, "sealed", "wait_p99", FAST)]
    [answer] = answered(runs)
    assert (answer.judged, answer.reason) == (False, "the computer was busy")


def test_each_scenario_is_answered_against_the_previous_one_metric_by_metric() -> None:
    runs = [
        run(number, scenario, {"rate": rate, "wait_p99": 10.0 * number})
        for number, (scenario, rate) in enumerate((("open", 100.0), ("sealed", 50.0), ("stamped", 25.0)), 1)
    ]
    shown = answered(runs)
    assert [answer.sentence for answer in shown] == [
        "Sealing leaves 50 of 100 letters a second",
        "Stamping leaves 50 of 100 letters a second",
        "With sealing 20.0 ms, without 10.0 ms: 2.0 times",
    ]
    assert [[bar.title for bar in answer.bars] for answer in shown][1] == ["sealed", "stamped"]


def test_published_columns_do_not_answer() -> None:
    shown = answered(rates(("open", FAST), ("sealed", SLOW)), published({"rate": 1.0}, {"sealed": True}))
    assert [answer.number for answer in shown] == ["1 of 50"]


def test_the_service_level_comes_first_with_the_requests_in_time() -> None:
    runs = rates(("open", FAST[:1]), ("sealed", SLOW[:1]))
    verdicts = {
        1: (Verdict("in time", "pass", "", {"requests": 60, "within": 60}), Verdict("other", "fail", "")),
        11: (Verdict("in time", "fail", "", {"requests": 60, "within": 3}),),
    }
    level, rate = answered(runs, verdicts=verdicts)
    assert level.sentence == "open: kept, 60 of 60 requests in time. sealed: missed, 3 of 60 requests in time"
    assert (level.number, [bar.text for bar in level.bars]) == ("1 of 2 kept", ["100 %", "5 %"])
    assert rate.question == "What does sealing cost?"
    [alone] = answered(runs[:1], verdicts=verdicts)
    assert (alone.number, alone.judgement) == ("kept", Judgement.BETTER)


def test_an_unknown_verdict_and_a_run_without_any_answer_nothing() -> None:
    runs = rates(("open", FAST[:1]))
    assert answered(runs, verdicts={1: (Verdict("in time", "unknown", "", {}),)}) == ()
    assert answered(runs) == () and answers(compare(group_repeats(runs), None), None) == ()


class RankedTrial(AskedTrial):
    """The made-up trial whose scenarios answer one question together."""

    def ranking(self, parameters: Sequence[PostParameters]) -> Ranking | None:
        return Ranking("What carries how much?", "rate", "At your load")


def test_all_columns_answer_a_ranking_in_one_chart() -> None:
    runs, trial = rates(("open", FAST), ("sealed", SLOW), ("waxed", [value / 2 for value in SLOW])), RankedTrial()
    first, *_ = answers(compare(group_repeats(runs), trial), trial)
    assert first.question == "What carries how much?"
    assert first.sentence == "At your load: from 5,000 letters/s (open) to 50.0 letters/s (waxed)"
    assert (first.number, first.judged, first.small_print) == ("100 ×", True, "15 runs")
    assert [bar.title for bar in first.bars] == ["open", "sealed", "waxed"]


def test_a_ranking_of_single_runs_is_not_judged_and_of_two_columns_not_given() -> None:
    runs, trial = rates(("open", FAST[:1]), ("sealed", SLOW[:1]), ("waxed", (50.0,))), RankedTrial()
    first, *_ = answers(compare(group_repeats(runs), trial), trial)
    assert (first.judged, first.footnote) == (False, "3 runs: not judged")
    questions = [one.question for one in answers(compare(group_repeats(runs[:2]), trial), trial)]
    assert "What carries how much?" not in questions
