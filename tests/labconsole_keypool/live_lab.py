"""Live runs in tests: the real trial with its processes, tokens and key stores in the test's own home."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.trials.service_trial import ServiceTrial
from tests.helpers import trial_lab


@dataclass(frozen=True)
class Outcome(trial_lab.Outcome[ServiceParameters]):
    """The result of a run of the signing service."""

    @property
    def sources(self) -> dict[str, float]:
        """Number of requests by where their key came from."""
        return {m.labels["source"]: m.value for m in self.evaluation.metrics if m.name == "got_key"}

    def live(self, channel: str) -> int:
        """The last count of a live channel."""
        return self.frame.channels[channel].count if channel in self.frame.channels else 0


class LiveLab(trial_lab.TrialLab[ServiceParameters, Outcome]):
    """One run; `during` is called on another thread at once."""

    trial = ServiceTrial()
    outcome = Outcome

    def kill(self, role: str) -> None:
        """kill -9."""
        os.kill(self.pid(role), signal.SIGKILL)
