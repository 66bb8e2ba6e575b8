"""The lines of a run over time, from its stored samples: those of its trial, then CPU and memory of each process."""

from __future__ import annotations

from collections.abc import Sequence

from labconsole.analysis.stored_run import RESOURCES, drawing, open_run
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Curve, Event, Samples
from labconsole.store.reader import Reader


def load_curves(reader: Reader, run_id: int, plugins: Plugins) -> tuple[Curve, ...]:
    """The trial's curves, then CPU and memory of each process. Raises UserError."""
    run = open_run(reader, run_id, plugins)
    with drawing(run_id):
        resources = resource_curves(run.samples, zero_ns(run.detail.events, run.samples))
        if run.trial is None or not run.sampled:
            return resources
        return run.trial.curves(run.parameters(run.trial), run.samples, run.detail.events) + resources


def zero_ns(events: Sequence[Event], samples: Samples) -> int:
    """T0 on the run's clock: as the trial's event `T0` has it, otherwise the first reading or event."""
    for event in events:
        if event.name == "T0":
            begin = event.data.get("begin_ns")
            return begin if isinstance(begin, int) else event.t_ns
    readings = [samples.table(RESOURCES, role)["t_ns"] for role in samples.roles(RESOURCES)]
    firsts = [int(times[0]) for times in readings if len(times)] + [event.t_ns for event in events]
    return min(firsts, default=0)


def resource_curves(samples: Samples, begin_ns: int) -> tuple[Curve, ...]:
    """CPU and memory of each process over time.

    Without readings of no memory: they are of a process that had ended, but not yet been waited for.
    """
    cpu, memory = [], []
    for role in samples.roles(RESOURCES):
        table = samples.table(RESOURCES, role)
        alive = table["rss"] > 0
        t_s = (table["t_ns"][alive] - begin_ns) / 1e9
        cpu.append(Curve(role, "CPU, 100 % = one core", "%", t_s, table["cpu"][alive].astype(float)))
        memory.append(Curve(role, "Resident memory", "B", t_s, table["rss"][alive].astype(float)))
    return (*cpu, *memory)
