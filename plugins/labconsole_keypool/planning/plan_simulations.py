"""The planner's peak, simulated with keys in the token and without, and the figures that are read off it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.figures import format_number
from labconsole_keypool.arrivals import arrivals_ns
from labconsole_keypool.choices import ArrivalPattern, KeySource, Refill
from labconsole_keypool.planning.plan_cell import Cell
from labconsole_keypool.planning.planned_service import PlannedService
from labconsole_keypool.simulation.service_model import ServiceModel
from labconsole_keypool.simulation.simulation import Simulation

MOST_SIMULATED = 500_000
"""Requests of a peak that is simulated: about a second of computing for each figure."""

_PART = 10_000
"""Requests simulated at a time."""

_OVERLOAD, _OVERLOADED = 2.0, 3000
"""Times what the service can sign, and for how many requests: what is signed of it is all that the service can."""


@dataclass(frozen=True)
class _Peak:
    """Columns of `Outcome`."""

    received: NDArray[np.int64]
    started: NDArray[np.int64]
    got_key: NDArray[np.int64]
    finished: NDArray[np.int64]
    dropped: NDArray[np.bool_]


class PlanSimulations:
    """Each figure as a cell; a peak of more than `MOST_SIMULATED` requests is not simulated, and the cell says so."""

    def __init__(self, service: PlannedService) -> None:
        self._service = service
        self._enough = service.requests + _OVERLOADED
        self._peak = cache(self._simulated_peak)
        self._many = service.requests > MOST_SIMULATED
        self._said = f"{service.requests:,} requests at {format_number(service.rate)}/s"

    def rate(self, keys: KeySource, expected: float) -> Cell:
        """Signed in a second of an overload, twice the `expected` rate."""
        arrivals = _constant(_OVERLOAD * expected, _OVERLOADED)
        peak = _simulated(arrivals, self._model(keys))
        note = f"{_OVERLOADED:,} requests at {format_number(_OVERLOAD * expected)}/s"
        return Cell(len(arrivals) * 1e9 / int(peak.finished.max()), note)

    def queue(self, keys: KeySource) -> Cell:
        """Requests that wait just after the last arrival."""
        if self._many:
            return self._too_many()
        peak = self._peak(keys, 0)
        return Cell(float(np.count_nonzero(peak.started > peak.received[-1])), self._said)

    def latency(self, keys: KeySource) -> Cell:
        """The largest latency of the peak, ms."""
        if self._many:
            return self._too_many()
        peak = self._peak(keys, 0)
        return Cell(int((peak.finished - peak.received).max()) / 1e6, self._said)

    def first_drop(self) -> Cell:
        """When the first request is dropped, s from the beginning of the peak."""
        if not self._service.queue_limit:
            return Cell(None, "the queue has no limit")
        if self._many:
            return self._too_many()
        peak = self._peak(KeySource.POOL, self._service.queue_limit)
        return self._first(peak, peak.dropped, "dropped")

    def keys_last(self) -> Cell:
        """When the first request waits for a key to be unwrapped, s; keys are loaded from the beginning on."""
        if self._many:
            return self._too_many()
        keys = self._service.keys_in_token
        model = self._model(KeySource.POOL, in_token=keys, outside=self._enough)
        peak = _simulated(_constant(self._service.rate, self._service.requests), model)
        return self._first(peak, peak.got_key > peak.started, "without a key")

    def _first(self, peak: _Peak, chosen: NDArray[np.bool_], what: str) -> Cell:
        numbers = np.flatnonzero(chosen)
        if not len(numbers):
            return Cell(None, f"none is {what} of {self._said}")
        first = int(numbers[0])
        return Cell(int(peak.received[first]) / 1e9, f"request {first + 1:,} is the first {what}")

    def _too_many(self) -> Cell:
        return Cell(None, f"more than {MOST_SIMULATED:,} requests are not simulated: take a shorter peak")

    def _simulated_peak(self, keys: KeySource, queue_limit: int) -> _Peak:
        arrivals = _constant(self._service.rate, self._service.requests)
        return _simulated(arrivals, self._model(keys), queue_limit)

    def _model(self, keys: KeySource, in_token: int | None = None, outside: int = 0) -> ServiceModel:
        service = self._service
        keys_at_start = self._enough if in_token is None else in_token
        return ServiceModel(
            sign_ms=service.sign_ms,
            key_generation_ms=service.generation_ms,
            unwrap_ms=service.unwrap_ms,
            keys=keys,
            keys_at_start=keys_at_start,
            pool_keys=outside,
            batch=1,
            low_water=keys_at_start,
            refill=Refill.PARALLEL,
            threads=service.threads,
            generators=service.at_a_time,
        )


def _simulated(arrivals: NDArray[np.int64], model: ServiceModel, queue_limit: int = 0) -> _Peak:
    """Part by part: numpy keeps the interpreter to itself while it makes an array of a list, and a window waits."""
    simulation = Simulation(model, queue_limit=queue_limit)
    parts = [simulation.follow(arrivals[begin : begin + _PART]) for begin in range(0, len(arrivals), _PART)]
    return _Peak(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(_Peak)))


def _constant(rate: float, requests: int) -> NDArray[np.int64]:
    return arrivals_ns(ArrivalPattern.CONSTANT, requests=requests, rate=rate, seed=0)
