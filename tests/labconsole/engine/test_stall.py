"""How long a run waits without a count: for the trial's stall time, from the last count on, and no longer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from labconsole.engine import run_context
from labconsole.engine.run_context import WorkerContext
from labconsole.errors import UserError

STALL_S = 7.0


class Clock:
    """Time that passes only where the context waits."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def clear(self) -> None:
        """As an event's."""


class Counter:
    """A role that counts at these times, and never ends by itself."""

    name, running, failure = "counter", True, None

    def __init__(self, clock: Clock, *times_s: float) -> None:
        self._clock, self._times_s = clock, times_s

    @property
    def channels(self) -> dict[str, SimpleNamespace]:
        return {"counted": SimpleNamespace(count=sum(time_s <= self._clock.now_s for time_s in self._times_s))}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(run_context, "time", clock)
    return clock


@pytest.fixture
def context(tmp_path: Path, clock: Clock) -> Iterator[WorkerContext]:
    context = WorkerContext(None, tmp_path, 1, 0.0, {}, lambda *_: None, ())  # type: ignore[arg-type]
    context._changed = clock  # type: ignore[assignment]
    yield context
    context._roles.clear()
    context.close()


@pytest.mark.parametrize("counts_s", [(), (103.0,), (103.0, 109.5, 116.0)])
def test_a_run_without_a_count_for_the_stall_time_fails_then(
    context: WorkerContext, clock: Clock, counts_s: tuple[float, ...]
) -> None:
    role = Counter(clock, *counts_s)
    context._roles.append(role)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"Nothing moved\."):
        context.wait([role], stall_s=STALL_S, reason="Nothing moved.")  # type: ignore[list-item]
    since = counts_s[-1] if counts_s else 100.0
    assert STALL_S < clock.now_s - since <= STALL_S + 1.0
