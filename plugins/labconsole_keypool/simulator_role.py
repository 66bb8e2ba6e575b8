"""The simulator as a role: computes a run on its virtual clock, and records it as a live run would be recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.role import Role, RoleContext
from labconsole_keypool.arrivals import arrivals_ns
from labconsole_keypool.samples import (
    DROPPED_CHANNEL,
    DROPS,
    LATENCY_CHANNEL,
    QUEUE,
    REFILLS,
    REQUESTS,
    SIMULATED_CHANNEL,
)
from labconsole_keypool.service_model import ServiceModel
from labconsole_keypool.simulation import Outcome, simulate
from labconsole_keypool.simulation_parameters import SimulationParameters

_ROWS = 20_000
"""Requests recorded at a time: between two of these it hears the operator and reports."""


class SimulatorRole(Role):
    """Settings: `parameters` as JSON, and the run's `seed`."""

    def __init__(self, context: RoleContext) -> None:
        super().__init__(context)
        self._parameters = SimulationParameters.model_validate(context.settings["parameters"])
        self._model: ServiceModel = self._parameters.service_model()
        self._arrivals_ns = np.empty(0, np.int64)

    def prepare(self) -> dict[str, Any]:
        """Work out when requests arrive, and say how many. Raises TrialError: a CSV file that cannot be read."""
        parameters = self._parameters
        self._arrivals_ns = arrivals_ns(
            parameters.arrivals,
            requests=parameters.requests,
            rate=parameters.rate,
            time_scale=parameters.time_scale,
            seed=self.context.settings["seed"],
            csv=Path(parameters.csv).expanduser() if parameters.csv else None,
            tail_requests=parameters.tail_requests,
            tail_rate=parameters.tail_rate,
        )
        return {"requests": len(self._arrivals_ns)}

    def run(self) -> dict[str, Any]:
        """Simulate, then record all series."""
        outcome = simulate(self._arrivals_ns, self._model, queue_limit=self._parameters.queue_limit)
        self._record_queue(outcome)
        refills = outcome.refills
        self.context.series(REFILLS).extend(started=refills.started, finished=refills.finished, keys=refills.count)
        self._record_requests(outcome)
        return {"dropped": int(np.count_nonzero(outcome.dropped))}

    def _record_queue(self, outcome: Outcome) -> None:
        t, length = queue_lengths(outcome)
        self.context.series(QUEUE).extend(t=t, length=length)

    def _record_requests(self, outcome: Outcome) -> None:
        requests, drops = self.context.series(REQUESTS), self.context.series(DROPS)
        numbers = np.arange(1, len(outcome.received) + 1)
        for begin in range(0, len(numbers), _ROWS):
            if self.context.stop_requested:
                return
            rows = slice(begin, begin + _ROWS)
            dropped = outcome.dropped[rows]
            signed = {
                name: getattr(outcome, name)[rows][~dropped]
                for name in ("received", "started", "got_key", "finished", "key_source")
            }
            requests.extend(request=numbers[rows][~dropped], **signed)
            drops.extend(request=numbers[rows][dropped], received=outcome.received[rows][dropped])
            self.context.count(SIMULATED_CHANNEL.name, len(dropped))
            self.context.count(DROPPED_CHANNEL.name, int(np.count_nonzero(dropped)))
            self.context.observe(LATENCY_CHANNEL.name, signed["finished"] - signed["received"])
            self.context.tick()


def queue_lengths(outcome: Outcome) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each change of the number of requests that wait: (ns since T0, their number from then on), equal lengths.

    A request waits from its arrival until a thread takes it. Of several changes at one moment the last one is given,
    and who leaves does so before who comes: never are there more than the queue holds.
    """
    waits = ~outcome.dropped & (outcome.started > outcome.received)
    count = int(np.count_nonzero(waits))
    t = np.concatenate((outcome.started[waits], outcome.received[waits]))
    steps = np.repeat((-1, 1), count)
    order = np.argsort(t, kind="stable")
    t, lengths = t[order], np.cumsum(steps[order])
    last = np.append(t[1:] != t[:-1], True)[: len(t)]
    return t[last], lengths[last]
