"""The stored samples of one run as arrays: requests that were signed, those that were dropped, queue, refills."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.trial import Samples, Series
from labconsole_keypool.samples import DROPS, QUEUE, REFILLS, REQUESTS

Table = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Recorded:
    """Tables by column name, as in `labconsole_keypool.samples`, each in the order of time; times in ns since T0."""

    requests: Table
    drops: Table
    queue: Table
    refills: Table

    @cached_property
    def arrivals(self) -> NDArray[np.int64]:
        """When each request arrived, dropped ones too: ns, ascending."""
        return np.sort(np.concatenate((self.requests["received"], self.drops["received"])))

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


def load(samples: Samples) -> Recorded:
    """Read all series; those that nobody recorded are empty."""
    return Recorded(*(_table(samples, series) for series in (REQUESTS, DROPS, QUEUE, REFILLS)))


def _table(samples: Samples, series: Series) -> Table:
    tables = [samples.table(series.name, role) for role in samples.roles(series.name)]
    return {
        column.name: np.concatenate([np.empty(0, column.dtype), *(table[column.name] for table in tables)])
        for column in series.columns
    }
