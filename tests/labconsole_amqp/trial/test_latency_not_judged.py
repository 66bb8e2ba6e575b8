"""A comparison judges latency only at one offered rate, and up to a quarter of full speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labconsole.analysis.comparison import Cell, Judgement, compare, group_repeats
from labconsole.model.trial import Metric
from labconsole.store.records import RunRow
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.metrics import metric
from tests.helpers.run_row import finished_run

FIVE = (1.00, 1.02, 0.98, 1.01, 0.99)


def round_of(
    test: int, repeat: int, *, speed: float, latency: float, rate: float = 250.0, speed_doubt: str = ""
) -> RunRow:
    """Run of a test in a round, with both phases; `speed_doubt` is why its full speed is not judged."""
    parameters = AmqpParameters.model_validate({"test": test, "loop": "both", "rate": rate}).model_dump(mode="json")
    figures: Sequence[Metric] = (
        metric("throughput", speed, 1000, speed_doubt),
        metric("offered_rate", rate, 250),
        metric("latency_mean", latency, 250),
        metric("latency_p99", latency * 3, 250),
        metric("queue_time_mean", 1e6 / speed, 1000),
    )
    metrics = {one.name: one for one in figures}
    number = test * 10 + repeat
    return finished_run(
        number, AmqpTrial.kind, parameters, metrics, scenario=f"Test {test}", repeat=repeat, campaign_id=1
    )


def cells(runs: Sequence[RunRow], name: str) -> tuple[Cell, ...]:
    [line] = [one for one in compare(group_repeats(runs), AmqpTrial()).metrics if one.name == name]
    return line.cells


def rounds(test: int, **settings: Any) -> list[RunRow]:
    """Five rounds of a test, each a little different."""
    scaled = dict(settings)
    latency = scaled.pop("latency")
    return [round_of(test, 1 + place, latency=latency * one, **scaled) for place, one in enumerate(FIVE)]


def test_latencies_at_one_low_rate_are_judged() -> None:
    runs = [*rounds(1, speed=40_000, latency=0.5), *rounds(4, speed=1_200, latency=2.5)]
    [one, four] = cells(runs, "latency_mean")
    assert (one.not_judged, four.not_judged) == ("", "")
    assert four.change is not None
    assert four.change.judgement is Judgement.WORSE


def test_a_rate_over_a_quarter_of_the_slowest_tests_full_speed_judges_none_of_its_round() -> None:
    runs = [*rounds(1, speed=40_000, latency=0.5), *rounds(4, speed=990, latency=2.5)]
    [one, four] = cells(runs, "latency_mean")
    reason = "250 msg/s is over a quarter of full speed (990 msg/s)"
    assert (one.not_judged, four.not_judged) == (reason, reason)
    assert four.change is not None
    assert four.change.judgement is Judgement.NOT_JUDGED
    [speed, _] = cells(runs, "throughput")
    assert speed.not_judged == "", "throughput is not offered"


def test_one_round_in_which_a_test_was_too_slow_is_left_out_for_all() -> None:
    slow = [round_of(4, 6, speed=500, latency=9.0)]
    quick = [round_of(1, 6, speed=40_000, latency=0.5)]
    runs = [*rounds(1, speed=40_000, latency=0.5), *quick, *rounds(4, speed=1_200, latency=2.5), *slow]
    assert [(cell.runs, cell.not_judged) for cell in cells(runs, "latency_mean")] == [(5, ""), (5, "")]


def test_throughput_of_an_open_loop_is_not_used_as_full_speed() -> None:
    opened = {"speed": 250, "speed_doubt": "an open loop is not full speed"}
    one, four = cells([*rounds(1, latency=0.5, **opened), *rounds(4, latency=2.5, **opened)], "latency_mean")
    assert (one.not_judged, four.not_judged) == ("", "")
    assert four.change is not None
    assert four.change.judgement is Judgement.WORSE


def test_the_full_speed_of_a_busy_computer_does_not_judge_the_rate_but_that_of_the_repeated_run_does() -> None:
    busy = round_of(4, 1, speed=300, latency=2.5, speed_doubt="other processes took 50% of the computer's CPU time")
    quick = [round_of(1, place, speed=40_000, latency=0.5) for place in (1, 2)]
    [one, _] = cells([*quick, busy, round_of(4, 6, speed=1_200, latency=2.5)], "latency_mean")
    assert (one.runs, one.not_judged) == (2, "")
    [one, _] = cells([*quick, busy, round_of(4, 6, speed=900, latency=2.5)], "latency_mean")
    assert one.not_judged == "250 msg/s is over a quarter of full speed (900 msg/s)"


def test_latencies_at_different_rates_are_not_set_against_each_other() -> None:
    runs = [*rounds(1, speed=40_000, latency=0.5), *rounds(4, speed=1_200, latency=2.5, rate=100.0)]
    change = cells(runs, "latency_mean")[1].change
    assert change is not None
    assert (change.judgement, change.notes) == (Judgement.NOT_JUDGED, ("different offered rates",))
    speed = cells(runs, "throughput")[1].change
    assert speed is not None
    assert speed.judgement is Judgement.WORSE


def test_p99_of_few_messages_and_the_time_in_queue_are_never_judged() -> None:
    runs = [*rounds(1, speed=40_000, latency=0.5), *rounds(4, speed=1_200, latency=2.5)]
    assert cells(runs, "latency_p99")[1].not_judged == "p99 needs 5,000 samples (there are 250)"
    queue_time = cells(runs, "queue_time_mean")[1].change
    assert queue_time is not None
    assert (queue_time.judgement, queue_time.notes) == (Judgement.NOT_JUDGED, ("neither way is better",))
