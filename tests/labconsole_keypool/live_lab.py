"""Live runs in tests: the real trial with its processes, tokens and key stores in the test's own home."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from labconsole.engine.launcher import LaunchedRole, LocalLauncher, RoleStart
from labconsole_keypool.results.verdicts import LEVEL_KEPT
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.store.key_reader import KeyReader
from labconsole_keypool.store.key_records import Head
from labconsole_keypool.store.key_store import store_path
from labconsole_keypool.store.verify_store import verify_store
from labconsole_keypool.trials.service_trial import ServiceTrial
from tests.helpers import trial_lab
from tests.helpers.role_threads import RoleThreads


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


class ServiceThread(LocalLauncher):
    """Starts the service as a thread of the test process, and signers and generators as processes.

    One process has one token open at a time: only where a single signer or generator runs, all may be `RoleThreads`.
    """

    def launch(self, start: RoleStart, host: str | None = None) -> LaunchedRole:
        """Start the role."""
        return RoleThreads().launch(start, host) if start.name == "service" else super().launch(start, host)


class LiveLab(trial_lab.TrialLab[ServiceParameters, Outcome]):
    """One run; `during` is called on another thread at once."""

    trial = ServiceTrial()
    outcome = Outcome

    def kill(self, role: str) -> None:
        """kill -9."""
        os.kill(self.pid(role), signal.SIGKILL)

    def has_ended(self, role: str) -> bool:
        """Whether a role has finished, and the run knows it."""
        return any(child.name == role and not child.running for child in self.context._roles)


def assert_sound(outcome: Outcome) -> None:
    """Nothing was lost, nothing used twice, and the key store confirms it."""
    verdicts = {name: result for name, result in outcome.verdicts.items() if "ms" not in name and name != LEVEL_KEPT}
    assert outcome.failure is None
    assert verdicts == {
        "no key used twice": "pass",
        "every request answered or counted as dropped": "pass",
        "store linked": "pass",
    }
    path = store_path(outcome.parameters.key_store)
    at_begin, at_end = (Head.from_data(event.data) for event in outcome.events_named("key store head"))
    assert at_begin.rows < at_end.rows, "a run that is killed has noted one, too"
    assert not verify_store(path, at_begin) and not verify_store(path, at_end)
    with KeyReader(path) as store:
        assert store.counts().in_use == 0, "a claimed key is used or invalid in the end"
