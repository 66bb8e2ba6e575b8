"""Reads what plots of runs show; a large run is read in a process of its own, so that the window stays small."""

from __future__ import annotations

from threading import Event
from typing import Any

from labconsole.analysis.run_curves import load_curves
from labconsole.engine.operation_process import OperationProcess, Outcome
from labconsole.errors import UserError
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Curve
from labconsole.output.plot_data import (
    Plots,
    PlottedDistribution,
    curves_from_json,
    distributions_from_json,
    load_distributions_of,
)
from labconsole.store.reader import Reader

LARGE_ROWS = 1_000_000
"""Rows of a run from which on it is read in a process: to start one takes about as long as to read so many."""
_OPERATION = "runs.plot-data"
_TURN_S = 0.1


class PlotReader:
    """To be used by one thread at a time, which waits for the process; `close` may be called by any other."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._closed = False
        self._woken = Event()

    def curves(self, reader: Reader, run_id: int) -> tuple[Curve, ...]:
        """The trial's curves, then CPU and memory of each process. Raises UserError."""
        if _is_large(reader, run_id):
            return curves_from_json(self._in_process(reader, run_id, Plots.CURVES))
        return load_curves(reader, run_id, self._plugins)

    def distributions(self, reader: Reader, run_id: int) -> tuple[PlottedDistribution, ...]:
        """The distributions of a run; none where its trial names none or is not installed. Raises UserError."""
        if _is_large(reader, run_id):
            return distributions_from_json(self._in_process(reader, run_id, Plots.DISTRIBUTIONS))
        return load_distributions_of(reader, run_id, self._plugins)

    def close(self) -> None:
        """End the process of the run that is being read: its view is closed."""
        self._closed = True
        self._woken.set()

    def _in_process(self, reader: Reader, run_id: int, plots: Plots) -> list[Any]:
        parameters = {"run": run_id, "plots": plots.value, "db": str(reader.path)}
        process = OperationProcess(_OPERATION, parameters, self._woken.set)
        try:
            while process.end is None and not self._closed:
                self._woken.wait(_TURN_S)
                self._woken.clear()
                process.pump()
        finally:
            process.close()
        end = process.end
        if end is None or end.result is None or end.outcome is not Outcome.DONE:
            raise UserError(end.sentence if end is not None else f"Run {run_id} was not read.")
        return list(end.result.data["lines"])


def _is_large(reader: Reader, run_id: int) -> bool:
    return sum(series.rows for series in reader.run(run_id).series) >= LARGE_ROWS
