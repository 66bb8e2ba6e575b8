"""Rate sweeps: steps of rates, the highest that keeps the limit of p99, and the answer of a comparison."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from labconsole.clock_comparison import HOST_COMPARED, Offset
from labconsole.model.trial import Event, Level, Metric, Verdict
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import RECEIVED, SENT, Phase
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.joining import join_samples, load_joined, merged_by_time
from labconsole_amqp.trial.rate_search import RateSearch
from labconsole_amqp.trial.sweep_evaluation import Step, highest, sweep_figures, sweep_steps
from tests.helpers.repeated_runs import repeated
from tests.labconsole_amqp.lab import SHAPED, Lab, Outcome, left_within, run

pytestmark = pytest.mark.usefixtures("lab_home")

MS = 1_000_000


def test_a_sweep_finds_a_rate_and_every_step_is_stored(tmp_path: Path) -> None:
    """Over a link of 20 messages a second: where the CPU bounds the rate, each step uses all of it."""
    settings = {"test": 4, "loop": "sweep", "rate": 5.0, "step": 0.5, "p99_limit": 500.0, **SHAPED, "link_rate": 0.15}
    settings |= {"payload": "small", "senders": 2, "numbered": True}
    # The first step has four messages of each sender; later ones are late where the link is full.
    outcome = repeated(lambda number: run(tmp_path / str(number), **settings), left_within(100, first=4))
    assert outcome.failure is None, outcome.failure
    figures = outcome.figures
    begun = outcome.events_named("sweep step")
    assert figures["sweep_steps"] == len(begun) >= 3
    rates = [event.data["rate"] for event in begun]
    assert rates == searched_rates(outcome)
    assert figures["highest_rate"] in {2 * rate for rate in rates}
    assert figures["p99_at_highest_rate"] <= 500.0
    assert outcome.verdicts["a rate keeps the limit"] == "pass"
    assert (figures["lost"], figures["unknown"], figures["failed_verifications"]) == (0, 0, 0)
    assert {"throughput", "latency_p99", "send_duration", "receive_duration"}.isdisjoint(figures)
    curves = {
        curve.title: curve for curve in AmqpTrial().curves(outcome.parameters, outcome.samples, outcome.samples.events)
    }
    assert curves["Offered"].values.tolist() == [2 * rate for rate in rates]


def searched_rates(outcome: Outcome) -> list[float]:
    """The rates that a search tries whose steps are judged by the samples: on a slow computer, one of them twice."""
    parameters, samples = outcome.parameters, outcome.samples
    search, rates = RateSearch(parameters.rate), []
    for step in sweep_steps(load_joined(parameters, samples), samples.events):
        assert search.next is not None
        rates.append(search.next)
        search.record(step.kept(parameters.p99_limit))
    assert search.over
    return rates


def test_steps_are_judged_by_what_was_due_in_them_and_all_must_come() -> None:
    """Three steps of 10 messages at 100/s after 0.2 s of warm-up: 5 ms late, 50 ms late, and one message missing."""
    sent, received, events = [], [], []
    for step, late_ms in enumerate((5, 50, 5)):
        begin = step * 10**9
        data = {"begin_ns": begin, "rate": 100.0 * (step + 1), "seconds": 0.1}
        events.append(Event(begin, "worker", Level.INFO, "sweep step", "", data))
        for index in range(30):
            due, seq = begin + index * 10 * MS, step * 30 + index
            phase = Phase.OPEN_LOOP_WARM_UP if index < 20 else Phase.OPEN_LOOP
            sent.append((seq, due, due, seq, phase))
            if (step, index) != (2, 25):
                # Messages of the warm-up are very late, and do not count.
                received.append((seq, due + (late_ms if index >= 20 else 900) * MS))
    columns = np.array(sent, np.int64).T
    sent_table = dict(zip(("seq", "intended_ns", "sent_ns", "stamp_ms", "phase"), columns, strict=True))
    numbers, times = np.array(received, np.int64).T
    received_table = {
        "number": (1 << 40) + numbers,
        "received_ns": times,
        "stamp_ms": numbers,
        "outcome": np.zeros(len(numbers), np.uint8),
    }
    parameters = AmqpParameters(loop="sweep", numbered=True, p99_limit=20.0)
    tables = (
        merged_by_time(SENT, [("sender-0", sent_table)]),
        merged_by_time(RECEIVED, [("receiver-0", received_table)]),
    )
    steps = sweep_steps(join_samples(parameters, *tables), events)
    assert [(step.due, step.good, step.p99_ms) for step in steps] == [(10, 10, 5.0), (10, 10, 50.0), (10, 9, None)]
    found = highest(steps, 20.0)
    assert found is not None and found.rate == 100.0
    assert highest(steps, 100.0) == steps[1] and highest(steps, 1.0) is None


def test_a_rate_that_kept_the_limit_in_half_of_its_steps_is_not_the_highest() -> None:
    steps = [Step(0, 100.0, 5, 5, 1.0), Step(1, 200.0, 5, 5, 30.0), Step(2, 200.0, 5, 5, 2.0)]
    assert highest(steps, 20.0) == steps[0]
    assert highest([*steps, Step(3, 200.0, 5, 5, 3.0)], 20.0) == Step(3, 200.0, 5, 5, 3.0)


def swept(p99s_ms: dict[float, float], uncertain_ns: int) -> tuple[dict[str, Metric], Verdict]:
    """Figures and verdict of a sweep over a host with such a clock, whose steps had these p99 by rate; limit 20 ms."""
    sent, received, offset = [], [], Offset(0, uncertain_ns, 0, 0, 0, 0, 1)
    data = {**offset.to_json(), "host": "obu-1", "phase": "before"}
    events = [Event(0, "worker", Level.INFO, HOST_COMPARED, "", data)]
    for step, (rate, p99_ms) in enumerate(p99s_ms.items()):
        begin = (step + 1) * 10**9
        events.append(
            Event(begin, "worker", Level.INFO, "sweep step", "", {"begin_ns": begin, "rate": rate, "seconds": 0.1})
        )
        for index in range(10):
            due, seq = begin + (20 + index) * 10 * MS, step * 10 + index
            sent.append((seq, due, due, seq, Phase.OPEN_LOOP))
            received.append((seq, due + int(p99_ms * MS)))
    events.append(Event(0, "worker", Level.INFO, "sweep done", "", {}))
    names = ("seq", "intended_ns", "sent_ns", "stamp_ms", "phase")
    numbers, times = np.array(received, np.int64).T
    received_table = {"number": (1 << 40) + numbers, "received_ns": times, "stamp_ms": numbers}
    tables = (
        merged_by_time(SENT, [("sender-0", dict(zip(names, np.array(sent, np.int64).T, strict=True)))]),
        merged_by_time(RECEIVED, [("receiver-0", received_table | {"outcome": np.zeros(len(numbers), np.uint8)})]),
    )
    parameters = AmqpParameters(loop="sweep", numbered=True, p99_limit=20.0)
    metrics, (verdict,) = sweep_figures(parameters, join_samples(parameters, *tables), events, "")
    return {one.name: one for one in metrics}, verdict


def test_a_step_that_is_nearer_to_the_limit_than_clocks_are_certain_does_not_count_as_kept() -> None:
    steps = {100.0: 5.0, 200.0: 19.5, 400.0: 30.0}
    exact, verdict = swept(steps, 100_000)
    assert exact["highest_rate"].value == 200 and "leave open" not in verdict.reason
    figures, verdict = swept(steps, 1_000_000)
    assert (figures["highest_rate"].value, verdict.result) == (100, "pass")
    assert (figures["p99_at_highest_rate"].uncertainty, figures["highest_rate"].uncertainty) == (1.0, 0.0)
    assert "At 200 messages a second, the clocks of the hosts (± 1 ms) leave open whether" in verdict.reason


def test_a_sweep_whose_every_step_the_clocks_leave_open_has_no_answer() -> None:
    figures, verdict = swept({100.0: 19.5, 200.0: 20.5}, 1_000_000)
    assert "highest_rate" not in figures and verdict.result == "unknown"
    _, verdict = swept({100.0: 19.5 + 3, 200.0: 40}, 1_000_000)
    assert verdict.result == "fail"


def test_a_comparison_answers_what_protection_costs_at_the_limit() -> None:
    plain, signed = (AmqpParameters(test=test, loop="sweep", p99_limit=50.0) for test in (1, 3))
    (question,) = AmqpTrial().questions(plain, signed)
    assert question.title == "What does TLS and signing cost at your load?"
    assert (question.metric, question.left_of) == ("highest_rate", "messages a second with p99 under 50 ms")
    assert AmqpTrial().questions(plain, AmqpParameters(test=3, loop="sweep", p99_limit=20.0)) == ()


def test_a_comparison_answers_what_an_envelope_costs() -> None:
    trial, envelopes = AmqpTrial(), ("compact", "cose")
    first, second = (AmqpParameters(test=3, envelope=envelope) for envelope in envelopes)
    assert trial.contrast(first, second) == "Envelope cose against compact"
    (question,) = trial.questions(first, second)
    assert question.title == "What does the envelope cose cost in throughput?"
    assert trial.contrast(first, AmqpParameters(test=4, envelope="cose")) == ""
    assert trial.contrast(first, AmqpParameters(test=3, envelope="cose", payload="small")) == ""


def test_sweeps_with_one_limit_are_ranked_and_their_envelopes_not_asked_one_by_one() -> None:
    trial = AmqpTrial()
    sweeps = [
        AmqpParameters(test=3, loop="sweep", p99_limit=50.0, envelope=name) for name in ("compact", "cose", "jose")
    ]
    ranking = trial.ranking(sweeps)
    assert ranking is not None and (ranking.metric, ranking.subject) == ("highest_rate", "With p99 under 50 ms")
    assert trial.questions(sweeps[0], sweeps[1]) == ()
    assert trial.ranking([*sweeps, AmqpParameters(test=3, loop="sweep", p99_limit=20.0)]) is None
    assert trial.ranking([*sweeps, AmqpParameters(test=3)]) is None


def test_a_sweep_needs_both_ends_here() -> None:
    with pytest.raises(ValidationError, match="a rate sweep needs both ends in this console"):
        AmqpParameters(loop="sweep", mode="sender", broker="external")


def test_a_sweep_that_was_cancelled_has_no_answer(tmp_path: Path) -> None:
    settings = {"test": 1, "loop": "sweep", "rate": 50.0, "step": 0.5, "payload": "small"}
    outcome = Lab(tmp_path / "run", during=lambda lab: (lab.until("received", 60), lab.cancel())).run(**settings)
    assert outcome.verdicts["a rate keeps the limit"] == "unknown"
    rates = [metric for metric in outcome.evaluation.metrics if metric.name == "highest_rate"]
    assert all("did not come to its end" in metric.not_judged for metric in rates)


def test_sweeps_of_other_payloads_are_not_ranked() -> None:
    sweeps = [AmqpParameters(loop="sweep", test=test) for test in (1, 2)]
    assert AmqpTrial().ranking(sweeps) is not None
    assert AmqpTrial().ranking([*sweeps, AmqpParameters(loop="sweep", test=3, payload="small")]) is None
