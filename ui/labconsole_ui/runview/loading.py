"""What a run view shows, read from the store: the run's record, and the curves from its samples. No widgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from labconsole.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail
from labconsole.trial import Curve, Event, Samples, Trial, TrialError

RESOURCES = "resources"


@dataclass(frozen=True)
class LoadedRun:
    """A run, its trial (None if that is not installed here), and T0 on the run's clock."""

    detail: RunDetail
    trial: Trial[Any] | None
    begin_ns: int


def load_run(reader_factory: Callable[[], Reader], run_id: int, plugins: Plugins) -> LoadedRun:
    """Everything of a run but its samples. Raises StoreError."""
    with reader_factory() as reader:
        detail = reader.run(run_id)
        begin_ns = zero_ns(detail.events, reader.samples(run_id))
    try:
        return LoadedRun(detail, plugins.trial(detail.row.kind), begin_ns)
    except KeyError:
        return LoadedRun(detail, None, begin_ns)


def load_curves(reader_factory: Callable[[], Reader], loaded: LoadedRun) -> tuple[Curve, ...]:
    """The trial's curves, then CPU and memory of each process. Raises TrialError."""
    detail = loaded.detail
    with reader_factory() as reader:
        samples = reader.samples(detail.row.id)
        curves = _trial_curves(loaded, samples)
        return curves + resource_curves(samples, loaded.begin_ns)


def _trial_curves(loaded: LoadedRun, samples: Samples) -> tuple[Curve, ...]:
    if loaded.trial is None or not any(series.name != RESOURCES for series in loaded.detail.series):
        return ()
    try:
        parameters = loaded.trial.parameters.model_validate(dict(loaded.detail.row.parameters))
    except ValidationError as error:
        raise TrialError(
            "These plots cannot be drawn: the run's parameters do not fit the installed version of the trial "
            f"({error.error_count()} differences)."
        ) from error
    return loaded.trial.curves(parameters, samples, loaded.detail.events)


def zero_ns(events: Sequence[Event], samples: Samples) -> int:
    """T0 on the run's clock: as the trial's event `T0` has it, otherwise the first reading or event."""
    for event in events:
        if event.name == "T0":
            return int(event.data.get("begin_ns", event.t_ns))
    readings = [samples.table(RESOURCES, role)["t_ns"] for role in samples.roles(RESOURCES)]
    firsts = [int(times[0]) for times in readings if len(times)] + [event.t_ns for event in events]
    return min(firsts, default=0)


def resource_curves(samples: Samples, begin_ns: int) -> tuple[Curve, ...]:
    """CPU and memory of each process over time."""
    cpu, memory = [], []
    for role in samples.roles(RESOURCES):
        table = samples.table(RESOURCES, role)
        t_s = (table["t_ns"] - begin_ns) / 1e9
        cpu.append(Curve(role, "CPU, 100 % = one core", "%", t_s, table["cpu"].astype(float)))
        memory.append(Curve(role, "Resident memory", "B", t_s, table["rss"].astype(float)))
    return (*cpu, *memory)
