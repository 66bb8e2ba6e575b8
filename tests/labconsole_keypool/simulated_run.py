"""Simulated runs in tests: the real role on a real spool, without processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labconsole.engine.protocol import ChannelFrame
from labconsole.engine.role import RoleProcess
from labconsole.errors import UserError
from labconsole.model.trial import Evaluation
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters
from labconsole_keypool.simulation.simulator_role import SimulatorRole
from labconsole_keypool.trials.simulation_trial import SimulationTrial, simulator_spec
from tests.helpers.spool_samples import SpoolSamples


class SentMessages:
    """A substitute for the channel to the worker; keeps the messages of the role."""

    def __init__(self) -> None:
        self.messages: list[Mapping[str, Any]] = []

    def send(self, message: Mapping[str, Any]) -> None:
        self.messages.append(message)


@dataclass(frozen=True)
class Simulated:
    """A run: what the role stored and last showed, and what the trial makes of it."""

    parameters: SimulationParameters
    samples: SpoolSamples
    live: Mapping[str, ChannelFrame]

    @property
    def evaluation(self) -> Evaluation:
        return SimulationTrial().evaluate(self.parameters, self.samples, ())

    @property
    def figures(self) -> dict[str, float]:
        """Metrics without labels by name."""
        return {metric.name: metric.value for metric in self.evaluation.metrics if not metric.labels}

    @property
    def sources(self) -> dict[str, float]:
        """Number of requests by where their key came from."""
        return {m.labels["source"]: m.value for m in self.evaluation.metrics if m.name == "got_key"}

    @property
    def verdicts(self) -> dict[str, str]:
        """Results by name."""
        return {verdict.name: verdict.result for verdict in self.evaluation.verdicts}


class StoppedProcess(RoleProcess):
    """A role that is stopped after so many ticks."""

    def __init__(self, channel: SentMessages, task: Mapping[str, Any], ticks: int) -> None:
        super().__init__(channel, task)  # type: ignore[arg-type]
        self._ticks_left = ticks
        self._count_down()

    def tick(self) -> None:
        super().tick()
        self._ticks_left -= 1
        self._count_down()

    def _count_down(self) -> None:
        if self._ticks_left == 0:
            self.on_message({"t": "stop"})


def simulated(folder: Path, *, seed: int = 1, stopped_after: int | None = None, **settings: Any) -> Simulated:
    """Run a scenario; `folder` is made. Raises UserError as the run would. `stopped_after`: the operator cancelled
    when so many parts were recorded."""
    parameters = SimulationParameters(**settings)
    spec = simulator_spec(parameters, seed)
    channel, spool = SentMessages(), folder / "simulator.spool"
    folder.mkdir(parents=True)
    task = {"name": spec.name, "settings": spec.settings, "secrets": {}, "address": "127.0.0.1", "spool": str(spool)}
    files = {key: {"path": str(path), "named": str(path)} for key, path in spec.files.items()}
    context = StoppedProcess(
        channel, {**task, "files": files, "live_hz": 20.0}, -1 if stopped_after is None else stopped_after
    )
    try:
        role = SimulatorRole(context)
        requests = role.prepare()["requests"]
        role.run()
        context.send_live()
    finally:
        context.close()
    live = {name: ChannelFrame.from_json(frame) for name, frame in channel.messages[-1]["channels"].items()}
    if stopped_after is None and live["simulated"].count != requests:
        raise UserError("The role reported another number of requests than it simulated.")
    return Simulated(parameters, SpoolSamples.read(folder), live)
