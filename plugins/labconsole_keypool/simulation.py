"""Discrete-event simulation of the signing service on a virtual clock: FIFO queue, signing threads, key pool."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heapreplace

import numpy as np
from numpy.typing import NDArray

from labconsole_keypool.key_supply import KeySupply
from labconsole_keypool.service_model import KeyOrigin, ServiceModel

NEVER_NS = -1
"""Stands for started, got key and finished of a request that was dropped."""


@dataclass(frozen=True)
class Refills:
    """Batches loaded from the pool, in order: arrays of equal length, times in ns since T0.

    `first` is the request that took the batch's first key, -1 if none did.
    """

    first: NDArray[np.int64]
    count: NDArray[np.int64]
    started: NDArray[np.int64]
    finished: NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """What became of each request, in the order of arrival: arrays of shape (requests,), times in ns since T0.

    The time stamps are those of Table 3-2: `received`, `started` (a thread took it from the queue), `got_key`,
    `finished`. `key_source` holds `KeyOrigin` values. A dropped request has `NEVER_NS` and `KeyOrigin.NONE`.
    """

    received: NDArray[np.int64]
    started: NDArray[np.int64]
    got_key: NDArray[np.int64]
    finished: NDArray[np.int64]
    key_source: NDArray[np.uint8]
    dropped: NDArray[np.bool_]
    refills: Refills


def simulate(arrivals_ns: NDArray[np.int64], model: ServiceModel, *, queue_limit: int) -> Outcome:
    """Let requests arrive at `arrivals_ns` (ns since T0, ascending, shape (requests,)) and follow each to its end.

    The queue holds requests that no thread has begun. One that finds `queue_limit` of them waiting is dropped (section
    2.9.9); 0 means no limit. A thread that comes free at the moment of an arrival takes from the queue first. A thread
    that waits for a key keeps its request, and begins no other. Equal input gives equal output: nothing is random.
    """
    sign_ns, generate_ns = round(model.sign_ms * 1e6), round(model.key_generation_ms * 1e6)
    supply = KeySupply(model)
    free_ns = [0] * model.threads
    waiting: deque[int] = deque()
    dropped: list[int] = []
    started: list[int] = []
    got_key: list[int] = []
    for number, arrival_ns in enumerate(arrivals_ns.tolist()):
        if queue_limit:
            while waiting and waiting[0] <= arrival_ns:
                waiting.popleft()
            if len(waiting) >= queue_limit:
                dropped.append(number)
                continue
        start_ns = max(arrival_ns, free_ns[0])
        key_ns = supply.take(start_ns)
        if key_ns is None:
            key_ns = start_ns + generate_ns
        heapreplace(free_ns, key_ns + sign_ns)
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
        finished=_at(processed, got_key_ns + sign_ns, len(arrivals_ns)),
        key_source=_key_sources(supply, processed, len(arrivals_ns)),
        dropped=is_dropped,
        refills=_refills(supply, processed),
    )


def _at(places: NDArray[np.int64], values: NDArray[np.int64], length: int) -> NDArray[np.int64]:
    """An array of `length` with `values` at `places` and `NEVER_NS` elsewhere."""
    spread = np.full(length, NEVER_NS, np.int64)
    spread[places] = values
    return spread


def _key_sources(supply: KeySupply, processed: NDArray[np.int64], length: int) -> NDArray[np.uint8]:
    """The n-th request that is processed takes the n-th key, and keys are taken in the order of Appendix B."""
    kinds = np.array([KeyOrigin.TOKEN_RAM, KeyOrigin.TOKEN_STORE, KeyOrigin.POOL, KeyOrigin.GENERATED], np.uint8)
    ends = np.cumsum(supply.counts)
    sources = np.full(length, KeyOrigin.NONE, np.uint8)
    sources[processed] = kinds[np.searchsorted(ends, np.arange(len(processed)), side="right")]
    return sources


def _refills(supply: KeySupply, processed: NDArray[np.int64]) -> Refills:
    place, count, started, finished = np.array(supply.refills, np.int64).reshape(-1, 4).T
    took = np.full(len(place), -1, np.int64)
    used = place < len(processed)
    took[used] = processed[place[used]]
    return Refills(took, count, started, finished)
