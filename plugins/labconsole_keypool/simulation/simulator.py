"""Discrete-event simulation of the signing service on a virtual clock: FIFO queue, signing threads, key pool."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heapreplace
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from labconsole_keypool.choices import KeyOrigin, KeySource, Refill
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
        # Loads that were due when the loader became free before this moment.
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


NEVER_NS = -1
"""The value of `started`, `got_key` and `finished` of a request that was dropped."""


@dataclass(frozen=True)
class Refills:
    """Batches loaded from the pool, in order: arrays of equal length, times in ns since T0."""

    count: NDArray[np.int64]
    started: NDArray[np.int64]
    finished: NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """The simulated requests in the order of arrival: arrays of shape (requests,), times in ns since T0.

    The time stamps are those of Table 3-2: `received`, `started` (a thread took it from the queue), `got_key`,
    `finished`. `key_source` holds `KeyOrigin` values. A dropped request has `NEVER_NS` and `KeyOrigin.NONE`.
    `refills` are the batches that were begun meanwhile.
    """

    received: NDArray[np.int64]
    started: NDArray[np.int64]
    got_key: NDArray[np.int64]
    finished: NDArray[np.int64]
    key_source: NDArray[np.uint8]
    dropped: NDArray[np.bool_]
    refills: Refills


class Simulation:
    """Simulates a signing service, a part of the requests at a time, so that a caller may record or stop in between.

    The queue holds requests that no thread has begun. One that finds `queue_limit` of them waiting is dropped (section
    2.9.9); 0 means no limit. A thread that comes free at the moment of an arrival takes from the queue first. A thread
    that waits for a key keeps its request, and begins no other. Equal input gives equal output: where times have a
    distribution, they follow from the model's seed.
    """

    def __init__(self, model: ServiceModel, *, queue_limit: int) -> None:
        self._sign_ns, self._generate_ns = round(model.sign_ms * 1e6), round(model.key_generation_ms * 1e6)
        self._sign_factors, self._generation_factors = model.sign_factors, model.generation_factors
        self._sign_random, self._generation_random = np.random.default_rng(model.seed).spawn(2)
        self._queue_limit = queue_limit
        self._supply = KeySupply(model)
        self._threads_free_ns = [0] * model.threads
        self._generators_free_ns = [0] * model.generators
        self._waiting: deque[int] = deque()
        self._taken = 0
        self._refills_reported = 0

    def follow(self, arrivals_ns: NDArray[np.int64]) -> Outcome:
        """Let the next requests arrive at `arrivals_ns` (ns since T0, ascending, none before those of the parts before,
        shape (requests,)) and follow each to its end."""
        supply, threads_free_ns, waiting, queue_limit = (
            self._supply,
            self._threads_free_ns,
            self._waiting,
            self._queue_limit,
        )
        dropped: list[int] = []
        started: list[int] = []
        got_key: list[int] = []
        # One for each arrival, dropped or not: the same however the arrivals are divided into parts.
        sign_ns = self._sign_times(len(arrivals_ns))
        takes_ns = sign_ns.tolist()
        for number, arrival_ns in enumerate(arrivals_ns.tolist()):
            if queue_limit:
                while waiting and waiting[0] <= arrival_ns:
                    waiting.popleft()
                if len(waiting) >= queue_limit:
                    dropped.append(number)
                    continue
            start_ns = max(arrival_ns, threads_free_ns[0])
            key_ns = supply.take(start_ns)
            if key_ns is None:
                key_ns = self._generate(start_ns)
            heapreplace(threads_free_ns, key_ns + takes_ns[number])
            if queue_limit:
                waiting.append(start_ns)
            started.append(start_ns)
            got_key.append(key_ns)
        is_dropped = np.zeros(len(arrivals_ns), np.bool_)
        is_dropped[dropped] = True
        processed = np.flatnonzero(~is_dropped)
        got_key_ns = np.array(got_key, np.int64)
        return Outcome(
            received=arrivals_ns,
            started=_at(processed, np.array(started, np.int64), len(arrivals_ns)),
            got_key=_at(processed, got_key_ns, len(arrivals_ns)),
            finished=_at(processed, got_key_ns + sign_ns[processed], len(arrivals_ns)),
            key_source=self._key_sources(processed, len(arrivals_ns)),
            dropped=is_dropped,
            refills=self._new_refills(),
        )

    def _sign_times(self, count: int) -> NDArray[np.int64]:
        """The signing times of the next requests, ns."""
        if self._sign_factors is None:
            return np.full(count, self._sign_ns, np.int64)
        return np.rint(self._sign_ns * self._sign_factors(self._sign_random.random(count))).astype(np.int64)

    def _generate(self, asked_ns: int) -> int:
        """The time at which a key pair requested at `asked_ns` is ready: threads take turns at the device."""
        takes_ns = self._generate_ns
        if self._generation_factors is not None:
            takes_ns = round(takes_ns * float(self._generation_factors(self._generation_random.random(1))[0]))
        done_ns = max(asked_ns, self._generators_free_ns[0]) + takes_ns
        heapreplace(self._generators_free_ns, done_ns)
        return done_ns

    def _key_sources(self, processed: NDArray[np.int64], length: int) -> NDArray[np.uint8]:
        """The n-th request that is processed takes the n-th key, and keys are used in the order of Appendix B."""
        kinds = np.array([KeyOrigin.TOKEN_RAM, KeyOrigin.TOKEN_STORE, KeyOrigin.POOL, KeyOrigin.GENERATED], np.uint8)
        places = self._taken + np.arange(len(processed))
        self._taken += len(processed)
        sources = np.full(length, KeyOrigin.NONE, np.uint8)
        sources[processed] = kinds[np.searchsorted(np.cumsum(self._supply.counts), places, side="right")]
        return sources

    def _new_refills(self) -> Refills:
        new = self._supply.refills[self._refills_reported :]
        self._refills_reported += len(new)
        return Refills(*np.array(new, np.int64).reshape(-1, 3).T)


def simulate(arrivals_ns: NDArray[np.int64], model: ServiceModel, *, queue_limit: int) -> Outcome:
    """All requests in one part, as in `Simulation`."""
    return Simulation(model, queue_limit=queue_limit).follow(arrivals_ns)


def _at(places: NDArray[np.int64], values: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """An array of `length` with `values` at `places` and `NEVER_NS` elsewhere."""
    spread = np.full(length, NEVER_NS, np.int64)
    spread[places] = values
    return spread


Changes = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Each change of the number of requests that wait: (ns since T0, their number from then on), equal lengths."""


class QueueLengths:
    """A request waits from its arrival until a thread takes it. Of several changes at one moment the last one is given,
    and who leaves does so before who comes: never are there more than the queue holds."""

    def __init__(self) -> None:
        self._t = np.empty(0, np.int64)
        self._steps = np.empty(0, np.int64)
        self._length = 0

    def after(self, outcome: Outcome) -> Changes:
        """The changes that are certain after the next part: those before its last arrival."""
        waits = ~outcome.dropped & (outcome.started > outcome.received)
        count = int(np.count_nonzero(waits))
        self._t = np.concatenate((self._t, outcome.started[waits], outcome.received[waits]))
        self._steps = np.concatenate((self._steps, np.repeat((-1, 1), count)))
        return self._until(int(outcome.received[-1])) if len(outcome.received) else self._until(0)

    def rest(self) -> Changes:
        """The changes that remain when no further request comes: the queue runs empty."""
        return self._until(int(self._t.max(initial=0)) + 1)

    def _until(self, end_ns: int) -> Changes:
        order = np.lexsort((self._steps, self._t))
        t, steps = self._t[order], self._steps[order]
        certain = int(np.searchsorted(t, end_ns, "left"))
        self._t, self._steps = t[certain:], steps[certain:]
        t, lengths = t[:certain], self._length + np.cumsum(steps[:certain])
        self._length += int(steps[:certain].sum())
        last = np.append(t[1:] != t[:-1], True)[:certain]
        return t[last], lengths[last]
