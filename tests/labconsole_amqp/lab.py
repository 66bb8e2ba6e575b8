"""Runs the AMQP trial in tests: real roles, broker and spools, in processes or, faster, in threads."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.engine.role import RoleProcess, _conduct
from labconsole.engine.role_handle import RoleChild
from labconsole.engine.run_context import WorkerContext
from labconsole.model.trial import Metric, RoleHandle, RoleSpec
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from tests.helpers import trial_lab
from tests.helpers.trial_lab import LIVE_HZ


@dataclass(frozen=True)
class Outcome(trial_lab.Outcome[AmqpParameters]):
    """The outcome of a run between two ends."""

    def labelled(self, name: str) -> dict[str, Metric]:
        """Metrics with one label by its value."""
        found = [metric for metric in self.evaluation.metrics if metric.name == name and metric.labels]
        return {next(iter(metric.labels.values())): metric for metric in found}

    def column(self, series: str, name: str) -> NDArray[Any]:
        """One column of a series, of all its roles."""
        return np.concatenate([self.samples.table(series, role)[name] for role in self.samples.roles(series)])


class _RoleThread(RoleChild):
    """A role in a thread: everything but the process boundary is real."""

    def __init__(
        self, spec: RoleSpec, spool: Path, on_change: Callable[[], None], cancelled: Callable[[], bool]
    ) -> None:
        self._name = spec.name
        self._on_change = on_change
        self._cancelled = cancelled
        self._info = self._result = self._sentence = None
        self._reports = deque()
        self.channels, self.gauges, self.states = {}, {}, {}
        self.usage = None
        self._changed = threading.Condition()
        settings = json.loads(json.dumps(dict(spec.settings)))
        named = {**spec.files, **spec.private_files}
        files = {key: {"path": str(path), "named": str(path)} for key, path in named.items()}
        task = {"name": spec.name, "settings": settings, "secrets": {}, "files": files, "live_hz": LIVE_HZ}
        self._context = RoleProcess(self, {**task, "spool": str(spool), "address": "127.0.0.1"})  # type: ignore[arg-type]
        self._thread = threading.Thread(target=_conduct, args=(self, self._context, spec.target), name=spec.name)
        self._thread.start()

    def send(self, message: Mapping[str, Any]) -> None:
        """Process a message of the role."""
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


class ThreadLab(trial_lab.TrialLab[trial_lab.P, trial_lab.R]):
    """One run, in threads; `during` is called on another thread once it has begun (T0)."""

    context_type = _ThreadContext

    def _await_begin(self) -> bool:
        while not self._over.wait(0.005):
            if self.context.frame().begin_ns is not None:
                return True
        return False


class Lab(ThreadLab[AmqpParameters, Outcome]):
    """A run of the messaging trial in threads."""

    trial = AmqpTrial()
    outcome = Outcome


class ProcessLab(Lab):
    """The same with roles in processes of their own."""

    context_type = WorkerContext


def run(folder: Path, **settings: Any) -> Outcome:
    """A run in threads, of few messages, so that it is short; `folder` is created."""
    return Lab(folder).run(**settings)
