"""The lines of a run over time, from its stored samples: those of its trial, then CPU and memory of each process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from labconsole.errors import UserError
from labconsole.model.parameters import Parameters
from labconsole.model.plugin import Plugins
from labconsole.model.series import RESOURCES, SURROUNDINGS, Event, Origin
from labconsole.model.trial import Curve, Samples, Trial
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail
from labconsole.store.samples import StoredSamples


@dataclass(frozen=True)
class StoredRun:
    """A run's record, its samples, and its trial (None if that is not installed here)."""

    detail: RunDetail
    samples: StoredSamples
    trial: Trial[Any] | None

    @property
    def sampled(self) -> bool:
        """Whether the trial's own roles recorded any series."""
        return any(series.name not in SURROUNDINGS for series in self.detail.series)

    @property
    def virtual(self) -> bool:
        """Whether the trial's own series are simulated: their times are of a virtual clock."""
        return any(series.origin == Origin.SIMULATED for series in self.detail.series)

    def parameters(self, trial: Trial[Any]) -> Parameters:
        """The run's parameters as the model of its trial. Raises UserError where they do not fit."""
        row = self.detail.row
        try:
            return trial.parameters.of_stored(row.parameters)
        except ValidationError as error:
            raise UserError(
                f"Run {row.id} cannot be drawn: its parameters do not fit the installed version of the trial "
                f"({error.error_count()} differences)."
            ) from error


@contextmanager
def trial_errors_as_user_errors(run_id: int) -> Iterator[None]:
    """Turn any error of a trial into a UserError: samples and events of a bundle may be of another version of it."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # foreign code on foreign data
        what = f"{type(error).__name__}: {error}"
        raise UserError(
            f"Run {run_id} cannot be drawn: its samples are not what its trial expects ({what})."
        ) from error


def open_run(reader: Reader, run_id: int, plugins: Plugins) -> StoredRun:
    """A run with its record and trial; its samples are read on demand. Raises StoreError if it is not there."""
    detail = reader.run(run_id)
    return StoredRun(detail, reader.samples(run_id), plugins.installed(detail.row.kind))


def load_curves(reader: Reader, run_id: int, plugins: Plugins) -> tuple[Curve, ...]:
    """The trial's curves, then CPU and memory of each process. Raises UserError."""
    run = open_run(reader, run_id, plugins)
    with trial_errors_as_user_errors(run_id):
        resources = resource_curves(run.samples, zero_ns(run.detail.events, run.samples))
        if run.trial is None or not run.sampled:
            return resources
        curves = run.trial.curves(run.parameters(run.trial), run.samples, run.detail.events)
        return (*(replace(curve, virtual=run.virtual) for curve in curves), *resources)


def zero_ns(events: Sequence[Event], samples: Samples) -> int:
    """T0 on the run's clock: as the trial's event `T0` has it, otherwise the first reading or event."""
    for event in events:
        if event.name == "T0":
            begin = event.data.get("begin_ns")
            return begin if isinstance(begin, int) else event.t_ns
    readings = [samples.table(RESOURCES.name, role)["t_ns"] for role in samples.roles(RESOURCES.name)]
    firsts = [int(times[0]) for times in readings if len(times)] + [event.t_ns for event in events]
    return min(firsts, default=0)


def resource_curves(samples: Samples, begin_ns: int) -> tuple[Curve, ...]:
    """CPU and memory of each process over time.

    Readings without memory are left out: those of a process that had exited, but was not yet waited for.
    """
    cpu, memory = [], []
    for role in samples.roles(RESOURCES.name):
        table = samples.table(RESOURCES.name, role)
        alive = table["rss"] > 0
        t_s = (table["t_ns"][alive] - begin_ns) / 1e9
        cpu.append(Curve(role, "CPU, 100 % = one core", "%", t_s, table["cpu"][alive].astype(float)))
        memory.append(Curve(role, "Resident memory", "B", t_s, table["rss"][alive].astype(float)))
    return (*cpu, *memory)


def thinned(
    x: NDArray[np.float64], y: NDArray[np.float64], most: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """About `most` points at most: smallest and largest of each of half as many stretches, in their order."""
    if len(x) <= most:
        return x, y
    keep: set[int] = {0, len(x) - 1}
    for part in np.array_split(np.arange(len(x)), most // 2):
        keep |= {int(part[np.argmin(y[part])]), int(part[np.argmax(y[part])])}
    order = sorted(keep)
    return x[order], y[order]
