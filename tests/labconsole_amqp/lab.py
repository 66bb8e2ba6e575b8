"""Runs the AMQP trial in tests: real roles, broker and spools, in processes or, faster, in threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labconsole.engine.launcher import LocalLauncher
from labconsole.model.trial import Metric
from labconsole_amqp.choices import Loop
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import Phase
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from tests.helpers import trial_lab
from tests.helpers.role_threads import RoleThreads

SHAPED = {"shaping": "built-in", "link_rate": 2.0, "link_calibration": 0.5}
"""Parameters of a run over a link of 2 Mbit/s."""
_FEW = 3


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


def left_within(late_ms: float, first: int | None = None) -> Callable[[trial_lab.Outcome[Any]], bool]:
    """Whether each message, or the `first` of each sender, left so soon after it was due."""

    def is_in_time(outcome: trial_lab.Outcome[Any]) -> bool:
        tables = [outcome.samples.table("sent", role) for role in outcome.samples.roles("sent")]
        late_ns = [table["sent_ns"][:first] - table["intended_ns"][:first] for table in tables]
        return all((late < late_ms * 1e6).all() for late in late_ns)

    return is_in_time


def sent_at_full_speed(outcome: trial_lab.Outcome[Any]) -> bool:
    """Whether each sender sent messages in the phase at full speed, where there is one; else it has no throughput."""
    if outcome.parameters.loop is not Loop.BOTH:
        return True
    phases = [outcome.samples.table("sent", role)["phase"] for role in outcome.samples.roles("sent")]
    return all(np.count_nonzero(own == Phase.FULL_SPEED) > _FEW for own in phases)
