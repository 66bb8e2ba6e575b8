"""The requests of a run as points of a scatter plot: latency at arrival, by where the key came from. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Curve
from labconsole.store.reader import Reader
from labconsole_keypool.results.curves import BELOW_ZERO, curves
from labconsole_keypool.results.recorded_run import Recorded, load
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.simulation.service_model import KeyOrigin

BEGIN_EVENT = "T0"
"""The event without which the times of samples mean nothing yet."""
START_EVENT = "pool"
"""The event that says how many new keys the store held before the run."""


Points = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class RunPoints:
    """`by_source`: arrival (s since T0) and latency (ms) of the signed requests; `dropped` the same, below zero."""

    run_id: int
    by_source: dict[KeyOrigin, Points]
    dropped: Points
    curves: tuple[Curve, ...] = ()
    """The run view's, of a run that has ended."""

    @property
    def requests(self) -> int:
        """How many there are."""
        return sum(len(x) for x, _ in self.by_source.values()) + len(self.dropped[0])


def load_points(database: Path, run_id: int, *, ended: bool) -> RunPoints:
    """What is stored of a run by now, with its curves once it has `ended`; nothing before T0. Raises StoreError."""
    with Reader(database) as reader:
        run = reader.run(run_id)
        if not any(event.name == BEGIN_EVENT for event in run.events):
            return RunPoints(run_id, {}, (np.empty(0), np.empty(0)))
        parameters = ServiceParameters.of_stored(run.row.parameters)
        samples = reader.samples(run_id)
        points = points_of(run_id, load(parameters, samples, run.events))
        return replace(points, curves=curves(parameters, samples, run.events)) if ended else points


def points_of(run_id: int, recorded: Recorded) -> RunPoints:
    """The points of recorded samples."""
    received_s, latencies_ms = recorded.requests["received"] / 1e9, recorded.latencies / 1e6
    sources = recorded.requests["key_source"]
    by_source: dict[KeyOrigin, Points] = {
        source: (received_s[chosen], latencies_ms[chosen])
        for source in KeyOrigin
        if source is not KeyOrigin.NONE and (chosen := sources == source).any()
    }
    dropped_s = recorded.drops["received"] / 1e9
    beneath = np.full(len(dropped_s), -BELOW_ZERO * float(latencies_ms.max(initial=1.0)))
    return RunPoints(run_id, by_source, (dropped_s, beneath))


def stored_at_start(database: Path, run_id: int) -> int | None:
    """How many new keys the store held before the run, as its event says; None before it does. Raises StoreError."""
    with Reader(database) as reader:
        events = reader.run(run_id).events
    return next((int(event.data["new"]) for event in events if event.name == START_EVENT), None)


def newest_run(database: Path, kind: str) -> int | None:
    """The newest run of this kind, if there is one. Raises StoreError."""
    with Reader(database) as reader:
        return next((row.id for row in reader.runs(metrics=(), limit=50) if row.kind == kind), None)
