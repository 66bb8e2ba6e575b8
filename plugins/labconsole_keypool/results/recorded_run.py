"""The stored samples of one run as arrays: requests that were signed, those that were dropped, queue, refills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.trial import Event, Origin, Samples, Series
from labconsole_keypool.series import DROPS, FAILURES, GENERATED, LIVE_REQUESTS, QUEUE, REFILLS, REQUESTS
from labconsole_keypool.service.keypool_parameters import KeypoolParameters

Table = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class RecordedRun:
    """Tables by column name, as in `labconsole_keypool.series`, each in the order of time; times in ns since T0.

    Live runs have the columns of `LIVE_REQUESTS`, `failures` and `generated`, simulated ones do not.
    """

    requests: Table
    drops: Table
    queue: Table
    refills: Table
    failures: Table
    generated: Table

    @cached_property
    def arrivals(self) -> NDArray[np.int64]:
        """When each request arrived, dropped and failed ones too: ns, ascending."""
        return np.sort(np.concatenate([table["received"] for table in (self.requests, self.drops, self.failures)]))

    @property
    def end_s(self) -> float:
        """When the last request had arrived and the last one was signed, s since T0."""
        return max(int(times.max(initial=0)) for times in (self.arrivals, self.requests["finished"])) / 1e9

    @property
    def latencies(self) -> NDArray[np.int64]:
        """From arrival until signed, ns, of each signed request in the order of `requests`."""
        return np.asarray(self.requests["finished"] - self.requests["received"])

    @property
    def waits(self) -> NDArray[np.int64]:
        """From arrival until a thread took it, ns, of each signed request in the order of `requests`."""
        return np.asarray(self.requests["started"] - self.requests["received"])


def load_recorded_run(parameters: KeypoolParameters, samples: Samples, events: Sequence[Event]) -> RecordedRun:
    """All series of the run; those without samples are empty. Times of an emulated device are in its own time."""
    begin_ns = next((event.data["begin_ns"] for event in events if event.name == "T0"), 0)
    if parameters.origin is Origin.SIMULATED:
        begin_ns = 0
    requests = REQUESTS if parameters.origin is Origin.SIMULATED else LIVE_REQUESTS

    def table(series: Series, order: str) -> Table:
        return _sorted(_in_device_time(_table(samples, series), series, begin_ns, parameters.speed), order)

    return RecordedRun(
        table(requests, "request"),
        table(DROPS, "request"),
        table(QUEUE, "t"),
        table(REFILLS, "started"),
        table(FAILURES, "request"),
        table(GENERATED, "stored"),
    )


def _table(samples: Samples, series: Series) -> Table:
    tables = [samples.table(series.name, role) for role in samples.roles(series.name)]
    return {
        column.name: np.concatenate([np.empty(0, column.dtype), *(table[column.name] for table in tables)])
        for column in series.columns
    }


def _in_device_time(table: Table, series: Series, begin_ns: int, speed: float) -> Table:
    if not begin_ns and speed == 1.0:
        return table
    times = {column.name for column in series.columns if column.unit == "ns"}
    return {
        name: np.rint((values - begin_ns) * speed).astype(np.int64) if name in times else values
        for name, values in table.items()
    }


def _sorted(table: Table, by: str) -> Table:
    order = np.argsort(table[by], kind="stable")
    return {name: values[order] for name, values in table.items()}
