"""Two runs with samples, metrics and events in a store, as an export meets them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from labconsole.model.metrics import Direction, Evaluation, Metric, Origin
from labconsole.model.placement import Placement, RoleRequest
from labconsole.model.series import BYTES, Column, Event, Level, Series
from labconsole.processes import this_process
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import EventRecord, SampleChunk, Store
from tests.helpers.shared_once import copy_database
from tests.helpers.stored_post_trial import spring_database

SPRING = [*range(1, 11)]
"""The runs of the spring campaign: two scenarios, five repeats."""
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
OFFSET_NS = 1_795_176_000_000_000_000
MESSAGES = Series(
    "messages", "Messages", (Column("sequence", "u4", "", "No."), Column("latency", "f8", "ns", "Latency"))
)
PACKETS = Series("packets", "Packets", (Column("packet", BYTES, "", "Packet"), Column("port", "u1", "", "Port")))
HEX = ["", "00ff00", "3d312b31"]
PACKETS_CHUNK = SampleChunk(
    "tap", PACKETS, 0, 3, {"packet": np.array([bytes.fromhex(text) for text in HEX], object), "port": np.arange(3)}
)
PARAMETERS = {
    "host": "=cmd|' /C calc'!A0",
    "port": 5671,
    "tls": True,
    "load": {"rate": -2.5, "sizes": [11, 237]},
    "n": "-5",
}
PLACED = Placement(roles=(RoleRequest(role="sender", tag="obu"),)).stored()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "runs.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def spring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of the spring campaign, not to be changed: runs 1 to 10 (`SPRING`)."""
    return spring_database(tmp_path_factory)


@pytest.fixture
def spring_reader(spring: Path) -> Iterator[Reader]:
    with Reader(spring) as opened:
        yield opened


@pytest.fixture
def spring_store(spring: Path, tmp_path: Path) -> Iterator[Store]:
    """A copy of it to be changed."""
    with Store.open(copy_database(spring, tmp_path / "runs.db")) as opened:
        yield opened


@pytest.fixture
def changed_reader(spring_store: Store) -> Iterator[Reader]:
    """Of that copy."""
    with Reader(spring_store.path) as opened:
        yield opened


@pytest.fixture
def reader(store: Store) -> Iterator[Reader]:
    with Reader(store.path) as opened:
        yield opened


@pytest.fixture
def runs(store: Store) -> list[int]:
    """Two runs; the first one with samples of two roles, events and metrics."""
    scenario = NewScenario('Test 1, "plain"', "swim", PARAMETERS, placement=PLACED)
    campaign = NewCampaign("demo", "@Demo", "", 1, (scenario,), ((0, 1), (0, 2)))
    ids = store.add_campaign(campaign, this_process(), NOW)
    store.run_started(ids[0], this_process(), {"wall_offset_ns": OFFSET_NS}, [], NOW)
    for role in ("sender", "receiver"):
        values = {"sequence": np.arange(3), "latency": np.array([-1.5, 0.1, math.nan])}
        store.append(ids[0], [SampleChunk(role, MESSAGES, 0, 3, values)])
    said = Event(1_500, "sender", Level.WARNING, "slow", "+49 ms\nlate; \u00fc", {"a": 1})
    store.append(ids[0], [], [EventRecord("sender", 0, said)])
    lost = Metric("lost", 3.0, "", Direction.LOWER, 6, {"reason": "expired", "by": "b"}, origin=Origin.SIMULATED)
    for run in ids:
        store.replace_evaluation(run, Evaluation((Metric("throughput", 0.1 + 0.2, "msg/s", Direction.HIGHER, 6), lost)))
        store.run_ended(run, RunStatus.FINISHED, "", NOW)
    return ids
