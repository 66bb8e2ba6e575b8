"""The made-up trial of `post.py` in a real store: a campaign of two scenarios, five runs each, with samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from labconsole.model.metrics import Direction, Evaluation, Metric, Verdict
from labconsole.model.plugin import Plugin, Plugins
from labconsole.model.series import Column, Event, Level, Series
from labconsole.model.trial import Curve, Distribution, Samples
from labconsole.processes import this_process
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import EventRecord, SampleChunk, Store
from tests.helpers.post_trial import SCENARIOS, PostParameters, PostTrial
from tests.helpers.shared_once import shared_once

MORNING = datetime(2025, 5, 20, 6, 0, tzinfo=UTC)
WARNING = "Letters wait at the counter."
LETTERS = Series("letters", "Letters", (Column("t_ns", "i8", "ns", "Time"), Column("wait", "f8", "ms", "Wait")))
PLUGINS = Plugins(
    (
        Plugin(
            name="post",
            title="Post",
            description="Letters",
            trials={PostTrial.kind: "tests.helpers.stored_post_trial:StoredPostTrial"},
        ),
    )
)
SITES = ({"name": "Kuala Lumpur", "server": "8 vCPU, 16 GB RAM"}, {"name": "Singapore", "server": "2 vCPU, 8 GB RAM"})
PROVENANCE = {
    "console": "0.1.0",
    "cpu": "Test CPU 3000",
    "host": "bench",
    "openssl": {"python": "OpenSSL 3.0.19"},
    "os": "Debian GNU/Linux 12 (bookworm)",
    "seed": 7,
    "clock": "time.perf_counter_ns",
    "load_average_before": [0.5, 0.25, 0.1],
}


class StoredPostTrial(PostTrial):
    """Draws the letters that it finds in the store."""

    series: ClassVar[tuple[Series, ...]] = (LETTERS,)

    def curves(self, parameters: PostParameters, samples: Samples, events: Sequence[Event]) -> tuple[Curve, ...]:
        table = samples.table("letters", "postman")
        t_s, wait = (table[name].reshape(40, -1).mean(axis=1) for name in ("t_ns", "wait"))
        return (Curve("Wait", "Waiting", "ms", t_s / 1e9, wait),)

    def distributions(
        self, parameters: PostParameters, samples: Samples, events: Sequence[Event]
    ) -> tuple[Distribution, ...]:
        return (Distribution("Wait", "ms", samples.table("letters", "postman")["wait"]),)


def spring_database(tmp_path_factory: pytest.TempPathFactory, repeats: int = 5) -> Path:
    """The database of the campaign, created once per test run, for tests that read it or copy it."""

    def create(folder: Path) -> None:
        with Store.open(folder / "runs.db") as store:
            store_post(store, repeats=repeats)

    return shared_once(tmp_path_factory, f"spring campaign of {repeats}", create) / "runs.db"


def store_post(
    store: Store, scenarios: Sequence[str] = ("open", "sealed"), repeats: int = 5, **hosts: Mapping[str, Any]
) -> list[int]:
    """A campaign of finished runs, repeats interleaved; the same figures each time. `hosts`: placements by scenario."""
    return [end(store, run_id) for run_id in queue_post(store, scenarios, repeats, **hosts)]


def queue_post(
    store: Store, scenarios: Sequence[str] = ("open", "sealed"), repeats: int = 1, **hosts: Mapping[str, Any]
) -> list[int]:
    """The same campaign, sampled and evaluated, its runs still going."""
    campaign = NewCampaign(
        "spring",
        "Spring trial",
        "",
        7,
        tuple(
            NewScenario(name, PostTrial.kind, SCENARIOS.get(name, SCENARIOS["open"]), placement=hosts.get(name, {}))
            for name in scenarios
        ),
        tuple((index, repeat) for repeat in range(1, repeats + 1) for index in range(len(scenarios))),
        SITES,
    )
    run_ids = store.add_campaign(campaign, this_process(), MORNING)
    for position, run_id in enumerate(run_ids):
        started = MORNING + timedelta(seconds=40 * position)
        store.run_started(run_id, this_process(), PROVENANCE, [WARNING], started)
        _sample(store, run_id, position // len(scenarios), slower=1 + position % len(scenarios))
    return run_ids


def end(store: Store, run_id: int, status: RunStatus = RunStatus.FINISHED, reason: str = "") -> int:
    """The run, ended."""
    store.run_ended(run_id, status, reason, MORNING + timedelta(seconds=40 * run_id + 4))
    return run_id


def _sample(store: Store, run_id: int, repeat: int, slower: int) -> None:
    random = np.random.default_rng(repeat)
    wait = random.gamma(4.0, slower, 2_000)
    columns = {"t_ns": np.arange(2_000) * 2_000_000, "wait": wait}
    connected = Event(1, "postman", Level.INFO, "connected", "Connected.", {"container": "test-broker"})
    store.append(run_id, [SampleChunk("postman", LETTERS, 0, 2_000, columns)], [EventRecord("postman", 0, connected)])
    p99 = float(np.quantile(wait, 0.99, method="inverted_cdf"))
    rate = 1_000.0 / slower * (1 + 0.01 * repeat)
    store.replace_evaluation(
        run_id,
        Evaluation(
            (
                Metric("rate", rate, "letters/s", Direction.HIGHER, 2_000),
                Metric("lost", 0.0, "letters", Direction.LOWER, 2_000),
                Metric("wait_p99", p99, "ms", Direction.LOWER, 500),
                Metric("cpu", 20.0 * slower + repeat, "us", Direction.LOWER, 2_000, {"role": "sender"}),
            ),
            (Verdict("all letters came", "pass", "Every letter came."),),
        ),
    )
