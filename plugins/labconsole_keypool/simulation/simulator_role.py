"""The simulator as a role: computes a run on its virtual clock, and records it as a live run would be recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from labconsole.model.role import Role, RoleContext
from labconsole_keypool.series import (
    DROPPED_CHANNEL,
    DROPS,
    LATENCY_CHANNEL,
    QUEUE,
    REFILLS,
    REQUESTS,
    SIMULATED_CHANNEL,
)
from labconsole_keypool.service.arrivals import ARRIVALS_FILE, arrivals_ns
from labconsole_keypool.simulation.service_model import ServiceModel
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters
from labconsole_keypool.simulation.simulator import Changes, Outcome, QueueLengths, Simulation

_PART = 10_000
"""Requests simulated and recorded at a time, some hundredths of a second: a cancel is handled in between."""


class SimulatorRole(Role):
    """Settings: `parameters` as JSON, and the run's `seed`."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._parameters = SimulationParameters.model_validate(context.settings["parameters"])
        self._model: ServiceModel = self._parameters.service_model(context.settings.get("seed", 0))
        self._arrivals_ns = np.empty(0, np.int64)
        self._requests, self._drops = context.series(REQUESTS), context.series(DROPS)
        self._queue, self._refills = context.series(QUEUE), context.series(REFILLS)

    def prepare(self) -> dict[str, Any]:
        """Compute when requests arrive, and report how many. Raises UserError: a CSV file that cannot be read."""
        parameters = self._parameters
        self._arrivals_ns = arrivals_ns(
            parameters.arrivals,
            requests=parameters.requests,
            rate=parameters.rate,
            time_scale=parameters.time_scale,
            seed=self.context.settings["seed"],
            csv=self.context.file(ARRIVALS_FILE),
            tail_requests=parameters.tail_requests,
            tail_rate=parameters.tail_rate,
        )
        return {"requests": len(self._arrivals_ns)}

    def run(self) -> dict[str, Any]:
        """Simulate and record, part by part: when stopped, what is stored is whole up to the last request of it."""
        simulation, queue = Simulation(self._model, queue_limit=self._parameters.queue_limit), QueueLengths()
        done = dropped = 0
        while done < len(self._arrivals_ns) and not self.context.stop_requested:
            part = simulation.follow(self._arrivals_ns[done : done + _PART])
            self._record(part, done + 1)
            self._record_queue(queue.after(part))
            done += len(part.received)
            dropped += int(np.count_nonzero(part.dropped))
            self.context.tick()
        self._record_queue(queue.rest())
        return {"dropped": dropped}

    def _record(self, part: Outcome, first: int) -> None:
        """Store and count the simulated requests, from number `first` on."""
        numbers = np.arange(first, first + len(part.received))
        signed = {
            name: getattr(part, name)[~part.dropped]
            for name in ("received", "started", "got_key", "finished", "key_source")
        }
        self._requests.extend(request=numbers[~part.dropped], **signed)
        self._drops.extend(request=numbers[part.dropped], received=part.received[part.dropped])
        refills = part.refills
        self._refills.extend(started=refills.started, finished=refills.finished, keys=refills.count)
        self.context.count(SIMULATED_CHANNEL.name, len(numbers))
        self.context.count(DROPPED_CHANNEL.name, int(np.count_nonzero(part.dropped)))
        self.context.observe(LATENCY_CHANNEL.name, signed["finished"] - signed["received"])

    def _record_queue(self, changes: Changes) -> None:
        t, length = changes
        self._queue.extend(t=t, length=length)
