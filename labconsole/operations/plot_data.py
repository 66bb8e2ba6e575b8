"""The operation that reads what plots of a run show: the window uses it for large runs, whose samples stay outside."""

from __future__ import annotations

from typing import ClassVar

from labconsole.cli.database import RunDatabase, open_database
from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole.model.plugin import Plugins
from labconsole.output.plot_data import Plots, plot_data


class PlotDataParameters(Parameters):
    """Which run, and which of its plots."""

    run: int = parameter("Run", "Its number", default=1, ge=1, positional=True, required=True, metavar="RUN")
    plots: Plots = parameter(
        "Plots",
        "Curves over time, or distributions of what was observed",
        default=Plots.CURVES,
        labels={Plots.CURVES: "Curves", Plots.DISTRIBUTIONS: "Distributions"},
    )
    db: RunDatabase = None


class ReadPlotData(Operation[PlotDataParameters]):
    """Reads the samples of a run, and cuts them down to lines."""

    name: ClassVar[str] = "runs.plot-data"
    title: ClassVar[str] = "Plot data of a run"
    description: ClassVar[str] = (
        "Gives the lines that the window draws of a run as JSON: its curves over time, some thousand points each, or "
        "ECDF and percentiles of its distributions."
    )
    parameters: ClassVar[type[Parameters]] = PlotDataParameters

    def run(self, parameters: PlotDataParameters, context: OperationContext) -> Result:
        with open_database(parameters.db) as reader:
            lines = plot_data(reader, parameters.run, Plugins.discover(), parameters.plots)
        titles = ", ".join(str(line["title"]) for line in lines) or "none"
        return Result((f"Run {parameters.run}, {parameters.plots}: {titles}.",), {"lines": lines})
