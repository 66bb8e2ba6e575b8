"""A run during which its real broker is stopped and started: nothing that was acknowledged may be lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.labconsole_amqp.lab import Lab, Outcome

_BEFORE, _AFTER = 200, 200
"""Messages received before the broker is stopped, and after it was started."""
_RECONNECTING = {"durable": True, "numbered": True, "reconnect": 120.0, "loop": "soak", "rate": 100.0, "hours": 1.0}


def run_over_restart(folder: Path, place: Mapping[str, Any], restart: Callable[[], None]) -> Outcome:
    """The outcome of a run of durable messages at `place`, in whose middle `restart` is called.

    The run is stopped once messages arrive as they are sent again, however long the restart takes on a busy computer.
    """
    moving, restarted = threading.Event(), threading.Event()

    def during(lab: Lab) -> None:
        lab.until("received", _BEFORE)
        moving.set()
        while not restarted.is_set() and not lab.wait(0.05):
            pass
        lab.until("received", lab.count("received") + _AFTER)
        while lab.count("received") < lab.count("sent") - 10 and not lab.wait(0.05):
            pass
        lab.cancel()

    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(lambda: Lab(folder, during=during).run(**place, **_RECONNECTING))
        try:
            assert moving.wait(60)
            restart()
        finally:
            restarted.set()
        return ending.result()


def assert_nothing_lost(outcome: Outcome) -> None:
    """Both ends have connected again; messages that were acknowledged arrived, the others were sent again."""
    assert outcome.failure is None
    figures = outcome.figures
    assert (figures.get("lost"), figures["unknown"], figures["reconnects"]) == (0, 0, 2), figures
    assert figures["sent"] >= _BEFORE + _AFTER, figures
    assert figures["received"] == figures["sent"] + figures["duplicated"], figures
