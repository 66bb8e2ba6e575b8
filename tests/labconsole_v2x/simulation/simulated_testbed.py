"""The published rows of Table 4.2 and simulated runs of them, for tests and the benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labconsole.analysis.published_figures import PublishedColumn, published_tables
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Samples
from labconsole_v2x.simulation.packet_series import PACKETS
from labconsole_v2x.simulation.simulation_evaluation import evaluate
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.simulator_role import columns_of
from labconsole_v2x.simulation.testbed import simulate


class _Recorded:
    """The packets of one run as stored samples."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._table = table

    def roles(self, series: str) -> Sequence[str]:
        return ["simulator"] if series == PACKETS.name else []

    def table(self, series: str, role: str) -> dict[str, Any]:
        return self._table


def recorded(columns: dict[str, Any]) -> Samples:
    """Samples with these columns of packets."""
    return _Recorded({one.name: np.asarray(columns[one.name]).astype(one.numpy_type) for one in PACKETS.columns})  # type: ignore[return-value]


def figures(parameters: SimulationParameters, seed: int) -> dict[str, float]:
    """The metrics of a run with this seed; of those with labels `name label`."""
    packets = simulate(parameters, np.random.default_rng(seed))
    evaluation = evaluate(parameters, recorded(columns_of(packets)))
    return {" ".join((one.name, *one.labels.values())): one.value for one in evaluation.metrics}


@dataclass(frozen=True)
class Row:
    """A row of Table 4.2, printed and simulated."""

    name: str
    fitted: bool
    printed: dict[str, float]
    simulated: dict[str, float]

    def error(self, metric: str) -> float:
        """Simulated less printed, in the metric's unit."""
        return self.simulated[metric] - self.printed[metric]

    @property
    def delay_error(self) -> float:
        """The error of the mean delay, % of the printed one."""
        return 100 * self.error("latency_mean") / self.printed["latency_mean"]


def rows_of_table_4_2(seeds: Sequence[int], **changes: Any) -> Iterator[Row]:
    """All rows, each the mean over runs with these seeds."""
    (table,) = (one for one in published_tables(Plugins.discover()) if one.name == "preserve-table-4-2")
    for column in table.columns:
        parameters = SimulationParameters.model_validate({**column.parameters, **changes})
        runs = [figures(parameters, seed) for seed in seeds]
        name = column.name.partition("/")[2]
        simulated = {metric: float(np.mean([run[metric] for run in runs])) for metric in column.figures}
        yield Row(name, name in parameters.stack_timing().fitted_to, _printed(column), simulated)


def _printed(column: PublishedColumn) -> dict[str, float]:
    return {metric: figure.value for metric, figure in column.figures.items()}
