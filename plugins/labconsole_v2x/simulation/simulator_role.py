"""The simulator as a role: computes a run on its virtual clock, and records each packet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.role import Role, RoleContext
from labconsole_v2x.simulation.packet_series import PACKETS, SIMULATED_CHANNEL
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.testbed import Fate, SimulatedPackets, simulate

_PART = 20_000
"""Packets recorded at a time: a cancel is handled in between."""


class SimulatorRole(Role):
    """Settings: `parameters` as JSON, and the run's `seed`."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._parameters = SimulationParameters.model_validate(context.settings["parameters"])

    def prepare(self) -> dict[str, Any]:
        """Nothing is opened. Raises UserError: the timing profile is broken, or has no time of these packets."""
        self._parameters.stack_timing()
        return {}

    def run(self) -> dict[str, Any]:
        """Simulate, and record part by part."""
        packets = simulate(self._parameters, np.random.default_rng(self.context.settings["seed"]))
        columns = columns_of(packets)
        series, total = self.context.series(PACKETS), len(packets.size)
        for start in range(0, total, _PART):
            if self.context.stop_requested:
                break
            part = {name: column[start : start + _PART] for name, column in columns.items()}
            series.extend(**part)
            self.context.count(SIMULATED_CHANNEL.name, len(part["size"]))
            self.context.tick()
        return {"packets": total}


def columns_of(packets: SimulatedPackets) -> dict[str, NDArray[Any]]:
    """The packets as the columns of `PACKETS`."""
    return {
        "station": packets.arrivals.station,
        "attacker": packets.attacker,
        "generated_ns": _ns(packets.arrivals.generated_s),
        "heard_ns": _ns(packets.heard_s),
        "done_ns": _ns(packets.done_s),
        "service_ns": np.where(np.isnan(packets.done_s), 0, _ns(packets.service_s)),
        "airtime_ns": np.where(packets.fate == Fate.SENDER_FULL, 0, _ns(packets.airtime_s)),
        "size": packets.size,
        "certificate": packets.arrivals.certificate,
        "fate": packets.fate,
    }


def _ns(times_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole ns; -1 for what is not a number."""
    return np.where(np.isnan(times_s), -1, np.nan_to_num(times_s) * 1e9).round().astype(np.int64)
