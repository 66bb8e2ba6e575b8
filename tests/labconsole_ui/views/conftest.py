"""Runs of the AMQP trial in a real store, evaluated by the trial; theme and bridge of the views."""

from __future__ import annotations

import contextlib
import hashlib
import math
import pickle
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import delete
from sqlalchemy import insert, select, update

from labconsole.engine.queue import RunQueue
from labconsole.model.plugin import Plugins
from labconsole.model.series import RESOURCES
from labconsole.model.trial import Evaluation, Event, Level
from labconsole.processes import this_process
from labconsole.store import schema
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import EventRecord, SampleChunk, Store
from labconsole_amqp.series import RECEIVED, SENT
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.theme.theme import Theme, ThemeMode
from tests.helpers.shared_once import shared_once

KIND = AmqpTrial.kind
BEGIN_NS = 5_000_000_000_000
MORNING = datetime(2025, 5, 20, 6, 0, tzinfo=UTC)
SITES = (
    {"name": "Malaysia", "endpoint": "127.0.0.1", "tls_port": "5671", "server": "8 vCPU, 16 GB RAM"},
    {"name": "Singapore", "endpoint": "127.0.0.2", "tls_port": "5871", "remarks": "emulated"},
)


class StoredRuns:
    """Writes runs and returns their ids; `rate` (messages a second) and `latency_ms` give their figures."""

    def __init__(
        self, path: Path, seed: int = 1, recorded: Callable[[str, Callable[[Path], None]], Path] | None = None
    ) -> None:
        """`recorded` gives the folder of a name, filled by a function once per test run.

        With it, runs that are the first in the database are sampled and evaluated once, and copied for other tests.
        """
        self.path = path
        self._recorded = recorded
        self._seed = seed
        self.store = Store.open(path)
        self._random = np.random.default_rng(seed)
        self._moment = MORNING

    def close(self) -> None:
        self.store.close()

    def queued(
        self,
        *scenarios: tuple[str, Mapping[str, Any]],
        repeats: int = 1,
        campaign: str = "Demo campaign",
        placements: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> list[int]:
        """A queued campaign of (name, parameters), with interleaved repeats; `placements` by the scenario's name.

        It has an open loop, and so latencies. Started runs have definitions 1, which judge throughput there, too."""
        trial = Plugins.discover().trial(KIND)
        new = NewCampaign(
            "demo",
            campaign,
            "",
            7,
            tuple(
                NewScenario(
                    name,
                    KIND,
                    trial.parameters.model_validate({"loop": "open", **values}).model_dump(mode="json"),
                    placement=(placements or {}).get(name, {}),
                )
                for name, values in scenarios
            ),
            tuple((index, repeat) for repeat in range(1, repeats + 1) for index in range(len(scenarios))),
            SITES,
        )
        return self.store.add_campaign(new, this_process(), self._moment)

    def start(self, run_id: int) -> None:
        self._moment += timedelta(seconds=40)
        provenance = {"python": "3.11", "os": {"name": "Linux", "cpu": "2 cores"}}
        warnings = ["Closed loop: latency includes queueing between sender and receiver, as in the source."]
        self.store.run_started(run_id, this_process(), provenance, warnings, self._moment)

    def sample(self, run_id: int, *, messages: int = 2_000, rate: float = 1_000.0, latency_ms: float = 2.0) -> None:
        """Store what sender, receiver and the meter of resources recorded, and evaluate it."""
        sent_ns = BEGIN_NS + (np.arange(messages) * 1e9 / rate).astype(np.int64)
        delay = (self._random.gamma(4.0, latency_ms / 4, messages) * 1e6).astype(np.int64)
        received_ns = np.maximum.accumulate(sent_ns + delay)
        stamp_ms = sent_ns // 1_000_000
        zeros = np.zeros(messages, np.int32)
        sizes = np.full(messages, 282, np.int32)
        common = {"stamp_ms": stamp_ms, "size": sizes}
        sent = {"seq": np.arange(messages), "intended_ns": sent_ns, "sent_ns": sent_ns, **common}
        sent |= {"sign_ns": zeros, "encrypt_ns": zeros, "phase": np.zeros(messages, np.uint8)}
        received = {"number": np.full(messages, -1), "received_ns": received_ns, **common}
        received |= {"verify_ns": zeros, "decrypt_ns": zeros, "outcome": np.zeros(messages, np.uint8)}
        chunks = [
            SampleChunk("sender-0", SENT, 0, messages, sent),
            SampleChunk("receiver-0", RECEIVED, 0, messages, received),
        ]
        seconds = max(2, math.ceil(messages / rate))
        t_ns = BEGIN_NS + np.arange(seconds * 4) * 250_000_000
        for role in ("sender-0", "receiver-0", "broker"):
            usage = {
                "t_ns": t_ns,
                "cpu": (60 + 20 * self._random.random(len(t_ns))).astype(np.float32),
                "rss": np.linspace(60e6, 75e6, len(t_ns)).astype(np.int64),
            }
            chunks.append(SampleChunk(role, RESOURCES, 0, len(t_ns), usage))
        events = [
            Event(BEGIN_NS, "worker", Level.INFO, "T0", "T0: begin. Senders: 1, receivers: 1.", {"begin_ns": BEGIN_NS}),
            Event(BEGIN_NS + 500_000_000, "broker", Level.WARNING, "credit", "The broker gave no credit for 20 ms."),
        ]
        self.store.append(run_id, chunks, [EventRecord("worker", seq, event) for seq, event in enumerate(events)])
        self.store.replace_evaluation(run_id, self._evaluated(run_id))

    def _evaluated(self, run_id: int) -> Evaluation:
        trial = AmqpTrial()
        with Reader(self.path) as reader:
            detail = reader.run(run_id)
            parameters = trial.parameters.model_validate(dict(detail.row.parameters))
            return trial.evaluate(parameters, reader.samples(run_id), detail.events)  # type: ignore[arg-type]

    def end(self, run_id: int, status: RunStatus = RunStatus.FINISHED, reason: str = "") -> None:
        self._moment += timedelta(seconds=4)
        self.store.run_ended(run_id, status, reason, self._moment)

    def finished(
        self, *scenarios: tuple[str, Mapping[str, Any]], repeats: int = 1, messages: int = 2_000, **load: float
    ) -> list[int]:
        """A campaign whose runs have all finished. Later scenarios are slower."""
        recorded = self._recorded
        with Reader(self.path) as reader:
            if recorded is None or self._moment != MORNING or reader.runs(include_trashed=True, limit=1):
                return self._finished(*scenarios, repeats=repeats, messages=messages, **load)
        what = repr((self._seed, scenarios, repeats, messages, load))

        def create(folder: Path) -> None:
            with contextlib.closing(StoredRuns(folder / "runs.db", self._seed)) as runs:
                run_ids = runs._finished(*scenarios, repeats=repeats, messages=messages, **load)
            (folder / "after").write_bytes(pickle.dumps((run_ids, runs._moment, runs._random)))

        folder = recorded(f"finished-runs-{hashlib.sha256(what.encode()).hexdigest()[:24]}", create)
        with (
            contextlib.closing(sqlite3.connect(folder / "runs.db")) as source,
            contextlib.closing(sqlite3.connect(self.path)) as target,
        ):
            source.backup(target)
        run_ids, self._moment, self._random = pickle.loads((folder / "after").read_bytes())
        return list(run_ids)

    def _finished(
        self, *scenarios: tuple[str, Mapping[str, Any]], repeats: int, messages: int, **load: float
    ) -> list[int]:
        run_ids = self.queued(*scenarios, repeats=repeats)
        for position, run_id in enumerate(run_ids):
            slower = 1 + position % len(scenarios)
            self.start(run_id)
            self.sample(
                run_id,
                messages=messages,
                rate=load.get("rate", 1_000.0) / slower,
                latency_ms=load.get("latency_ms", 2.0) * slower,
            )
            self.end(run_id)
        return run_ids

    def many(self, count: int) -> None:
        """Finished runs without samples, with the metrics of a sampled one, written in one transaction."""
        first = self.finished(("Test 1", {"test": 1}), messages=200)[0]
        run_ids = self.queued(
            *((f"Test {test}", {"test": test}) for test in (1, 2, 3, 4)), repeats=math.ceil(count / 4)
        )
        run, metric = schema.run, schema.metric
        with self.store.writer.transaction() as connection:
            metrics = [row._asdict() for row in connection.execute(select(metric).where(metric.c.run_id == first))]
            ended = {name: connection.execute(select(run.c[name]).where(run.c.id == first)).scalar() for name in _ENDED}
            connection.execute(update(run).where(run.c.id.in_(run_ids)).values(ended))
            connection.execute(insert(metric), [row | {"run_id": run_id} for run_id in run_ids for row in metrics])


_ENDED = ("status", "started", "ended", "provenance", "warnings")


@pytest.fixture(scope="session")
def theme(qapp: QApplication) -> Theme:
    return Theme(qapp, ThemeMode.LIGHT)


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return Plugins.discover()


@pytest.fixture
def stored(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredRuns]:
    runs = StoredRuns(tmp_path / "runs.db", recorded=partial(shared_once, tmp_path_factory))
    yield runs
    runs.close()


@pytest.fixture
def readers(stored: StoredRuns) -> Callable[[], Reader]:
    return lambda: Reader(stored.path)


@pytest.fixture
def bridge(stored: StoredRuns, qapp: QApplication) -> Iterator[QueueBridge]:
    made = QueueBridge(lambda wake: RunQueue(stored.path, wake=wake))
    yield made
    made.close()


@pytest.fixture
def closing(bridge: QueueBridge) -> Iterator[Callable[[QWidget], None]]:
    """Closes and deletes the views it is given when the test ends, before the bridge goes."""
    views: list[QWidget] = []
    yield views.append
    for view in views:
        view.close()
        delete(view)
