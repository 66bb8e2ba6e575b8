"""Discrete-event simulation of the signing service on a virtual clock: FIFO queue, signing threads, key pool."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heapreplace

import numpy as np
from numpy.typing import NDArray

from labconsole_keypool.simulation.key_supply import KeySupply
from labconsole_keypool.simulation.service_model import KeyOrigin, ServiceModel

NEVER_NS = -1
"""Stands for started, got key and finished of a request that was dropped."""


@dataclass(frozen=True)
class Refills:
    """Batches loaded from the pool, in order: arrays of equal length, times in ns since T0."""

    count: NDArray[np.int64]
    started: NDArray[np.int64]
    finished: NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """What became of each request, in the order of arrival: arrays of shape (requests,), times in ns since T0.

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
    """A signing service that requests come to, a part of them at a time: after each part somebody may look, or stop.

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
        self._refills_told = 0

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
        """How long each of the next requests is signed, ns."""
        if self._sign_factors is None:
            return np.full(count, self._sign_ns, np.int64)
        return np.rint(self._sign_ns * self._sign_factors(self._sign_random.random(count))).astype(np.int64)

    def _generate(self, asked_ns: int) -> int:
        """When a key pair asked for at `asked_ns` is there: the device generates for one thread after the other."""
        takes_ns = self._generate_ns
        if self._generation_factors is not None:
            takes_ns = round(takes_ns * float(self._generation_factors(self._generation_random.random(1))[0]))
        done_ns = max(asked_ns, self._generators_free_ns[0]) + takes_ns
        heapreplace(self._generators_free_ns, done_ns)
        return done_ns

    def _key_sources(self, processed: NDArray[np.int64], length: int) -> NDArray[np.uint8]:
        """The n-th request that is processed takes the n-th key, and keys are taken in the order of Appendix B."""
        kinds = np.array([KeyOrigin.TOKEN_RAM, KeyOrigin.TOKEN_STORE, KeyOrigin.POOL, KeyOrigin.GENERATED], np.uint8)
        places = self._taken + np.arange(len(processed))
        self._taken += len(processed)
        sources = np.full(length, KeyOrigin.NONE, np.uint8)
        sources[processed] = kinds[np.searchsorted(np.cumsum(self._supply.counts), places, side="right")]
        return sources

    def _new_refills(self) -> Refills:
        new = self._supply.refills[self._refills_told :]
        self._refills_told += len(new)
        return Refills(*np.array(new, np.int64).reshape(-1, 3).T)


def simulate(arrivals_ns: NDArray[np.int64], model: ServiceModel, *, queue_limit: int) -> Outcome:
    """All requests in one part, as in `Simulation`."""
    return Simulation(model, queue_limit=queue_limit).follow(arrivals_ns)


def _at(places: NDArray[np.int64], values: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """An array of `length` with `values` at `places` and `NEVER_NS` elsewhere."""
    spread = np.full(length, NEVER_NS, np.int64)
    spread[places] = values
    return spread
