"""A run during which its real broker is stopped and started: nothing that was acknowledged may be lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.labconsole_amqp.lab import Lab, Outcome

_COUNT = 2_000
_RECONNECTING = {"durable": True, "numbered": True, "reconnect": 120.0, "loop": "open", "rate": 50.0, "count": _COUNT}
"""It lasts 40 s, so that it is still in progress when a broker has started again on a busy computer."""


def run_over_restart(folder: Path, place: Mapping[str, Any], restart: Callable[[], None]) -> Outcome:
    """The outcome of a run of durable messages at `place`, in whose middle `restart` is called."""
    moving = threading.Event()

    def during(lab: Lab) -> None:
        lab.until("received", 500)
        moving.set()

    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(lambda: Lab(folder, during=during).run(**place, **_RECONNECTING))
        assert moving.wait(60)
        restart()
        return ending.result()


def assert_nothing_lost(outcome: Outcome) -> None:
    """Both ends have connected again; messages that were acknowledged arrived, the others were sent again."""
    assert outcome.failure is None
    figures = outcome.figures
    assert (figures["sent"], figures["lost"], figures["unknown"], figures["reconnects"]) == (_COUNT, 0, 0, 2), figures
    assert figures["received"] == _COUNT + figures["duplicated"], figures
