"""How long a queue will be busy: from what runs of the same parameters took before, and how far the current one is."""

from __future__ import annotations

from collections.abc import Sequence

from labconsole.engine.queue_items import QueueItem, QueueState
from labconsole.store.records import RunStatus


def time_left_s(items: Sequence[QueueItem], now_s: float) -> float | None:
    """Seconds until all `items` are done at `now_s` (`time.monotonic`); None while one of them gives no hint.

    A run takes as long as the newest one of its scenario in this queue, else as earlier runs of the same parameters,
    else as the current run of its kind of trial.
    """
    took = {
        (item.campaign_id, item.scenario): item.took_s
        for item in items
        if item.took_s is not None and item.status is RunStatus.FINISHED
    }
    running = next((item for item in items if item.state is QueueState.RUNNING), None)
    left_s = 0.0
    like_current: float | None = None
    if running is not None:
        expected = took.get((running.campaign_id, running.scenario), running.expected_s)
        so_far = now_s - running.begun_s if running.begun_s is not None else 0.0
        current = running.eta_s if expected is None else max(expected - so_far, 0.0)
        if current is None:
            return None
        left_s, like_current = current, so_far + current
    for item in items:
        if item.state is QueueState.WAITING:
            of_kind = like_current if running is not None and item.kind == running.kind else None
            expected = took.get((item.campaign_id, item.scenario), item.expected_s or of_kind)
            if expected is None:
                return None
            left_s += expected
    return left_s
