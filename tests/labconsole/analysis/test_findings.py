"""Findings: which pairs they are on, what they say, and the figures that they rest on."""

from __future__ import annotations

from collections.abc import Sequence

from labconsole.analysis.comparison import Column, compare, group_repeats
from labconsole.analysis.findings import findings
from labconsole.model.metrics import LINK_RATE, LINK_USE
from labconsole.model.parameters import Parameters
from labconsole.model.series import Origin
from labconsole.model.trial import Trial
from labconsole.store.records import RunRow
from tests.helpers.post_trial import SCENARIOS, PostTrial, published, repeats, run

QUICK = (100.0, 104.0, 96.0, 102.0, 98.0)
FOURTH = tuple(value / 4 for value in (101.0, 103.0, 97.0, 99.0, 100.0))
ALMOST = (98.0, 101.0, 94.0, 103.0, 95.0)
A_TENTH_LESS = tuple(value * 0.9 for value in (100.5, 99.5, 100.0, 100.2, 99.8))


def sentences_of(
    runs: Sequence[RunRow], *more: Column, baseline: int = 0, trial: Trial[Parameters] | None = None
) -> list[str]:
    trial = trial or PostTrial()
    comparison = compare((*group_repeats(runs), *more), trial, baseline=baseline)
    return [finding.sentence for finding in findings(comparison, trial)]


def test_no_significant_difference_has_ratio_and_interval() -> None:
    [sentence] = sentences_of([*repeats(1, "open", "rate", QUICK), *repeats(6, "sealed", "rate", ALMOST)])
    assert sentence == (
        "sealed against open: no significant difference in rate (ratio 0.98, 95 % interval 0.93–1.03, 5 runs each)"
    )


def test_a_large_change_is_a_factor_and_a_small_one_a_percentage() -> None:
    [factor] = sentences_of([*repeats(1, "open", "rate", QUICK), *repeats(6, "sealed", "rate", FOURTH)])
    assert factor == "sealed against open: rate is lower by a factor 4.0 (95 % interval 3.8–4.2, 5 runs each)"
    [back] = sentences_of([*repeats(1, "open", "rate", FOURTH), *repeats(6, "sealed", "rate", QUICK)])
    assert back == "sealed against open: rate is higher by a factor 4.0 (95 % interval 3.8–4.2, 5 runs each)"
    steady = repeats(1, "open", "rate", (100.5, 99.5, 100.0, 100.2, 99.8))
    [percent] = sentences_of([*steady, *repeats(6, "sealed", "rate", A_TENTH_LESS)])
    assert percent == "sealed against open: rate is lower by 10.0 % (95 % interval 9.5–10.5 %, 5 runs each)"


def test_single_run_is_a_finding_without_interval_or_judgement() -> None:
    runs = [run(1, "open", {"rate": 100}), run(2, "sealed", {"rate": 25})]
    [finding] = findings(compare(group_repeats(runs), PostTrial()), PostTrial())
    assert finding.sentence == "sealed against open: rate is lower by a factor 4.0 (one run each: no interval)"
    assert not finding.judged


def test_few_runs_have_an_interval_but_are_not_judged() -> None:
    runs = [*repeats(1, "open", "rate", QUICK), *repeats(6, "sealed", "rate", FOURTH[:3])]
    [finding] = findings(compare(group_repeats(runs), PostTrial()), PostTrial())
    assert finding.sentence.endswith("5 and 3 runs, not judged: fewer than 5 repeats)") and not finding.judged


def test_each_scenario_is_compared_with_the_first_and_the_previous_one() -> None:
    runs = [
        *repeats(1, "open", "rate", QUICK),
        *repeats(6, "sealed", "rate", FOURTH),
        *repeats(11, "stamped", "rate", FOURTH),
    ]
    pairs = [sentence.partition(":")[0] for sentence in sentences_of(runs)]
    assert pairs == ["sealed against open", "stamped against open", "stamped against sealed"]
    assert [sentence.partition(":")[0] for sentence in sentences_of(runs, baseline=2)] == pairs
    from_the_second = [sentence.partition(":")[0] for sentence in sentences_of(runs, baseline=1)]
    assert from_the_second == ["sealed against open", "stamped against sealed"]


def test_columns_without_an_order_are_compared_once_with_the_baseline() -> None:
    class Unordered(PostTrial):
        def contrast(self, reference: Parameters, other: Parameters) -> str:
            return "unlike letters" if reference != other else ""

    runs = [run(1, "open", {"rate": 100}), run(2, "sealed", {"rate": 50})]
    for baseline, way in ((0, "lower"), (1, "higher")):
        [sentence] = sentences_of(runs, baseline=baseline, trial=Unordered())
        assert sentence.startswith(f"unlike letters: rate is {way} by a factor 2.0")


def test_a_finding_has_the_figures_of_the_table_with_that_baseline() -> None:
    runs = [
        *repeats(1, "open", "rate", QUICK),
        *repeats(6, "sealed", "rate", FOURTH),
        *repeats(11, "stamped", "rate", ALMOST),
    ]
    [sentence] = [sentence for sentence in sentences_of(runs) if sentence.startswith("stamped against sealed")]
    cell = compare(group_repeats(runs), PostTrial(), baseline=1).metrics[0].cells[2]
    assert cell.change is not None and f"higher by a factor {cell.change.ratio:.1f}" in sentence


def test_column_without_a_contrast_is_compared_with_the_baseline_by_title() -> None:
    class Silent(PostTrial):
        def contrast(self, reference: Parameters, other: Parameters) -> str:
            return ""

    runs = [*repeats(1, "open", "rate", QUICK), *repeats(6, "more", "rate", FOURTH)]
    [sentence] = sentences_of(runs, trial=Silent())
    assert sentence.startswith("more against open: rate is lower by a factor 4.0")


def test_incomparable_columns_have_no_finding() -> None:
    class Particular(PostTrial):
        def contrast(self, reference: Parameters, other: Parameters) -> str:
            return ""

        def comparable(self, reference: Parameters, other: Parameters) -> bool:
            return False

    runs = [*repeats(1, "open", "rate", QUICK), *repeats(6, "more", "rate", FOURTH)]
    assert sentences_of(runs, trial=Particular()) == []


def test_repeated_contrast_names_its_columns() -> None:
    runs = [
        run(10 * campaign + index, name, {"rate": 100 - 40 * index}, campaign_id=campaign, campaign=season)
        for campaign, season in ((1, "Spring"), (2, "Autumn"))
        for index, name in enumerate(("open", "sealed"))
    ]
    pairs = [sentence.rpartition(": rate")[0] for sentence in sentences_of(runs)]
    assert pairs[0] == "sealed · Spring: sealed against open"
    assert "sealed · Autumn: sealed against open" in pairs


def test_column_of_an_older_trial_version_is_compared_with_the_baseline() -> None:
    older = [run(2, "old", {"rate": 50}, parameters={"envelopes": 3})]
    [sentence] = sentences_of([run(1, "open", {"rate": 100}), *older])
    assert sentence.startswith("old against open: rate is lower by a factor 2.0")


def test_link_bound_column_names_its_link() -> None:
    parameters = {**SCENARIOS["sealed"], LINK_RATE: 2.0}
    runs = [run(1, "open", {"rate": 100}), run(2, "sealed", {"rate": 50, LINK_USE: 92.0}, parameters=parameters)]
    assert "sealed is link-bound: 92 % of 2 Mbit/s" in sentences_of(runs)


def test_finding_lists_every_reason_against_a_judgement() -> None:
    bound = [run(2, "sealed", {"rate": 25, LINK_USE: 92.0}, parameters={**SCENARIOS["sealed"], LINK_RATE: 2.0})]
    [alone, _] = sentences_of([run(1, "open", {"rate": 100}), *bound])
    assert alone.endswith("lower by a factor 4.0 (one run each: no interval; link-bound)")
    rare = run(3, "sealed", {"rate": 26, LINK_USE: 30.0}, parameters=bound[0].parameters)
    [few, link] = sentences_of([*repeats(11, "open", "rate", QUICK), *bound, rare])
    assert few.endswith("5 and 2 runs, not judged: link-bound; fewer than 5 repeats)")
    assert link == "sealed is link-bound: 92 % of 2 Mbit/s", "the share of the run that is, not of all"


def test_published_figures_are_counted_and_those_outside_are_named() -> None:
    cpu = "cpu{role=sender}"
    runs = [
        run(number, name, {"rate": value, cpu: value})
        for first, name, values in ((1, "open", QUICK), (6, "sealed", FOURTH))
        for number, value in enumerate(values, first)
    ]
    inside = published({"rate": 25.0, cpu: 1.0}, {"sealed": True}, title="Gazette, sealed")
    outside = published({"rate": 120.0, "lost": 3}, {"sealed": False}, title="Gazette, open")
    sentences = sentences_of(runs, inside, outside)
    assert "The intervals measured for the same scenarios hold 1 of 3 published figures" in sentences
    [named] = [sentence for sentence in sentences if "is outside" in sentence]  # of the key figures
    assert named == (
        "open: the published rate of 120 letters/s is outside the measured interval 96–104 letters/s "
        "(5 runs; Gazette, open)"
    )


def test_interval_without_width_is_called_a_value() -> None:
    outside = published({"rate": 85.5}, {"sealed": False}, title="Gazette, open")
    (named, _count) = sentences_of(repeats(1, "open", "rate", [85.0] * 5), outside)
    said = "open: the published rate of 85.5 letters/s is not the measured value 85 letters/s"
    assert named == f"{said} (5 runs; Gazette, open)"


def test_findings_on_figures_that_were_not_measured_name_their_origin() -> None:
    runs = [
        *repeats(1, "open", "rate", QUICK, origin=Origin.SIMULATED),
        *repeats(6, "sealed", "rate", FOURTH, origin=Origin.SIMULATED),
    ]
    outside = published({"rate": 120.0}, {"sealed": False}, title="Gazette, open")
    sentences = sentences_of(runs, outside)
    assert "The intervals simulated for the same scenarios hold 0 of 1 published figures" in sentences
    assert any(" is outside the simulated interval 96–104 letters/s (5 runs;" in sentence for sentence in sentences)
    assert any(sentence.endswith(", 5 simulated runs each)") for sentence in sentences)
    mixed = sentences_of([*runs[:5], *repeats(6, "sealed", "rate", FOURTH)])
    assert any("5 simulated runs and 5 runs, not judged: different origins" in sentence for sentence in mixed)


def test_comparison_without_figures_has_no_findings() -> None:
    assert sentences_of([run(1, "open", {"rate": 100})]) == []
    assert sentences_of([run(1, "open", {"lost": 0}), run(2, "sealed", {"lost": 0})]) == []
