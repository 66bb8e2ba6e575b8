"""Live runs in tests: the real trial with its processes, tokens and key stores in the test's own home."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labconsole.engine.protocol import LiveFrame
from labconsole.engine.run_context import WorkerContext
from labconsole.security.secrets import Secret
from labconsole.trial import Evaluation, Event, TrialError
from labconsole_keypool.live.service_parameters import ServiceParameters
from labconsole_keypool.live.service_trial import ServiceTrial
from tests.helpers.spool_samples import SpoolSamples

_LIVE_HZ = 20.0


@dataclass(frozen=True)
class Outcome:
    """How a run went: the sentence it failed with, if it did, and everything recorded."""

    parameters: ServiceParameters
    failure: str | None
    samples: SpoolSamples
    evaluation: Evaluation
    frame: LiveFrame
    artefacts: Mapping[str, bytes]

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

    def live(self, channel: str) -> int:
        """What the live view showed last."""
        return self.frame.channels[channel].count if channel in self.frame.channels else 0

    def told(self, name: str) -> list[Event]:
        """Events by name."""
        return [event for event in self.samples.events if event.name == name]


class LiveLab:
    """One run; `during` is called on another thread once it has begun, at its first figure."""

    def __init__(
        self,
        folder: Path,
        *,
        secrets: Mapping[str, Secret] | None = None,
        during: Callable[[LiveLab], None] | None = None,
    ) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._during = during
        self._artefacts: dict[str, bytes] = {}
        self._over = threading.Event()
        self._fault: Exception | None = None
        self.context = WorkerContext(self, folder, 1, _LIVE_HZ, secrets or {}, self._keep)  # type: ignore[arg-type]

    def send(self, message: Mapping[str, Any]) -> None:
        """What the worker says to the console, who is not there."""

    def _keep(self, name: str, media_type: str, content: bytes) -> None:
        assert name not in self._artefacts
        self._artefacts[name] = content

    def until(self, channel: str, count: int) -> None:
        """Wait until a live counter has come so far, or the run is over."""
        while not self._over.wait(0.005):
            frame = self.context.frame().channels.get(channel)
            if frame is not None and frame.count >= count:
                return

    @property
    def started(self) -> list[str]:
        """Names of all roles that were started, in order."""
        return [child.name for child in self.context._roles]

    def kill(self, role: str) -> None:
        """kill -9."""
        child = next(child for child in self.context._roles if child.name == role)
        os.kill(child.pid, signal.SIGKILL)

    def cancel(self) -> None:
        """What the operator's cancel does."""
        self.context.on_message({"t": "cancel"})

    def run(self, **settings: Any) -> Outcome:
        """Run the trial with these parameters."""
        parameters = ServiceParameters(**settings)
        trial, failure, thread = ServiceTrial(), None, threading.Thread(target=self._watch)
        thread.start()
        try:
            trial.run(parameters, self.context)
        except TrialError as error:
            failure = str(error)
        finally:
            self._over.set()
            self.context.end_roles()
            thread.join()
            self.context.close()
        if self._fault is not None:
            raise self._fault
        samples = SpoolSamples.read(self._folder)
        evaluation = trial.evaluate(parameters, samples, samples.events)
        return Outcome(parameters, failure, samples, evaluation, self.context.frame(), self._artefacts)

    def _watch(self) -> None:
        try:
            if self._during is not None:
                self._during(self)
        except Exception as fault:  # noqa: BLE001 - raised again where the test sees it
            self._fault = fault
