"""The order of a queue's runs, and how long it will be busy, from what its runs took before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from labconsole.engine.queue_items import QueueItem, QueueItems, QueueState, time_left_s
from labconsole.store.records import RunStatus

NOW_S = 1000.0
WAITING = QueueItem(1, 1, "Mine", "A", "kind", 1, 3, QueueState.WAITING, RunStatus.QUEUED)
RUNNING = replace(WAITING, run_id=2, state=QueueState.RUNNING, status=RunStatus.RUNNING, begun_s=NOW_S - 4)
DONE = replace(WAITING, run_id=3, state=QueueState.DONE, status=RunStatus.FINISHED, took_s=10.0)


@pytest.mark.parametrize(
    ("items", "left_s"),
    [
        ([], 0.0),
        ([DONE], 0.0),
        ([DONE, RUNNING, WAITING], 6.0 + 10.0),
        ([RUNNING], None),
        ([replace(RUNNING, eta_s=5.0), WAITING, WAITING], 5.0 + 2 * 9.0),
        ([replace(RUNNING, expected_s=7.0), replace(WAITING, scenario="B", expected_s=20.0)], 3.0 + 20.0),
        ([replace(RUNNING, eta_s=5.0), replace(WAITING, kind="another", scenario="B")], None),
        ([replace(DONE, status=RunStatus.FAILED, took_s=1.0), WAITING], None),
        ([replace(RUNNING, expected_s=2.0)], 0.0),
        ([DONE, replace(WAITING, starts=datetime(2090, 1, 1, tzinfo=UTC))], None),
    ],
)
def test_time_left_is_the_sum_of_the_expected_times_of_all_runs(items: list[QueueItem], left_s: float | None) -> None:
    assert time_left_s(items, NOW_S) == left_s


def test_runs_are_added_and_moved_among_those_that_wait() -> None:
    items = QueueItems()
    items.add([DONE, RUNNING])
    items.add(replace(WAITING, run_id=number) for number in (4, 5, 6))
    items.add([replace(WAITING, run_id=7)], first=True)
    items.add([replace(WAITING, run_id=8)], after=RUNNING.run_id)
    assert order(items) == [3, 2, 8, 7, 4, 5, 6]
    items.move(6, -2)
    assert order(items) == [3, 2, 8, 7, 6, 4, 5]
    items.move(8, 99)
    assert not items.waits(RUNNING.run_id) and not items.waits(9)
    assert order(items) == [3, 2, 7, 6, 4, 5, 8]
    items.update(7, 6, starts=datetime(2090, 1, 1, tzinfo=UTC))
    assert items.due is not None and items.due.run_id == 4
    items.remove({4, 5, 8})
    assert items.due is None and items.starts == datetime(2090, 1, 1, tzinfo=UTC)


def order(items: QueueItems) -> list[int]:
    return [item.run_id for item in items.all]
