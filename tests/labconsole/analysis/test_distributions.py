"""ECDF and percentile plot are exact on the samples they are cut down from; pooled runs, read from the store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from labconsole.analysis.distributions import POINTS, ecdf, load_distributions, percentile_curve
from labconsole.model.plugin import Plugins
from labconsole.processes import this_process
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario
from labconsole.store.run_store import SampleChunk, Store
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import RECEIVED, SENT
from labconsole_amqp.wire.envelope import message_number

MS = 1_000_000


@pytest.mark.parametrize("count", [1, 2, 7, POINTS, POINTS + 1, 300_000])
def test_every_point_of_an_ecdf_is_a_step_of_all_values(count: int) -> None:
    values = np.random.default_rng(count).gamma(2.0, 3.0, count).round(2)  # many equal ones
    x, share = ecdf(values)
    assert 1 <= len(x) <= POINTS
    assert (x[0], x[-1], share[-1]) == (values.min(), values.max(), 1.0)
    assert np.all(np.diff(x) > 0)
    ordered = np.sort(values)
    assert np.array_equal(share, np.searchsorted(ordered, x, side="right") / count)
    if count <= POINTS:
        assert np.array_equal(x, np.unique(values))


def test_an_ecdf_keeps_the_tails_close() -> None:
    """Of the 100 largest of a million values an even choice would keep none but the last."""
    values = np.arange(1_000_000.0)
    x, _ = ecdf(values)
    assert np.count_nonzero(x >= 999_900) > 50
    assert np.count_nonzero(x < 100) > 50


@pytest.mark.parametrize("count", [1_000, 10_000, 123_457])
def test_the_percentile_curve_has_the_percentiles_of_the_metrics(count: int) -> None:
    values = np.random.default_rng(count).gamma(2.0, 3.0, count)
    fractions, quantiles = percentile_curve(values, points=301)
    assert np.array_equal(quantiles[1:-1], np.quantile(values, fractions[1:-1], method="inverted_cdf"))
    last = min(0.999, 1 - 10 / count)
    assert fractions[-1] == pytest.approx(last)
    assert quantiles[-1] == np.quantile(values, last, method="inverted_cdf")
    assert quantiles[0] == values.min()
    steps = np.diff(np.log10(1 - fractions))
    assert steps == pytest.approx(np.full(300, steps[0]))


@pytest.mark.parametrize("count", range(11, 60))
def test_the_percentile_curve_ends_with_ten_values_beyond(count: int) -> None:
    _, quantiles = percentile_curve(np.arange(count))
    assert quantiles[-1] == count - 11


def test_too_few_values_give_no_line() -> None:
    assert all(len(part) == 0 for part in (*ecdf([]), *percentile_curve(np.arange(10))))
    with pytest.raises(ValueError, match="8 or more"):
        ecdf([1.0, 2.0], points=3)


def _stored(path: Path, latencies_ms: list[NDArray[np.int64]]) -> list[int]:
    """Runs of numbered messages, a millisecond apart, that took these times."""
    with Store.open(path) as store:
        parameters = AmqpParameters(numbered=True).model_dump(mode="json")
        scenario = NewScenario("Test 1", "amqp.messaging", parameters)
        order = tuple((0, repeat + 1) for repeat in range(len(latencies_ms)))
        run_ids = store.add_campaign(
            NewCampaign("p", "P", "", 1, (scenario,), order), this_process(), datetime.now(UTC)
        )
        for run_id, latency in zip(run_ids, latencies_ms, strict=True):
            count = len(latency)
            sent = {column.name: np.zeros(count, np.dtype(column.dtype)) for column in SENT.columns}
            sent |= {"seq": np.arange(count), "sent_ns": np.arange(count) * MS}
            received = {column.name: np.zeros(count, np.dtype(column.dtype)) for column in RECEIVED.columns}
            received |= {
                "number": message_number(0, 0) + np.arange(count),
                "received_ns": sent["sent_ns"] + latency * MS,
            }
            chunks = [
                SampleChunk("sender-0", SENT, 0, count, sent),
                SampleChunk("receiver-0", RECEIVED, 0, count, received),
            ]
            store.append(run_id, chunks if count else [], [])
    return run_ids


def test_distributions_of_runs_are_pooled_and_a_run_without_samples_adds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    run_ids = _stored(path, [np.arange(1, 5), np.arange(11, 14), np.arange(0)])
    with Reader(path) as reader:
        (pooled,) = load_distributions(reader, run_ids, Plugins.discover())
        assert load_distributions(reader, run_ids[2:], Plugins.discover()) == ()
        assert load_distributions(reader, run_ids, Plugins(())) == ()
    assert (pooled.title, pooled.unit) == ("Time in queue at full speed", "ms")
    assert sorted(pooled.values.tolist()) == [1, 2, 3, 4, 11, 12, 13]
