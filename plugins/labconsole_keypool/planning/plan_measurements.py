"""The measured column of a plan: the run in the database that is nearest to the planned peak, with its origin."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from labconsole.analysis.number_format import format_number
from labconsole.store.records import RunRow, RunStatus
from labconsole_keypool.choices import LABELS, ArrivalPattern, KeySource
from labconsole_keypool.planning.planner_parameters import Cell, PlannedService

LIVE_KIND = "keypool.signing-service"
"""The trial whose runs are measurements: a simulated run measures nothing."""

METRICS = ("throughput", "queue_length", "latency_peak", "dropped", "first_dropped")
"""The metrics that are read of each run."""

_NEAR = 1.25
"""A run is near if its rate and its number of requests are at most this factor from the peak's."""
_OVERLOAD = 1.1
"""Times the base rate from which on a run signs all that the service can."""


class PlanMeasurements:
    """Each figure as a cell: of finished runs of constant rate, of the same timing profile and as many threads."""

    def __init__(self, service: PlannedService, runs: Sequence[RunRow]) -> None:
        self._service = service
        self._runs = [
            run
            for run in runs
            if run.kind == LIVE_KIND
            and run.status is RunStatus.FINISHED
            and run.parameters.get("arrivals") == ArrivalPattern.CONSTANT
            and run.parameters.get("timing") == service.timing
            and (service.sign is None or run.parameters.get("sign") == service.sign)
            and run.parameters.get("threads") == service.threads
            and not run.parameters.get("tail_requests")
        ]
        self._limit = service.queue_limit
        threads = "1 thread" if service.threads == 1 else f"{service.threads} threads"
        device = f"{service.timing} ({service.sign})" if service.timing else "a real token's times"
        self._service_said = f"with {device}, {threads}"

    def rate(self, keys: KeySource, expected: float) -> Cell:
        """Throughput of the run that asked for most of what is more than the `expected` rate."""
        overloaded = [run for run in self._of(keys, "throughput") if _rate(run) >= _OVERLOAD * expected]
        if not overloaded:
            least = format_number(round(_OVERLOAD * expected, 3))
            return Cell(None, f"no run {_keys(keys)} at {least}/s or more {self._service_said}")
        run = max(overloaded, key=lambda run: (int(run.parameters["requests"]), run.id))
        return self._cell(run, "throughput", run.metrics["throughput"].value)

    def at_peak(self, keys: KeySource, metric: str) -> Cell:
        """A metric of the nearest run, in the metric's unit."""
        run = self._nearest(run for run in self._of(keys, metric) if self._same_limit(run))
        if run is None:
            return self._no_run(keys)
        return self._cell(run, metric, run.metrics[metric].value)

    def first_drop(self) -> Cell:
        """When the nearest run with this queue limit dropped its first request, s."""
        if not self._limit:
            return Cell(None, "the queue has no limit")
        run = self._nearest(run for run in self._of(KeySource.POOL, "dropped") if self._same_limit(run))
        if run is None:
            return self._no_run(KeySource.POOL)
        if "first_dropped" not in run.metrics:
            return Cell(None, f"none was dropped in {_said(run)}", run.metrics["dropped"].origin)
        return self._cell(run, "first_dropped", (run.metrics["first_dropped"].value - 1) / _rate(run))

    def _of(self, keys: KeySource, metric: str) -> Iterator[RunRow]:
        return (run for run in self._runs if run.parameters.get("keys") == keys and metric in run.metrics)

    def _same_limit(self, run: RunRow) -> bool:
        return int(run.parameters.get("queue_limit") or 0) == self._limit

    def _nearest(self, runs: Iterator[RunRow]) -> RunRow | None:
        """The run whose rate and length fit best; of equals the newest."""
        distances = [(self._distance(run), -run.id, run) for run in runs]
        near = [entry for entry in distances if entry[0] <= math.log(_NEAR)]
        return min(near, key=lambda entry: entry[:2])[2] if near else None

    def _distance(self, run: RunRow) -> float:
        service = self._service
        requests = int(run.parameters["requests"])
        return max(abs(math.log(_rate(run) / service.rate)), abs(math.log(requests / service.requests)))

    def _no_run(self, keys: KeySource) -> Cell:
        service = self._service
        limit = f"queue limit {self._limit:,}" if self._limit else "no queue limit"
        peak = f"{service.requests:,} requests at {format_number(service.rate)}/s"
        return Cell(None, f"no run {_keys(keys)} near {peak} {self._service_said}, {limit}")

    @staticmethod
    def _cell(run: RunRow, metric: str, value: float) -> Cell:
        return Cell(value, _said(run), run.metrics[metric].origin)


def _rate(run: RunRow) -> float:
    return float(run.parameters["rate"]) * float(run.parameters.get("time_scale", 1.0))


def _keys(keys: KeySource) -> str:
    return "with a pool" if keys is KeySource.POOL else "without a pool"


def _said(run: RunRow) -> str:
    """The run in words; with the kind of its keys where they were times of a real token."""
    text = f"run {run.id}: {int(run.parameters['requests']):,} requests at {format_number(_rate(run))}/s"
    if run.parameters.get("timing"):
        return text
    kind, *_ = LABELS["key_kind"][run.parameters["key_kind"]].partition(":")
    return f"{text}, {kind} keys"
