"""What plots of a run show, cut down to what a screen can: curves over time, ECDFs and percentiles; also as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.distributions import ecdf, percentile_curve
from labconsole.analysis.run_curves import load_curves, open_run, thinned, trial_errors_as_user_errors
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Curve
from labconsole.store.reader import Reader

Array = NDArray[np.float64]
PERCENTILE_POINTS = 400
CURVE_POINTS = 4_000
"""Points of a curve of a large run at most, which is zoomed into without its samples."""


class Plots(StrEnum):
    """Kinds of plots of a run."""

    CURVES = "curves"
    DISTRIBUTIONS = "distributions"


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


def plotted_distribution(title: str, unit: str, observed: Array) -> PlottedDistribution:
    """ECDF and percentiles of `observed` (in any order, at least one)."""
    ascending = np.sort(observed)
    values, shares = ecdf(ascending)
    return PlottedDistribution(title, unit, values, shares * 100.0, *percentile_curve(ascending, PERCENTILE_POINTS))


def load_distributions_of(reader: Reader, run_id: int, plugins: Plugins) -> tuple[PlottedDistribution, ...]:
    """The distributions of a run; none where its trial names none or is not installed. Raises UserError."""
    run = open_run(reader, run_id, plugins)
    if run.trial is None or not run.sampled:
        return ()
    with trial_errors_as_user_errors(run_id):
        found = run.trial.distributions(run.parameters(run.trial), run.samples, run.detail.events)
    return tuple(plotted_distribution(one.title, one.unit, one.values) for one in found if len(one.values))


def plot_data(reader: Reader, run_id: int, plugins: Plugins, plots: Plots) -> list[dict[str, Any]]:
    """The curves (at most `CURVE_POINTS` points each) or distributions of a run as plain JSON. Raises UserError."""
    if plots is Plots.DISTRIBUTIONS:
        return [_to_json(one) for one in load_distributions_of(reader, run_id, plugins)]
    return [_to_json(_shortened(curve)) for curve in load_curves(reader, run_id, plugins)]


def curves_from_json(data: Sequence[Mapping[str, Any]]) -> tuple[Curve, ...]:
    """The inverse of `plot_data` for curves."""
    return tuple(_from_json(Curve, one) for one in data)


def distributions_from_json(data: Sequence[Mapping[str, Any]]) -> tuple[PlottedDistribution, ...]:
    """The inverse of `plot_data` for distributions."""
    return tuple(_from_json(PlottedDistribution, one) for one in data)


def _shortened(curve: Curve) -> Curve:
    t_s, values = thinned(curve.t_s, curve.values, CURVE_POINTS)
    return replace(curve, t_s=t_s, values=values)


_Data = TypeVar("_Data", Curve, PlottedDistribution)


def _to_json(one: Curve | PlottedDistribution) -> dict[str, Any]:
    values = {field.name: getattr(one, field.name) for field in fields(one)}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def _from_json(cls: type[_Data], data: Mapping[str, Any]) -> _Data:
    values: dict[str, Any] = {name: np.array(one) if isinstance(one, list) else one for name, one in data.items()}
    return cls(**values)
