"""The planner's peak, simulated with a key pool and without, and the figures that are read off it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.number_format import format_duration, format_number
from labconsole_keypool.choices import ArrivalPattern, KeySource, Refill
from labconsole_keypool.planning.planner_parameters import Cell, PlannedService
from labconsole_keypool.service.arrivals import arrivals_ns
from labconsole_keypool.simulation.service_model import ServiceModel
from labconsole_keypool.simulation.simulator import Simulation

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
    """Each figure as a cell, of the peak as the device meets it: so many keys in the token as fit, further ones
    unwrapped from the pool outside meanwhile, and the queue with its limit.

    A peak of more than `MOST_SIMULATED` requests is not simulated, and the cell notes it.
    """

    def __init__(self, service: PlannedService) -> None:
        self._service = service
        self._peak = cache(self._simulated_peak)
        self._many = service.requests > MOST_SIMULATED
        self._said = f"{service.requests:,} requests at {format_number(service.rate)}/s"

    def rate(self, keys: KeySource, expected: float) -> Cell:
        """Signed in a second of an overload, twice the `expected` rate, with every key in the token."""
        arrivals = _constant(_OVERLOAD * expected, _OVERLOADED)
        peak = _simulated(arrivals, self._model(keys, in_token=_OVERLOADED))
        note = f"{_OVERLOADED:,} requests at {format_number(_OVERLOAD * expected)}/s"
        return Cell(len(arrivals) * 1e9 / int(peak.finished.max()), note)

    def queue(self, keys: KeySource) -> Cell:
        """Requests that wait just after the last arrival."""
        return self._of_peak(keys, lambda peak: int(np.count_nonzero(peak.started > peak.received[-1])))

    def latency(self, keys: KeySource) -> Cell:
        """The largest latency of the peak, ms."""
        return self._of_peak(keys, lambda peak: int((peak.finished - peak.received)[~peak.dropped].max()) / 1e6)

    def dropped(self, keys: KeySource) -> Cell:
        """Requests that find the queue full."""
        return self._of_peak(keys, lambda peak: int(np.count_nonzero(peak.dropped)))

    def first_drop(self) -> Cell:
        """When the first request is dropped, s from the beginning of the peak."""
        if not self._service.queue_limit:
            return Cell(None, "the queue has no limit")
        return self._first(lambda peak: peak.dropped, "dropped")

    def keys_last(self) -> Cell:
        """When the first request waits for a key to be unwrapped, s; keys are loaded from the beginning on."""
        return self._first(_without_key, "without a key")

    def _of_peak(self, keys: KeySource, figure: Callable[[_Peak], float]) -> Cell:
        if self._many:
            return self._too_many()
        peak = self._peak(keys)
        waiting = np.flatnonzero(_without_key(peak))
        if keys is not KeySource.POOL or not len(waiting):
            return Cell(float(figure(peak)), self._said)
        lasted = format_duration(int(peak.received[int(waiting[0])]) / 1e9)
        note = f"{self._said}; the token's keys last for {lasted}, then requests wait for keys to be unwrapped"
        return Cell(float(figure(peak)), note)

    def _first(self, chosen: Callable[[_Peak], NDArray[np.bool_]], what: str) -> Cell:
        if self._many:
            return self._too_many()
        peak = self._peak(KeySource.POOL)
        numbers = np.flatnonzero(chosen(peak))
        if not len(numbers):
            return Cell(None, f"none is {what} of {self._said}")
        first = int(numbers[0])
        return Cell(int(peak.received[first]) / 1e9, f"request {first + 1:,} is the first {what}")

    def _too_many(self) -> Cell:
        return Cell(None, f"more than {MOST_SIMULATED:,} requests are not simulated: take a shorter peak")

    def _simulated_peak(self, keys: KeySource) -> _Peak:
        arrivals = _constant(self._service.rate, self._service.requests)
        model = self._model(keys, in_token=self._service.keys_in_token)
        return _simulated(arrivals, model, self._service.queue_limit)

    def _model(self, keys: KeySource, in_token: int) -> ServiceModel:
        """The pool outside is never empty; the number of keys that this needs is a separate figure."""
        service = self._service
        return ServiceModel(
            sign_ms=service.sign_ms,
            key_generation_ms=service.generation_ms,
            unwrap_ms=service.unwrap_ms,
            keys=keys,
            keys_at_start=in_token,
            pool_keys=service.requests + _OVERLOADED,
            batch=1,
            low_water=in_token,
            refill=Refill.PARALLEL,
            threads=service.threads,
            generators=service.at_a_time,
        )


def _without_key(peak: _Peak) -> NDArray[np.bool_]:
    return np.asarray(peak.got_key > peak.started)


def _simulated(arrivals: NDArray[np.int64], model: ServiceModel, queue_limit: int = 0) -> _Peak:
    """Part by part: numpy keeps the interpreter to itself while it makes an array of a list, and a window waits."""
    simulation = Simulation(model, queue_limit=queue_limit)
    parts = [simulation.follow(arrivals[begin : begin + _PART]) for begin in range(0, len(arrivals), _PART)]
    return _Peak(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(_Peak)))


def _constant(rate: float, requests: int) -> NDArray[np.int64]:
    return arrivals_ns(ArrivalPattern.CONSTANT, requests=requests, rate=rate, seed=0)
