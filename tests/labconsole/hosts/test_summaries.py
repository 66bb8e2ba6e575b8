"""Samples that stay on hosts are summarised there, and the figures are those of the samples themselves."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labconsole.engine.recorder import Recorder
from labconsole.engine.spool import Block, SpoolSeriesWriter, SpoolWriter
from labconsole.errors import UserError
from labconsole.hosts.cluster import Cluster
from labconsole.hosts.samples.campaign_summary import CampaignSummary, campaign_summary
from labconsole.hosts.samples.left_samples import LeftSamples, collect_left
from labconsole.hosts.samples.sample_summaries import LARGEST_ERROR, Summaries, Summary, measures, summaries_of_spools
from labconsole.hosts.samples.summary_result import summary_result
from labconsole.model.placement import Placement
from labconsole.model.series import Column, Series
from labconsole.store.records import RunDetail, RunStatus
from tests.helpers.practice import Bench
from tests.labconsole.hosts.cluster_processes import ClusterProcesses
from tests.labconsole.hosts.host_runs import held, run

SERIES = Series(
    "handled",
    "Requests",
    (
        Column("number", "i8", "", "Number"),
        Column("come_ns", "i8", "ns", "Arrival", by_clock=True),
        Column("done_ns", "i8", "ns", "Answer", by_clock=True),
        Column("size", "u2", "B", "Size"),
        Column("stamp_ms", "i8", "ms", "Stamp", since_epoch=True),
        Column("load", "f4", "%", "Load"),
    ),
)


def rows(count: int, seed: int) -> dict[str, Any]:
    """Rows of which each tenth has no answer."""
    drawn = np.random.default_rng(seed)
    come_ns = np.arange(count, dtype=np.int64) * 1000 + 10**15
    done_ns = come_ns + drawn.lognormal(12, 2, count).astype(np.int64)
    done_ns[::10] = 0
    return {
        "number": np.arange(count),
        "come_ns": come_ns,
        "done_ns": done_ns,
        "size": drawn.integers(0, 65_536, count),
        "stamp_ms": come_ns // 1_000_000,
        "load": np.zeros(count),
    }


def spool(path: Path, columns: dict[str, Any]) -> None:
    """A spool file with these rows."""
    writer = SpoolWriter(path)
    series = SpoolSeriesWriter(writer, path.stem, SERIES)
    series.extend(**columns)
    series.flush()
    writer.close()


def test_summaries_of_several_files_have_the_figures_of_all_their_samples(tmp_path: Path) -> None:
    parts = [rows(30_000, 1), rows(70_001, 2)]
    total = Summaries()
    for number, part in enumerate(parts):
        (folder := tmp_path / str(number)).mkdir()
        spool(folder / "server.spool", part)
        total.merge(summaries_of_spools(folder))
    size, took = (np.concatenate([part[name] for part in parts]) for name in ("size", "done_ns"))
    came = np.concatenate([part["come_ns"] for part in parts])
    took = (took - came)[took > 0]
    found = {str(measure): summary for measure, summary in total.items()}
    assert found.keys() == {"handled.size", "handled.done_ns - come_ns"}
    for summary, values in ((found["handled.size"], size), (found["handled.done_ns - come_ns"], took)):
        assert (summary.count, summary.total) == (len(values), values.sum())
        assert (summary.smallest, summary.largest) == (values.min(), values.max())
        for fraction in (0.001, 0.5, 0.95, 0.99, 0.999, 1.0):
            exact = float(np.quantile(values, fraction, method="inverted_cdf"))
            assert summary.percentile(fraction) == pytest.approx(exact, rel=LARGEST_ERROR * 1.001)


DRAWN = np.random.default_rng(4)


@pytest.mark.parametrize(
    "values",
    [
        np.full(1000, 123_456_789),
        np.array([7]),
        np.zeros(10, np.int64),
        np.array([-5, 0, 0, 4, 400]),
        np.array([-9_000_000, -8_000_000, -8_000_000]),
        (DRAWN.normal(0, 1e6, 10_000)).astype(np.int64),
        np.array([1] * 15 + [10**9] * 14),
        np.full(1000, 2**60),
        np.array([-(2**63), -1, 0, 1, 2**63 - 1]),
        np.array([1, 2**63, 2**64 - 1], np.uint64),
        np.array([-128, 127], np.int8),
    ],
    ids=["equal", "one", "0", "both signs", "negative", "around 0", "median", "sum", "huge", "u8", "i1"],
)
def test_summaries_of_unusual_values_have_their_figures(values: NDArray[Any]) -> None:
    summary, other = Summary(), Summary()
    summary.add(values[: len(values) // 3])
    other.add(values[len(values) // 3 :])
    summary.merge(other)
    every = sorted(values.tolist())
    assert (summary.count, summary.total) == (len(every), sum(every))
    assert (summary.smallest, summary.largest) == (every[0], every[-1])
    for fraction in (0.0, 0.05, 0.5, 0.95, 0.999, 1.0):
        exact = every[max(1, math.ceil(fraction * len(every))) - 1]
        assert summary.percentile(fraction) == pytest.approx(exact, rel=LARGEST_ERROR * 1.001)


def test_durations_need_both_times() -> None:
    assert sorted(map(str, measures(SERIES))) == ["handled.done_ns - come_ns", "handled.size"]
    summaries = Summaries()
    summaries.add_rows(SERIES, [{"done_ns": np.array([1, 2])}])  # rows of an earlier version of the series
    assert not summaries


def test_a_damaged_file_is_not_summarised(tmp_path: Path) -> None:
    spool(tmp_path / "server.spool", rows(10_000, 3))
    content = bytearray((tmp_path / "server.spool").read_bytes())
    content[-500] ^= 1
    (tmp_path / "server.spool").write_bytes(content)
    with pytest.raises(UserError, match="is damaged after byte"):
        summaries_of_spools(tmp_path)


def test_samples_cannot_stay_on_hosts_that_end_with_the_run() -> None:
    with pytest.raises(ValueError, match="samples cannot stay on local hosts"):
        Placement.model_validate({"local": 2, "samples": "stay", "roles": [{"role": "*"}]})


class Quiet:
    """A context of an operation that is not cancelled."""

    stop_requested = False
    typed = ""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int]] = []

    def progress(self, done: int, total: int) -> None:
        self.steps.append((done, total))

    def say(self, sentence: str) -> None: ...

    def secret(self, key: str) -> None: ...

    def hand_over(self, title: str, secret: object) -> None: ...


def staying(bench: Bench, running: ClusterProcesses, count: int) -> RunDetail:
    """A run on both hosts, and on this computer, whose samples stay."""
    placed = [{"role": "counter-0", "host": "alpha"}, {"role": "counter-1", "host": "beta"}]
    return run(bench, running, placed, samples="stay", roles=3, count=count)


def collect(bench: Bench, running: ClusterProcesses) -> LeftSamples:
    """Collect what is left on the hosts for a database, so that the cluster is as it was."""
    with Cluster(running.address, running.member()) as console:
        return collect_left(console, bench.database, lambda sentence: None)


def summarised(bench: Bench, running: ClusterProcesses, run_id: int) -> CampaignSummary:
    """The summary of the campaign of a run."""
    context = Quiet()
    found = campaign_summary(bench.database, run_id, running.address, context)
    assert found is not None and context.steps[-1][0] == context.steps[-1][1]
    return found


def counted(found: CampaignSummary) -> dict[str, int]:
    """The samples of each host."""
    return {
        host: sum(summary.count for measure, summary in summaries.items() if measure.series == "counted")
        for hosts in found.scenarios.values()
        for host, summaries in hosts.items()
    }


def test_samples_stay_on_hosts_until_they_are_collected_and_the_summary_is_the_same(
    bench: Bench, running: ClusterProcesses
) -> None:
    detail = staying(bench, running, 5000)
    assert detail.row.status is RunStatus.FINISHED, detail.row.reason
    assert not detail.row.metrics
    assert sorted(event.data["host"] for event in detail.events if event.name == "samples stay") == ["alpha", "beta"]
    assert list(held(running, "alpha")) == [detail.row.uuid]
    here = next(role.host for role in detail.roles if role.name == "counter-2")
    on_hosts = summarised(bench, running, detail.row.id)
    assert counted(on_hosts) == {"alpha": 5000, "beta": 5000, here: 5000} and not on_hosts.missing
    collect(bench, running)
    assert held(running, "alpha") == held(running, "beta") == {}
    assert bench.detail(detail.row.id).row.metrics
    stored = summarised(bench, running, detail.row.id)
    assert summary_result(stored).data == summary_result(on_hosts).data


def test_a_host_that_is_gone_is_named_and_the_others_are_summarised(
    bench: Bench, running: ClusterProcesses, tmp_path: Path
) -> None:
    running.joins("gamma", tmp_path / "gamma")
    placed = [{"role": "counter-0", "host": "gamma"}, {"role": "counter-1", "host": "beta"}]
    detail = run(bench, running, placed, samples="stay", roles=2, count=100)
    running.agent("gamma").end()
    found = summarised(bench, running, detail.row.id)
    assert counted(found)["beta"] == 100 and not counted(found).get("gamma")
    assert any("There is no host gamma" in sentence for sentence in found.missing)
    result = summary_result(found)
    assert result.warnings == found.missing and "gamma" not in result.data["scenarios"]["practice"]["hosts"]
    collect(bench, running)


def test_an_error_of_this_console_ends_the_summary_and_another_version_is_neither_summarised_nor_collected(
    bench: Bench, running: ClusterProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    detail = staying(bench, running, 100)

    def call(self: Cluster, host: str, method: str, *arguments: Any, **options: Any) -> Any:
        raise AttributeError(method)

    with monkeypatch.context() as patch, pytest.raises(AttributeError):
        patch.setattr(Cluster, "call", call)
        summarised(bench, running, detail.row.id)
    sentence = "alpha has version .* and this one has 0.0.9: install the same version on both"
    with monkeypatch.context() as patch:
        patch.setattr("labconsole.hosts.cluster.__version__", "0.0.9")
        assert re.search(sentence, " ".join(summarised(bench, running, detail.row.id).missing))
        found = collect(bench, running)
        assert not found.collected and re.search(sentence, " ".join(found.warnings))
        assert detail.row.uuid in held(running, "alpha")
    collect(bench, running)


def test_samples_that_are_stored_in_part_are_summarised_where_they_are(
    bench: Bench, running: ClusterProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    detail = staying(bench, running, 50_000)
    append = Recorder._append

    def interrupted(recorder: Recorder, new: Iterable[tuple[str, Block]]) -> None:
        append(recorder, new)
        if bench.numbers(detail.row.id):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, Cluster(running.address, running.member()) as console:
        patch.setattr("labconsole.engine.spool.READ_SIZE", 300_000)
        patch.setattr("labconsole.engine.recorder.BATCH_BYTES", 1)
        patch.setattr(Recorder, "_append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            collect_left(console, bench.database, lambda sentence: None)
    stored = len(bench.numbers(detail.row.id))
    found = summarised(bench, running, detail.row.id)
    assert 0 < stored < 50_000 and not found.missing
    assert {host: counted(found)[host] for host in ("alpha", "beta")} == {"alpha": 50_000, "beta": 50_000}
    collect(bench, running)
    assert len(bench.numbers(detail.row.id)) == 50_000
