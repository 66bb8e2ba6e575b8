"""Small campaigns, samples and stores for the tests of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from labconsole.model.placement import Placement, RoleRequest
from labconsole.model.series import Column, Series
from labconsole.processes import this_process
from labconsole.store.records import NewCampaign, NewScenario
from labconsole.store.run_store import SampleChunk, Store

PLACED = Placement(roles=(RoleRequest(role="sender-*", host=("host-a", "host-b")),)).stored()
"""The hosts that the first scenario asks for."""
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    """A fixed moment."""
    return NOW


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where a database may be made."""
    return tmp_path / "runs.db"


@pytest.fixture
def store(database: Path) -> Iterator[Store]:
    """A new, open store."""
    with Store.open(database) as opened:
        yield opened


@pytest.fixture
def campaign() -> NewCampaign:
    """Two scenarios, two repeats each, interleaved."""
    return NewCampaign(
        name="demo",
        title="Demo campaign",
        profile_text='title = "Demo campaign"\n',
        order_seed=7,
        scenarios=(
            NewScenario("Test 1", "swim", {"messages": 10, "tls": False}, {"throughput": {"min": 100.0}}, PLACED),
            NewScenario("Test 2", "swim", {"messages": 10, "tls": True}),
        ),
        order=((0, 1), (1, 1), (0, 2), (1, 2)),
        sites=({"name": "State A"},),
    )


@pytest.fixture
def new_runs(store: Store, campaign: NewCampaign) -> list[int]:
    """The queued runs of that campaign, owned by this process."""
    return store.add_campaign(campaign, this_process(), NOW)


@pytest.fixture
def messages() -> Series:
    """A series with columns of several widths."""
    return Series(
        "messages",
        "Messages",
        (
            Column("sequence", "u4", "", "Sequence"),
            Column("latency", "i8", "ns", "Latency"),
            Column("cpu", "f8", "%", "CPU"),
            Column("kind", "u1", "", "Kind"),
        ),
    )


@pytest.fixture
def chunk(messages: Series) -> Callable[..., SampleChunk]:
    """Makes chunk `seq` of role `role`, 100 rows that follow from its number."""

    def make(seq: int, role: str = "sender", rows: int = 100) -> SampleChunk:
        numbers = np.arange(seq * rows, (seq + 1) * rows)
        columns = {"sequence": numbers, "latency": -(numbers**3), "cpu": numbers / 7, "kind": numbers % 5}
        return SampleChunk(role, messages, seq, rows, columns)

    return make
