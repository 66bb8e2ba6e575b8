"""Distributions of runs: ECDF and percentile plot, each cut down to what a plot can show, exactly on the sorted values.

Samples of several runs may be pooled. That is for looking at a distribution, never for judging a difference: samples of
one run depend on each other, and the run is the unit of comparison (`labconsole.analysis.comparison`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labconsole.analysis.caveats import ENOUGH_BEYOND
from labconsole.analysis.run_curves import open_run, trial_errors_as_user_errors
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Distribution
from labconsole.store.reader import Reader

POINTS = 2_000
"""Points of a line at most: about one for each pixel across a large screen."""

LAST_PERCENTILE = 0.999
"""Where the percentile plot ends."""

_ROUNDING = 1e-12

Array = NDArray[np.float64]
Line = tuple[Array, Array]
"""x and y, of equal length."""


def ecdf(values: ArrayLike, points: int = POINTS) -> Line:
    """The empirical distribution function: x in the unit of `values`, and the share (0 to 1) of them that is x or less.

    All its steps, or `points` of them at most: half evenly over the shares, the others ever more closely towards both
    ends, where the smallest and the largest value are. Empty without values. Raises ValueError for under 8 points.
    """
    if points < 8:
        raise ValueError(f"{points} points make no line: give 8 or more")
    ordered = _ascending(values)
    count = len(ordered)
    ranks = np.arange(count)
    if count > points:
        towards_end = np.geomspace(1, count, points // 4).astype(np.int64) - 1
        evenly = np.linspace(0, count - 1, points - 2 * len(towards_end)).astype(np.int64)
        ranks = np.unique(np.concatenate((evenly, towards_end, count - 1 - towards_end)))
    # Of equal values it is the last one that has them all below it.
    upto = np.unique(np.searchsorted(ordered, ordered[ranks], side="right"))
    return ordered[upto - 1], upto / max(count, 1)


def percentile_curve(values: ArrayLike, points: int = POINTS) -> Line:
    """Fractions q up to `LAST_PERCENTILE`, and the smallest value that a share q of all is equal to or less.

    The fractions are in equal steps of log(1 / (1 - q)), the axis that has p90, p99 and p99.9 equally far apart. Each
    value is the percentile as the console's metrics have it (`numpy.quantile`, `inverted_cdf`). The line ends sooner
    where fewer than `ENOUGH_BEYOND` values would be beyond: it is empty up to as many values.
    """
    ordered = _ascending(values)
    count = len(ordered)
    if count <= ENOUGH_BEYOND:
        return np.empty(0), np.empty(0)
    beyond = np.geomspace(1, max(1 - LAST_PERCENTILE, ENOUGH_BEYOND / count), points)
    # Of a whole number of values beyond, rounding errors must not take one away.
    ranks = count - np.floor(beyond * count * (1 + _ROUNDING)).astype(np.int64) - 1
    return 1 - beyond, ordered[np.maximum(ranks, 0)]


def _ascending(values: ArrayLike) -> Array:
    """The values sorted; sorted ones are only checked."""
    array = np.asarray(values, np.float64)
    return array if np.all(array[1:] >= array[:-1]) else np.sort(array)


def load_distributions(reader: Reader, run_ids: Sequence[int], plugins: Plugins) -> tuple[Distribution, ...]:
    """The distributions that the trial compares, of these runs pooled: one distribution for each title and unit.

    Empty for runs without samples, or whose trial is not installed. Raises UserError for a run that is not there, is
    damaged, or does not fit the installed trial.
    """
    found: dict[tuple[str, str], list[Array]] = {}
    for run_id in run_ids:
        run = open_run(reader, run_id, plugins)
        if run.trial is None or not run.sampled:
            continue
        with trial_errors_as_user_errors(run_id):
            for one in run.trial.distributions(run.parameters(run.trial), run.samples, run.detail.events):
                found.setdefault((one.title, one.unit), []).append(one.values)
    return tuple(Distribution(title, unit, np.concatenate(parts)) for (title, unit), parts in found.items())
