"""Conducts a whole campaign in a queue without a window, and reports the end of each run in its order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from labconsole.engine.queue import QueueItem, QueueListener, QueueState, RunQueue
from labconsole.security.secrets import Secret
from labconsole.store.records import NewCampaign


class CampaignListener(QueueListener, Protocol):
    """Called with the changes of the queue, and with the end of each run in the order of the campaign."""

    def waiting_for(self, other: QueueItem | None) -> None:
        """A run of another console has to finish first; called often."""

    def report(self, run_id: int, item: QueueItem | None) -> None:
        """A run has ended; `item` knows how where the database could not record it."""


def run_campaign(
    queue: RunQueue,
    campaign: NewCampaign,
    secrets: Mapping[str, Secret],
    listener: CampaignListener,
    stopped: Callable[[], object],
    wakeup: threading.Event,
) -> list[int]:
    """Run a campaign in `queue`, or cancel it once `stopped()`; returns the runs, with the repeats of disturbed ones.

    `wakeup` is set by the queue, and where `stopped` has changed.
    """
    queue.listeners.append(listener)
    try:
        run_ids = queue.submit(campaign, secrets)
        reported = 0
        while queue.busy:
            if stopped():
                queue.cancel_all()
            queue.pump()
            for disturbed, again in queue.repeated.items():
                if again not in run_ids:
                    run_ids.insert(run_ids.index(disturbed) + 1, again)
            listener.waiting_for(queue.waiting_for)
            while reported < len(run_ids) and _done(item := _item(queue, run_ids[reported])):
                listener.report(run_ids[reported], item)
                reported += 1
            wakeup.wait(0.25)
            wakeup.clear()
        return run_ids
    finally:
        queue.listeners.remove(listener)


def _item(queue: RunQueue, run_id: int) -> QueueItem | None:
    return next((item for item in queue.items if item.run_id == run_id), None)


def _done(item: QueueItem | None) -> bool:
    """Whether a run is done, or was removed."""
    return item is None or item.state is QueueState.DONE
