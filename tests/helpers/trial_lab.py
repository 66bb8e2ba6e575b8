"""Runs of a trial in tests as the worker conducts them: the real trial, roles and spools; no console listens."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from labconsole.engine.launcher import Launcher, LocalLauncher
from labconsole.engine.protocol import LiveFrame
from labconsole.engine.run_context import WorkerContext
from labconsole.errors import UserError
from labconsole.model.metrics import Evaluation, VerdictKind
from labconsole.model.parameters import Parameters
from labconsole.model.series import Event
from labconsole.model.trial import Trial
from labconsole.security.secrets import Secret
from tests.helpers.role_threads import RoleThreads
from tests.helpers.spool_samples import SpoolSamples

LIVE_HZ = 20.0
_FILE = "outcome.json"
"""Next to the spools of a run: what they do not have."""
P = TypeVar("P", bound=Parameters)
R = TypeVar("R", bound="Outcome[Any]")


@dataclass(frozen=True)
class Outcome(Generic[P]):
    """How a run went: the sentence it failed with, if it did, and everything recorded."""

    parameters: P
    failure: str | None
    samples: SpoolSamples
    evaluation: Evaluation
    frame: LiveFrame
    artefacts: Mapping[str, bytes]
    folder: Path = Path()
    """Of the run, with its spools."""
    pids: Mapping[str, int] = field(default_factory=dict)
    """Process ids of the roles that are processes."""

    def write(self) -> None:
        """Complete the folder of the run, so that `TrialLab.read` reads it in another process."""
        values = {
            "parameters": self.parameters.model_dump(mode="json"),
            "failure": self.failure,
            "frame": self.frame.to_json(),
            "artefacts": {name: content.hex() for name, content in self.artefacts.items()},
            "pids": self.pids,
        }
        (self.folder / _FILE).write_text(json.dumps(values))

    @property
    def figures(self) -> dict[str, float]:
        """Metrics without labels by name."""
        return {metric.name: metric.value for metric in self.evaluation.metrics if not metric.labels}

    @property
    def verdicts(self) -> dict[str, str]:
        """Results by name, without those of the preflight."""
        found = (one for one in self.evaluation.verdicts if one.kind is not VerdictKind.PREFLIGHT)
        return {verdict.name: verdict.result for verdict in found}

    def events_named(self, name: str) -> list[Event]:
        """The events with this name."""
        return [event for event in self.samples.events if event.name == name]


class TrialLab(Generic[P, R]):
    """One run of `trial`; `during` is called on another thread once `_await_begin` returns."""

    trial: Trial[P]
    outcome: type[R]
    roles: type[LocalLauncher | RoleThreads] = LocalLauncher
    """What starts the roles; `RoleThreads` where their processes are not what is tested."""

    def __init__(
        self,
        folder: Path,
        *,
        launcher: Launcher | None = None,
        live_hz: float = LIVE_HZ,
        secrets: Mapping[str, Secret] | None = None,
        during: Callable[[Self], None] | None = None,
    ) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._during = during
        self._over = threading.Event()
        self._fault: Exception | None = None
        self.artefacts: dict[str, bytes] = {}
        self.context = WorkerContext(
            self,  # type: ignore[arg-type]
            folder,
            1,
            live_hz,
            secrets or {},
            self._keep,
            self.trial.live,
            self.trial.commands,
            launcher or self.roles(),
        )

    def send(self, message: Mapping[str, Any]) -> None:
        """What the worker says to the console, who is not there."""

    def _keep(self, name: str, media_type: str, content: bytes) -> None:
        assert name not in self.artefacts
        self.artefacts[name] = content

    @property
    def started(self) -> list[str]:
        """Names of all roles that were started, in order."""
        return [child.name for child in self.context._roles]

    def pid(self, role: str) -> int:
        """Process id of a role."""
        return self.pids[role]

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the roles that are processes of this computer."""
        return {child.name: child.pid for child in self.context._roles if child.pid is not None}

    def count(self, channel: str) -> int:
        """The live counter as the worker knows it."""
        frame = self.context.frame().channels.get(channel)
        return 0 if frame is None else frame.count

    def until(self, channel: str, count: int) -> None:
        """Wait until the live counter has come so far, or the run is over."""
        while self.count(channel) < count and not self._over.wait(0.005):
            pass

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until the run is over; returns whether it is."""
        return self._over.wait(seconds)

    def cancel(self) -> None:
        """What the operator's cancel does."""
        self.context.on_message({"t": "cancel"})

    def run(self, **settings: Any) -> R:
        """Run the trial with these parameters."""
        parameters = self.trial.parameters(**settings)
        failure, thread = None, threading.Thread(target=self._watch)
        thread.start()
        try:
            self.trial.run(parameters, self.context)
        except UserError as error:
            failure = str(error)
        finally:
            self._over.set()
            self.context.end_roles()
            thread.join()
            self.context.close()
        if self._fault is not None:
            raise self._fault
        return self._evaluate(self._folder, parameters, failure, self.context.frame(), self.artefacts, self.pids)

    @classmethod
    def read(cls, folder: Path) -> R:
        """The outcome of a run that was written; it is evaluated again."""
        values = json.loads((folder / _FILE).read_text())
        return cls._evaluate(
            folder,
            cls.trial.parameters(**values["parameters"]),
            values["failure"],
            LiveFrame.from_json(values["frame"]),
            {name: bytes.fromhex(content) for name, content in values["artefacts"].items()},
            values["pids"],
        )

    @classmethod
    def _evaluate(
        cls,
        folder: Path,
        parameters: Any,
        failure: str | None,
        frame: LiveFrame,
        artefacts: Mapping[str, bytes],
        pids: Mapping[str, int],
    ) -> R:
        samples = SpoolSamples.read(folder)
        samples.definitions = cls.trial.definitions
        evaluation = cls.trial.evaluate(parameters, samples, samples.events)
        return cls.outcome(parameters, failure, samples, evaluation, frame, artefacts, folder, pids)

    def _await_begin(self) -> bool:
        """Whether `during` is to be called, after waiting for its moment: at once, unless a trial says otherwise."""
        return True

    def _watch(self) -> None:
        try:
            if self._during is not None and self._await_begin():
                self._during(self)
        except Exception as fault:  # noqa: BLE001 - raised again where the test sees it
            self._fault = fault
