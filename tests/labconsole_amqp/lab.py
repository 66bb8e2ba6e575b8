"""Runs the AMQP trial in tests: real roles, broker and spools, in processes or, faster, in threads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.engine.launcher import LocalLauncher
from labconsole.model.trial import Metric
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from tests.helpers import trial_lab
from tests.helpers.role_threads import RoleThreads

SHAPED = {"shaping": "built-in", "link_rate": 2.0, "link_calibration": 0.5}
"""Parameters of a run over a link of 2 Mbit/s."""


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


class ThreadLab(trial_lab.TrialLab[trial_lab.P, trial_lab.R]):
    """One run, in threads; `during` is called on another thread once it has begun (T0)."""

    roles = RoleThreads

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

    roles = LocalLauncher


def run(folder: Path, **settings: Any) -> Outcome:
    """A run in threads, of few messages, so that it is short; `folder` is created."""
    return Lab(folder).run(**settings)
