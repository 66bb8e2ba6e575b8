"""Roles that work on a token, run in this process: the real role on a real spool and a real SoftHSM2 token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labconsole.engine.protocol import ChannelFrame
from labconsole.engine.role import RoleProcess
from labconsole.model.role import Role
from labconsole.model.trial import Event, Metric, Parameters, Trial
from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from tests.helpers.spool_samples import SpoolSamples
from tests.labconsole_keypool.simulated_run import SentMessages

PIN = Secret("1234-user")
SO_PIN = Secret("5678-officer")


@dataclass(frozen=True)
class TokenRun:
    """A run: the samples and events of the role, its last live values, and the metrics of the trial."""

    samples: SpoolSamples
    live: Mapping[str, ChannelFrame]
    metrics: tuple[Metric, ...]

    @property
    def events(self) -> list[Event]:
        """The events of the role, in order."""
        return self.samples.events

    @property
    def figures(self) -> dict[str, float]:
        """Metrics by name, with the size of the key behind it where they have one."""
        return {" ".join((metric.name, *metric.labels.values())): metric.value for metric in self.metrics}


def run_on_token(
    trial: Trial[Any],
    role: type[Role],
    configuration: TokenConfiguration,
    parameters: Parameters,
    folder: Path,
    *,
    stopped: bool = False,
) -> TokenRun:
    """Prepare, run and close the role; `stopped`: the operator cancels at T0. Raises UserError as the run would."""
    folder.mkdir(parents=True)
    channel, spool = SentMessages(), folder / "token.spool"
    settings = {
        "parameters": parameters.model_dump(mode="json"),
        "configuration": configuration.model_dump(mode="json"),
    }
    key = configuration.pin_request(settings["parameters"]["token"]).key
    task = {"name": "token", "settings": settings, "secrets": {key: PIN.reveal()}, "spool": str(spool)}
    context = RoleProcess(channel, {**task, "files": {}, "address": "127.0.0.1", "live_hz": 20.0})  # type: ignore[arg-type]
    made = role(context)
    try:
        made.prepare()
        if stopped:
            context.on_message({"t": "stop"})
        made.run()
        context.send_live()
    finally:
        made.close()
        context.close()
    samples = SpoolSamples.read(folder)
    live = {name: ChannelFrame.from_json(frame) for name, frame in channel.messages[-1]["channels"].items()}
    return TokenRun(samples, live, trial.evaluate(parameters, samples, ()).metrics)
