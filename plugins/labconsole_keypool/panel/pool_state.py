"""The places of the keys of the pool, from a run's live frames or from the key store's counts. No Qt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from labconsole.engine.protocol import LiveFrame
from labconsole_keypool.series import (
    DROPPED_CHANNEL,
    FROM_POOL_CHANNEL,
    FROM_RAM_CHANNEL,
    FROM_STORE_CHANNEL,
    GENERATED_CHANNEL,
    KEYS_CLAIMED_CHANNEL,
    KEYS_GENERATED_CHANNEL,
    KEYS_LOADED_CHANNEL,
    KEYS_STORED_CHANNEL,
    KEYS_USED_CHANNEL,
    RECEIVED_CHANNEL,
    TAKEN_CHANNEL,
)
from labconsole_keypool.store.key_records import Counts

SOURCES = (FROM_RAM_CHANNEL, FROM_STORE_CHANNEL, FROM_POOL_CHANNEL, GENERATED_CHANNEL)
"""Sources of a request's key: Appendix B's A, B, C and D."""


@dataclass(frozen=True)
class Rates:
    """Keys per second that move into the store, into the token, into signatures."""

    stored: float = 0.0
    loaded: float = 0.0
    used: float = 0.0


@dataclass(frozen=True)
class PoolState:
    """Keys by where they are now. `queue` counts requests that wait; `lost` are keys that became invalid."""

    wrapping: int = 0
    in_store: int = 0
    in_token: int = 0
    used: int = 0
    lost: int = 0
    queue: int = 0
    dropped: int = 0
    rates: Rates = Rates()
    running: bool = False
    trouble: str = ""
    """Why the places of the keys are unknown; a sentence."""

    @property
    def moves(self) -> bool:
        """Whether keys are moving between two places."""
        return self.running and any((self.rates.stored, self.rates.loaded, self.rates.used))


def idle_state(counts: Counts) -> PoolState:
    """The pool while no run is in progress: the keys in the key store. Claimed keys are in a token, or being loaded."""
    return PoolState(in_store=counts.new, in_token=counts.in_use, used=counts.used, lost=counts.invalid)


def running_state(frame: LiveFrame, rates: Mapping[str, float], in_store_at_start: int) -> PoolState:
    """The pool in mid-run. Counters of several processes arrive in any order: a negative difference counts as 0."""
    count = {name: channel.count for name, channel in frame.channels.items()}

    def of(*names: str) -> int:
        first, *others = (count.get(name, 0) for name in names)
        return max(0, first - sum(others))

    stored = count.get(KEYS_STORED_CHANNEL.name, 0) - count.get(KEYS_CLAIMED_CHANNEL.name, 0)
    return PoolState(
        wrapping=of(KEYS_GENERATED_CHANNEL.name, KEYS_STORED_CHANNEL.name),
        in_store=max(0, in_store_at_start + stored),
        in_token=of(KEYS_LOADED_CHANNEL.name, KEYS_USED_CHANNEL.name),
        used=of(KEYS_USED_CHANNEL.name),
        queue=of(RECEIVED_CHANNEL.name, DROPPED_CHANNEL.name, TAKEN_CHANNEL.name),
        dropped=of(DROPPED_CHANNEL.name),
        rates=Rates(
            *(rates.get(channel.name, 0.0) for channel in (KEYS_STORED_CHANNEL, KEYS_LOADED_CHANNEL, KEYS_USED_CHANNEL))
        ),
        running=True,
    )
