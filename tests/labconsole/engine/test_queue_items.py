"""How long a queue will be busy, from what its runs took before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from labconsole.engine.queue_items import QueueItem, QueueState, time_left_s
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
