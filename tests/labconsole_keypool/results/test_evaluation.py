"""Figures and verdicts from stored samples alone, on samples whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from labconsole.model.trial import Evaluation, Origin
from labconsole_keypool.choices import KeyOrigin
from labconsole_keypool.results.evaluation import METRICS, distributions, evaluate
from labconsole_keypool.results.recorded_run import load_recorded_run
from labconsole_keypool.results.verdicts import LEVEL_KEPT, parts, service_level
from labconsole_keypool.series import DROPS, QUEUE, REQUESTS
from labconsole_keypool.simulation.service_model import ServiceModel
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters
from labconsole_keypool.simulation.simulator import Outcome, QueueLengths, Simulation, simulate
from tests.labconsole_keypool.results.tables import MS, Tables

SECOND = 1000 * MS


def recorded(
    requests: Sequence[tuple[int, int, int, int, int]] = (),
    drops: Sequence[tuple[int, int]] = (),
    queue: Sequence[tuple[int, int]] = (),
    source: int = KeyOrigin.TOKEN_RAM,
    unit_ns: int = MS,
) -> Tables:
    """Samples with these rows, times in `unit_ns` (ms): (request, received, started, got key, finished), (request,
    received), (time, length)."""
    tables = {}
    for series, rows in ((REQUESTS, [(*row, source) for row in requests]), (DROPS, drops), (QUEUE, queue)):
        columns = zip(series.columns, zip(*rows, strict=True), strict=True) if rows else ()
        tables[series.name] = {
            column.name: np.array(values, np.int64) * (unit_ns if column.unit == "ns" else 1)
            for column, values in columns
        }
    return Tables({name: table for name, table in tables.items() if table})


def figures(evaluation: Evaluation) -> dict[str, float]:
    return {metric.name: metric.value for metric in evaluation.metrics if not metric.labels}


def verdicts(samples: Tables, base_rate: float = 10.0) -> dict[str, tuple[str, str]]:
    found = service_level(parts(load_recorded_run(SimulationParameters(), samples, ()), base_rate), base_rate)
    return {verdict.name: (verdict.result, verdict.reason) for verdict in found}


FOUR = recorded(
    requests=[(1, 0, 0, 0, 100), (2, 10, 100, 150, 300), (4, 40, 300, 300, 3400)],
    drops=[(3, 20), (5, 50)],
    queue=[(10, 1), (40, 2), (100, 1), (300, 0)],
)


def test_every_figure_follows_its_definition() -> None:
    found = figures(evaluate(SimulationParameters(), FOUR))
    assert found == pytest.approx(
        {
            "latency_peak": 3360,
            "latency_mean": (100 + 290 + 3360) / 3,
            "latency_p50": 290,
            "latency_p95": 3360,
            "latency_p99": 3360,
            "queue_length": 2,
            "queue_length_peak": 2,
            "dropped": 2,
            "first_dropped": 3,
            "service_level": 40,
            "share_within_300": 40,
            "share_within_3000": 40,
            "throughput": 3 / 3.4,
            "wait_mean": (0 + 90 + 260) / 3,
            "wait_peak": 260,
            "key_preparation_mean": 50 / 3,
            "requests": 5,
            "processed": 3,
        }
    ), "no recovery: the queue was not empty again before the last arrival"


def test_all_figures_are_simulated_with_unit_and_order_of_their_kinds() -> None:
    metrics = evaluate(SimulationParameters(), FOUR).metrics
    names = [kind.name for kind in METRICS]
    units = {kind.name: (kind.unit, kind.direction) for kind in METRICS}
    assert {metric.origin for metric in metrics} == {Origin.SIMULATED}
    assert all((metric.unit, metric.direction) == units[metric.name] for metric in metrics)
    assert [names.index(metric.name) for metric in metrics] == sorted(names.index(metric.name) for metric in metrics)
    labelled = {metric.name for metric in metrics if metric.labels}
    assert labelled == {"got_key", "got_key_mean"}, "others are compared with published ones"


def test_without_drops_there_is_no_first_one_and_an_empty_queue_is_recovered() -> None:
    samples = recorded(
        requests=[(1, 0, 0, 0, 50), (2, 10, 50, 50, 100), (3, 900, 900, 900, 950)], queue=[(10, 1), (50, 0)]
    )
    found = figures(evaluate(SimulationParameters(), samples))
    assert "first_dropped" not in found
    assert (found["dropped"], found["queue_length"], found["queue_length_peak"]) == (0, 0, 1)
    assert found["recovery_time"] == pytest.approx(0.04)


def test_the_queue_of_a_cancelled_run_is_that_of_the_requests_it_has() -> None:
    requests = [(1, 0, 0, 0, 50), (2, 10, 50, 50, 100)]
    found = figures(evaluate(SimulationParameters(), recorded(requests, queue=[(10, 1), (20, 2), (30, 9), (99, 0)])))
    assert (found["queue_length"], found["queue_length_peak"]) == (1, 1)
    assert "recovery_time" not in found


def test_keys_are_counted_by_source() -> None:
    for source, name in ((1, "token RAM"), (2, "token store"), (3, "pool"), (4, "generated")):
        samples = recorded(requests=[(1, 0, 0, 0, 100)], source=source)
        (metric,) = (one for one in evaluate(SimulationParameters(), samples).metrics if one.name == "got_key")
        assert (metric.name, metric.value, dict(metric.labels)) == ("got_key", 1, {"source": name})


def test_a_run_of_which_nothing_was_recorded_has_no_figures_and_no_verdict() -> None:
    evaluation = evaluate(SimulationParameters(), recorded())
    assert evaluation.metrics == ()
    assert [verdict.result for verdict in evaluation.verdicts] == ["unknown"] * 3
    assert distributions(SimulationParameters(), recorded()) == ()


def test_requests_that_were_all_dropped_have_no_latency() -> None:
    found = figures(evaluate(SimulationParameters(), recorded(drops=[(1, 0), (2, 5)])))
    assert found.keys() & {"latency_mean", "throughput", "wait_mean"} == set()
    assert (found["dropped"], found["processed"], found["share_within_3000"]) == (2, 0, 0)


def test_normal_hours_and_peak_are_separated_by_the_arrivals_of_the_last_second() -> None:
    """Ten distances at the base rate take a second: ten in 950 ms are faster; two seconds later it is normal again."""
    rows = [(n, n * 100, n * 100, n * 100, n * 100 + 301) for n in range(10)]
    burst = [(10, 950, 950, 950, 3950), (11, 3000, 3000, 3000, 3300)]
    found = verdicts(recorded(requests=rows + burst))
    assert found["300 ms in normal hours"] == (
        "fail",
        "1 of 11 requests that arrived at up to 10 per second were signed within 300 ms (9.0 %).",
    )
    assert found["3000 ms at peak"] == (
        "pass",
        "1 of 1 requests that arrived at more than 10 per second were signed within 3,000 ms (100.0 %).",
    )


@pytest.mark.parametrize(("rate", "at_peak"), [(26.3, False), (25.0, False), (27.0, True), (26.0, False), (50.0, True)])
@pytest.mark.parametrize("jitter_ms", [0, 2])
def test_a_constant_rate_is_at_peak_only_above_the_base_rate(rate: float, at_peak: bool, jitter_ms: int) -> None:
    """Every second at 26.3/s 26 or 27 whole requests arrive, and none of them is more than the base rate."""
    random = np.random.default_rng(1)
    received = np.arange(300) * 1000 / rate + random.uniform(0, jitter_ms, 300)
    rows = [(n, *(int(t * 1000) for t in (at, at, at, at + 20))) for n, at in enumerate(received.tolist())]
    _, peak = parts(load_recorded_run(SimulationParameters(), recorded(requests=rows, unit_ns=MS // 1000), ()), 26.3)
    assert peak.requests == (300 - 27 if at_peak else 0), "the first ones have too few before them"


def test_a_base_rate_below_one_a_second_has_normal_hours_too() -> None:
    rows = [(n, n * 4000, n * 4000, n * 4000, n * 4000 + 20) for n in range(5)]
    assert verdicts(recorded(requests=rows), base_rate=0.3)["3000 ms at peak"][0] == "unknown"
    assert verdicts(recorded(requests=rows), base_rate=0.2)["3000 ms at peak"][0] == "pass"


def test_first_verdict_states_in_one_sentence_whether_the_service_level_was_kept() -> None:
    in_time = [(n, n * 500, n * 500, n * 500, n * 500 + 20) for n in range(3)]
    limits = "(300 ms in normal hours, 3,000 ms at peak)"
    kept = verdicts(recorded(requests=in_time))
    assert next(iter(kept)) == LEVEL_KEPT
    assert kept[LEVEL_KEPT] == ("pass", f"Service level kept: all 3 requests were signed in time {limits}.")
    samples = recorded(requests=in_time, drops=[(4, 1600)])
    assert verdicts(samples)[LEVEL_KEPT] == (
        "fail",
        f"Service level missed: 1 of 4 requests were not signed in time {limits}.",
    )
    assert figures(evaluate(SimulationParameters(), samples))["service_level"] == 75
    assert verdicts(recorded())[LEVEL_KEPT] == ("unknown", "No request arrived.")


def test_a_dropped_request_is_never_within_its_time() -> None:
    found = verdicts(recorded(requests=[(1, 0, 0, 0, 20)], drops=[(2, 2000)]))
    assert found["300 ms in normal hours"][0] == "fail"
    assert found["3000 ms at peak"] == ("unknown", "No request arrived at more than 10 per second.")


def test_a_share_that_is_not_all_is_not_called_all() -> None:
    late = (2000, 1_999_000, 1_999_000, 1_999_000, 1_999_301)
    rows = [(n, (n - 1) * 1000, (n - 1) * 1000, (n - 1) * 1000, n * 1000 - 980) for n in range(1, 2000)]
    assert verdicts(recorded(requests=[*rows, late]))["300 ms in normal hours"] == (
        "fail",
        "1,999 of 2,000 requests that arrived at up to 10 per second were signed within 300 ms (99.9 %).",
    )


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("queue_limit", [0, 5])
@pytest.mark.parametrize("part", [1, 7, 400])
def test_queue_lengths_are_those_of_a_recount(threads: int, queue_limit: int, part: int) -> None:
    random = np.random.default_rng(threads + queue_limit)
    arrivals = np.cumsum(random.integers(0, 30, 400)).astype(np.int64) * MS
    model = ServiceModel(14.0 * threads, 0.0, 0.0, SimulationParameters().keys, keys_at_start=1000, threads=threads)
    outcome = simulate(arrivals, model, queue_limit=queue_limit)
    simulation, queue = Simulation(model, queue_limit=queue_limit), QueueLengths()
    parts = [simulation.follow(arrivals[begin : begin + part]) for begin in range(0, 400, part)]
    t, lengths = map(np.concatenate, zip(*(queue.after(one) for one in parts), queue.rest(), strict=True))
    assert (np.diff(t) > 0).all()
    assert lengths.tolist() == [_waiting(outcome, at) for at in t.tolist()]
    assert not queue_limit or lengths.max() <= queue_limit
    assert lengths[-1] == 0


def _waiting(outcome: Outcome, at_ns: int) -> int:
    """Requests that have arrived at a moment, or before, and that no thread has taken yet."""
    there = ~outcome.dropped & (outcome.received <= at_ns)
    return int(np.count_nonzero(there & (outcome.started > at_ns)))
