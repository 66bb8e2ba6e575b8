"""The simulator as a role: computes a run on its virtual clock, and records each packet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.model.role import Role, RoleContext
from labconsole_v2x.simulation.packet_series import PACKETS, SIMULATED_CHANNEL
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.stack_timing import StackTiming
from labconsole_v2x.simulation.testbed import SimulatedPackets, simulate


class SimulatorRole(Role):
    """Settings: `parameters` and `timing` (a `StackTiming`) as JSON, and the run's `seed`."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._parameters = SimulationParameters.of_stored(context.settings["parameters"])
        self._timing = StackTiming.model_validate(context.settings["timing"])

    def run(self) -> dict[str, Any]:
        """Simulate, and record all packets; none of a run that was stopped before."""
        packets = simulate(self._parameters, self._timing, np.random.default_rng(self.context.settings["seed"]))
        if not self.context.stop_requested:
            self.context.series(PACKETS).extend(**columns_of(packets))
            self.context.count(SIMULATED_CHANNEL.name, len(packets.size))
        return {"packets": len(packets.size)}


def columns_of(packets: SimulatedPackets) -> dict[str, NDArray[Any]]:
    """The packets as the columns of `PACKETS`."""
    return {
        "station": packets.arrivals.station,
        "attacker": packets.attacker,
        "generated_ns": _ns(packets.arrivals.generated_s),
        "sent_ns": _ns(packets.sent_s),
        "airtime_ns": _ns(packets.airtime_s),
        "done_ns": _ns(packets.done_s),
        "service_ns": _ns(packets.service_s),
        "size": packets.size,
        "certificate": packets.arrivals.certificate,
        "fate": packets.fate,
    }


def _ns(times_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole ns; -1 for what is not a number."""
    return np.where(np.isnan(times_s), -1, np.nan_to_num(times_s) * 1e9).round().astype(np.int64)
