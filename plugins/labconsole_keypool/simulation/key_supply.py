"""The keys of a simulated token: taken one by one, refilled in batches from the pool outside."""

from __future__ import annotations

from collections import deque
from itertools import repeat

from labconsole_keypool.choices import KeySource, Refill
from labconsole_keypool.simulation.service_model import ServiceModel


class KeySupply:
    """Keys in the order in which they are taken, each with the time from which it can be used. Times are ns since T0.

    `refills` lists the batches begun so far as (count, started, finished).
    """

    def __init__(self, model: ServiceModel) -> None:
        pooled = model.keys is KeySource.POOL
        self.refills: list[tuple[int, int, int]] = []
        self._in_ram, self._in_store = (model.keys_at_start, model.store_keys) if pooled else (0, 0)
        self._ready = deque(repeat(0, self._in_ram + self._in_store))
        self._outside = model.pool_keys if pooled else 0
        self._loaded = 0
        self._unwrap_ns = round(model.unwrap_ms * 1e6)
        self._batch = model.batch
        self._one_by_one = model.refill is Refill.PARALLEL
        self._low_water = max(1, model.low_water) if self._one_by_one else 1
        self._loader_free_ns = 0
        self._refill_if_low(0)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Keys so far from RAM, from the token's store, and from the pool, in the order in which they are taken."""
        return self._in_ram, self._in_store, self._loaded

    def take(self, asked_ns: int) -> int | None:
        """Take the next key for a request whose thread asks at `asked_ns`, never earlier than the one before.

        Returns:
            When the thread has the key; None if there is no key left, here or outside.
        """
        ready = self._ready
        if not ready:
            return None
        taken_ns = max(asked_ns, ready[0])
        # What was short when the loader came free before this moment was loaded from then on.
        while self._loader_free_ns <= taken_ns and self._refill_if_low(self._loader_free_ns):
            pass
        ready.popleft()
        if self._loader_free_ns <= taken_ns:
            self._refill_if_low(taken_ns)
        return taken_ns

    def _refill_if_low(self, now_ns: int) -> bool:
        """Let the free loader begin a batch if it is due; whether it was."""
        count = min(self._batch, self._outside)
        if len(self._ready) >= self._low_water or not count:
            return False
        end_ns = now_ns + count * self._unwrap_ns
        times = (now_ns + place * self._unwrap_ns for place in range(1, count + 1))
        self._ready.extend(times if self._one_by_one else repeat(end_ns, count))
        self.refills.append((count, now_ns, end_ns))
        self._loaded += count
        self._outside -= count
        self._loader_free_ns = end_ns
        return True
