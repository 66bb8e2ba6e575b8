"""Data of plots, read from samples once: curves over time, ECDFs and percentiles. No widgets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.distributions import ecdf, percentile_curve
from labconsole.analysis.run_curves import load_curves, open_run
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Curve
from labconsole.store.reader import Reader


class ReusedReader:
    """Opens the database at the first use and keeps it open, which saves 10 ms a run.

    To be used by one thread at a time.
    """

    def __init__(self, factory: Callable[[], Reader]) -> None:
        self._factory = factory
        self._reader: Reader | None = None

    def opened(self) -> Reader:
        """The reader. Raises StoreError."""
        if self._reader is None:
            self._reader = self._factory()
        return self._reader

    def release(self) -> None:
        """Close the database; the next read opens it again."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


Array = NDArray[np.float64]
PERCENTILE_POINTS = 400


@dataclass(frozen=True)
class PlottedDistribution:
    """Observations of one kind in a run: rising `values` in `unit`, and the part (%) up to each.

    `quantiles` are the values at percentiles (`fractions`) with at least `ENOUGH_BEYOND` samples beyond them.
    """

    title: str
    unit: str
    values: Array
    parts: Array
    fractions: Array
    quantiles: Array


class RunSamples:
    """Reads the data of plots, each run once. To be used by one thread at a time."""

    def __init__(self, reader: ReusedReader, plugins: Plugins) -> None:
        self._reader = reader
        self._plugins = plugins
        self._curves: dict[int, tuple[Curve, ...]] = {}
        self._distributions: dict[int, tuple[PlottedDistribution, ...]] = {}

    def curves(self, run_id: int) -> tuple[Curve, ...]:
        """The lines of a run over time. Raises UserError."""
        if run_id not in self._curves:
            self._curves[run_id] = load_curves(self._reader.opened(), run_id, self._plugins)
        return self._curves[run_id]

    def distributions(self, run_id: int) -> tuple[PlottedDistribution, ...]:
        """The distributions of a run; none where its trial names none or is not installed. Raises UserError."""
        if run_id not in self._distributions:
            self._distributions[run_id] = self._read_distributions(run_id)
        return self._distributions[run_id]

    def release(self) -> None:
        """Close the database; the next run opens it again."""
        self._reader.release()

    def _read_distributions(self, run_id: int) -> tuple[PlottedDistribution, ...]:
        run = open_run(self._reader.opened(), run_id, self._plugins)
        if run.trial is None or not run.sampled:
            return ()
        found = run.trial.distributions(run.parameters(run.trial), run.samples, run.detail.events)
        return tuple(plotted_distribution(one.title, one.unit, one.values) for one in found if len(one.values))


def plotted_distribution(title: str, unit: str, observed: Array) -> PlottedDistribution:
    """ECDF and percentiles of `observed` (in any order, at least one)."""
    ascending = np.sort(observed)
    values, shares = ecdf(ascending)
    return PlottedDistribution(title, unit, values, shares * 100.0, *percentile_curve(ascending, PERCENTILE_POINTS))
