"""Lines over time that explain a run's figures: latency, queue, arrivals, keys in the token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Curve, Event, Origin, Samples
from labconsole_keypool.choices import KeyOrigin, KeySource, Refill
from labconsole_keypool.results.recorded_run import RecordedRun, load_recorded_run
from labconsole_keypool.service.keypool_parameters import KeypoolParameters

_MOST_INTERVALS, _SHORTEST_S = 1000, 1.0
"""Of the arrival rate: shorter ones would show single requests."""
BELOW_ZERO = 0.05
"""Dropped requests have no latency: as in the source's Figs 4-4 and 4-5 they are drawn below zero, by this part of
the peak."""


def curves(parameters: KeypoolParameters, samples: Samples, events: Sequence[Event] = ()) -> tuple[Curve, ...]:
    """Latency of each request at its arrival, with dropped ones beneath zero; queue length; arrival rate; keys in the
    token; of a live run, those in the key store as well."""
    recorded = load_recorded_run(parameters, samples, events)
    if not len(recorded.arrivals):
        return ()
    lines = (*_latency(recorded), *_queue(recorded), *_arrivals(recorded))
    if parameters.keys is not KeySource.POOL:
        return lines
    return (*lines, *_keys(parameters, recorded), *_store(parameters, recorded, events))


def _latency(recorded: RecordedRun) -> Iterator[Curve]:
    latencies_ms = recorded.latencies / 1e6
    yield Curve("Latency", "Latency", "ms", recorded.requests["received"] / 1e9, latencies_ms)
    received_s = recorded.drops["received"] / 1e9
    if len(received_s):
        beneath = np.tile((-BELOW_ZERO * latencies_ms.max(initial=1.0), np.nan), len(received_s))
        yield Curve("Dropped", "Latency", "ms", np.repeat(received_s, 2), beneath)


def _queue(recorded: RecordedRun) -> Iterator[Curve]:
    lengths = recorded.queue["length"].astype(np.float64)
    yield Curve(
        "Waiting", "Queue length", "requests", *_stairs(recorded.queue["t"] / 1e9, lengths, 0.0, recorded.end_s)
    )


def _arrivals(recorded: RecordedRun) -> Iterator[Curve]:
    end_s = float(recorded.arrivals[-1]) / 1e9
    if end_s > 0:
        intervals = min(_MOST_INTERVALS, max(1, int(end_s / _SHORTEST_S)))
        counts, edges = np.histogram(recorded.arrivals / 1e9, intervals, (0.0, end_s))
        yield Curve("Arrivals", "Arrival rate", "requests/s", edges[:-1] + edges[1] / 2, counts / edges[1])


def _keys(parameters: KeypoolParameters, recorded: RecordedRun) -> Iterator[Curve]:
    """Keys in RAM and store: what was there at T0, less those taken, and those unwrapped."""
    taken = recorded.requests["got_key"][recorded.requests["key_source"] != KeyOrigin.GENERATED]
    unwrapped = _unwrapped(recorded, one_by_one=parameters.refill is Refill.PARALLEL)
    times = np.concatenate((unwrapped, taken))
    changes = np.concatenate((np.ones(len(unwrapped)), np.full(len(taken), -1.0)))
    order = np.argsort(times, kind="stable")
    begin = float(_keys_at_start(parameters, recorded))
    keys = begin + np.cumsum(changes[order])
    yield Curve("Keys", "Keys in the token", "keys", *_stairs(times[order] / 1e9, keys, begin, recorded.end_s))


def _keys_at_start(parameters: KeypoolParameters, recorded: RecordedRun) -> int:
    """Keys in the token at T0; in a live run those that were really loaded before."""
    if parameters.origin is Origin.SIMULATED:
        return parameters.keys_at_start + parameters.store_keys
    return int(recorded.refills["keys"][recorded.refills["finished"] <= 0].sum())


def _store(parameters: KeypoolParameters, recorded: RecordedRun, events: Sequence[Event]) -> Iterator[Curve]:
    """New keys in the key store of a live run: what was there when it began, those stored, less those claimed."""
    begin = next((event.data["new"] for event in events if event.name == "pool"), None)
    if begin is None:
        return
    claimed, stored = recorded.refills, recorded.generated["stored"]
    times = np.concatenate((stored, claimed["started"]))
    changes = np.concatenate((np.ones(len(stored)), -claimed["keys"].astype(np.float64)))
    order = np.argsort(times, kind="stable")
    keys = begin + np.cumsum(changes[order])
    before = int(np.searchsorted(times[order], 0, "right"))
    at_t0 = keys[before - 1] if before else float(begin)
    yield Curve(
        "In the key store",
        "Keys in the key store",
        "keys",
        *_stairs(times[order][before:] / 1e9, keys[before:], at_t0, recorded.end_s),
    )


def _unwrapped(recorded: RecordedRun, *, one_by_one: bool) -> NDArray[np.float64]:
    """Times from which the keys of all refills could be used, ns: `one_by_one` as unwrapped, or with the batch."""
    table = {name: values[recorded.refills["finished"] > 0] for name, values in recorded.refills.items()}
    batches = zip(table["started"].tolist(), table["finished"].tolist(), table["keys"].tolist(), strict=True)
    parts = [
        np.linspace(started if one_by_one else finished, finished, keys + 1)[1:] for started, finished, keys in batches
    ]
    return np.concatenate(parts) if parts else np.empty(0)


def _stairs(
    t_s: NDArray[np.float64], values: NDArray[np.float64], before: float, end_s: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A line that keeps `before` from 0 on, and each of `values` from its time until the next, the last to the end."""
    levels = np.concatenate(([before], values))
    borders = np.concatenate((np.repeat(t_s, 2), [max([end_s, *t_s[-1:]])]))
    return np.concatenate(([0.0], borders)), np.repeat(levels, 2)
