"""The published rows of Table 4.2 and simulated runs of them, for tests and the benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.published_figures import PublishedColumn, published_tables
from labconsole.model.plugin import Plugins
from labconsole.profiles.profile import load_profile
from labconsole_v2x.simulation.packet_series import PACKETS
from labconsole_v2x.simulation.simulation_evaluation import evaluate
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.simulator_role import columns_of
from labconsole_v2x.simulation.testbed import simulate
from tests.labconsole_v2x.live.synthetic_packets import Tables, named


def published_radio() -> dict[str, Any]:
    """The parameters of the radio channel, as the profile of the source's testbed has them."""
    scenario = load_profile("v2x-testbed-published", Plugins.discover()).scenarios[0]
    return {name: scenario.parameters[name] for name in ("aifsn", "power_spread")}


def recorded(columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> Tables:
    """Samples with these columns of packets."""
    return Tables({(PACKETS.name, "simulator"): {name: np.asarray(values) for name, values in columns.items()}})


def figures(parameters: SimulationParameters, seed: int) -> dict[str, float]:
    """The metrics of a run with this seed, as `named` has them."""
    packets = simulate(parameters, parameters.stack_timing(), np.random.default_rng(seed))
    return named(evaluate(parameters, recorded(columns_of(packets))))


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
    radio = published_radio()
    (table,) = (one for one in published_tables(Plugins.discover()) if one.name == "preserve-table-4-2")
    for column in table.columns:
        parameters = SimulationParameters.model_validate({**radio, **column.parameters, **changes})
        runs = [figures(parameters, seed) for seed in seeds]
        name = column.name.partition("/")[2]
        simulated = {metric: float(np.mean([run[metric] for run in runs])) for metric in column.figures}
        yield Row(name, name in parameters.stack_timing().fitted_to, _printed(column), simulated)


def _printed(column: PublishedColumn) -> dict[str, float]:
    return {metric: figure.value for metric, figure in column.figures.items()}
