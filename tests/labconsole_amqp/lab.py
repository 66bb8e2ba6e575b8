"""Runs the AMQP trial in tests: the real trial, roles, broker and spools, in processes or, faster, in threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.engine.protocol import LiveFrame
from labconsole.engine.role import RoleProcess, _conduct
from labconsole.engine.roles import RoleChild
from labconsole.engine.run_context import WorkerContext
from labconsole.trial import Evaluation, Event, Metric, RoleHandle, RoleSpec, TrialError
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial import AmqpTrial
from tests.helpers.spool_samples import SpoolSamples

LIVE_HZ = 20.0


class Sink:
    """Stands for the channel to the console, and keeps what the worker says."""

    def __init__(self) -> None:
        self.messages: list[Mapping[str, Any]] = []

    def send(self, message: Mapping[str, Any]) -> None:
        self.messages.append(message)


@dataclass(frozen=True)
class Outcome:
    """How a run went: the sentence it failed with, if it did, and everything measured."""

    parameters: AmqpParameters
    failure: str | None
    samples: SpoolSamples
    evaluation: Evaluation
    frame: LiveFrame

    @property
    def figures(self) -> dict[str, float]:
        """Metrics without labels by name."""
        return {metric.name: metric.value for metric in self.evaluation.metrics if not metric.labels}

    def labelled(self, name: str) -> dict[str, Metric]:
        """Metrics with one label by its value."""
        found = [metric for metric in self.evaluation.metrics if metric.name == name and metric.labels]
        return {next(iter(metric.labels.values())): metric for metric in found}

    @property
    def verdicts(self) -> dict[str, str]:
        """Results by name."""
        return {verdict.name: verdict.result for verdict in self.evaluation.verdicts}

    def column(self, series: str, name: str) -> NDArray[Any]:
        """One column of a series, of all its roles."""
        return np.concatenate([self.samples.table(series, role)[name] for role in self.samples.roles(series)])

    def told(self, name: str) -> list[Event]:
        """Events by name."""
        return [event for event in self.samples.events if event.name == name]


class _RoleThread(RoleChild):
    """A role in a thread: everything but the process boundary is the real thing."""

    def __init__(
        self, spec: RoleSpec, spool: Path, on_change: Callable[[], None], cancelled: Callable[[], bool]
    ) -> None:
        self._spec = spec
        self._on_change = on_change
        self._cancelled = cancelled
        self._info = self._result = self._sentence = None
        self.channels = {}
        self._changed = threading.Condition()
        settings = json.loads(json.dumps(dict(spec.settings)))
        task = {"name": spec.name, "settings": settings, "secrets": {}, "spool": str(spool), "live_hz": LIVE_HZ}
        self._context = RoleProcess(self, task)  # type: ignore[arg-type]
        self._thread = threading.Thread(target=_conduct, args=(self, self._context, spec.target), name=spec.name)
        self._thread.start()

    def send(self, message: Mapping[str, Any]) -> None:
        """What the role says."""
        self._take(json.loads(json.dumps(message)))

    def end(self, deadline: float) -> bool:
        self._thread.join(10)
        assert not self._thread.is_alive(), f"{self.name} did not end"
        return False

    def _send(self, message: Mapping[str, Any]) -> None:
        self._context.on_message(json.loads(json.dumps(message)))


class _ThreadContext(WorkerContext):
    """A worker whose roles are threads."""

    def start(self, role: RoleSpec, host: str | None = None) -> RoleHandle:
        child = _RoleThread(role, self._directory / f"{role.name}.spool", self._changed.set, lambda: self._stop)
        self._roles.append(child)
        return child


class Lab:
    """One run: `context` is the worker's, `during` is called on another thread once it has begun (T0)."""

    def __init__(
        self,
        folder: Path,
        *,
        processes: bool = False,
        live_hz: float = LIVE_HZ,
        during: Callable[[Lab], None] | None = None,
    ) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._during = during
        self._sink = Sink()
        make = WorkerContext if processes else _ThreadContext
        self.artefacts: dict[str, bytes] = {}
        self.context = make(self._sink, folder, 1, live_hz, {}, self._keep)  # type: ignore[arg-type]
        self._over = threading.Event()
        self._fault: Exception | None = None

    def _keep(self, name: str, media_type: str, content: bytes) -> None:
        assert name not in self.artefacts
        self.artefacts[name] = content

    def pid(self, role: str) -> int:
        """Process id of a role."""
        return next(child.pid for child in self.context._roles if child.name == role)

    def count(self, channel: str) -> int:
        """The live counter as the worker knows it."""
        frame = self.context.frame().channels.get(channel)
        return 0 if frame is None else frame.count

    def until(self, channel: str, count: int) -> None:
        """Wait until the live counter has come so far, or the run is over."""
        while self.count(channel) < count and not self._over.wait(0.01):
            pass

    def cancel(self) -> None:
        """What the operator's cancel does."""
        self.context.on_message({"t": "cancel"})

    def run(self, **settings: Any) -> Outcome:
        """Run the trial with these parameters."""
        parameters = AmqpParameters(**settings)
        trial, failure, thread = AmqpTrial(), None, threading.Thread(target=self._watch)
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
        return Outcome(parameters, failure, samples, evaluation, self.context.frame())

    def _watch(self) -> None:
        """Call `during` when the run has begun."""
        while not self._over.wait(0.005):
            if self.context.frame().begin_ns is not None:
                try:
                    if self._during is not None:
                        self._during(self)
                except Exception as fault:  # noqa: BLE001 - raised again where the test sees it
                    self._fault = fault
                return


def run(folder: Path, **settings: Any) -> Outcome:
    """A run in threads, of so few messages that it ends within a moment; `folder` is made."""
    return Lab(folder).run(**settings)
