"""What the signing engine tells its role while it works: counts, events, refills."""

from __future__ import annotations

from typing import Any, Protocol

from labconsole.model.trial import Level


class Reports(Protocol):
    """What the engine's threads report to; may be called by several at a time."""

    def count(self, channel: str, amount: int) -> None:
        """Add to a live counter: `keys_claimed`, `keys_loaded`, `keys_used`."""

    def event(self, name: str, message: str, level: Level = Level.INFO, **data: Any) -> None:
        """Something happened, in one sentence."""

    def refill(self, started_ns: int, finished_ns: int, keys: int) -> None:
        """A batch of keys was loaded and unwrapped (`clock.now_ns`)."""
