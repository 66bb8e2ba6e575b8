"""A token that is removed in mid-run: it is named, and the run continues with the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole.engine.launcher import Launcher
from labconsole.security.secrets import Secret
from labconsole.security.token.named_tokens import save_configuration
from tests.helpers.removable_token import removable
from tests.helpers.role_threads import RoleThreads
from tests.helpers.softhsm_token import create_softhsm_token
from tests.labconsole_keypool.live_lab import LiveLab, Outcome, ServiceThread

pytestmark = pytest.mark.usefixtures("lab_home")

PIN = Secret("1234-user")


def run_and_remove(tmp_path: Path, launcher: Launcher, **changes: object) -> Outcome:
    """A run on the token `office`, which is removed after the tenth signature."""
    gone = tmp_path / "removed"
    made = create_softhsm_token(tmp_path / "office", "office", PIN, Secret("5678-officer"))
    save_configuration("office", removable(made, tmp_path, gone))

    def remove(lab: LiveLab) -> None:
        lab.until("processed", 10)
        gone.touch()

    parameters = {
        "token": "office",
        "key_kind": "p-256",
        "arrivals": "constant",
        "rate": 40.0,
        "requests": 80,
        "pool_at_start": 20,
        "keys_at_start": 10,
        **changes,
    }
    return LiveLab(tmp_path / "run", launcher=launcher, during=remove, secrets={"pin office": PIN}).run(**parameters)


def test_a_removed_token_is_named(tmp_path: Path) -> None:
    outcome = run_and_remove(tmp_path, RoleThreads(), keys="generated")
    assert outcome.failure == "The token office is gone, and no other one is left: put it back and run again."
    (event,) = outcome.events_named("token gone")
    assert event.message.startswith("The token office is gone. ") and event.data["token"] == "office"


def test_with_several_tokens_the_run_continues_with_the_others(tmp_path: Path) -> None:
    several = {"further_tokens": "lab", "signers": 2, "threads": 2, "generators": 2, "generate": "idle"}
    outcome = run_and_remove(tmp_path, ServiceThread(), **several)
    assert outcome.failure is None
    assert outcome.figures["processed"] == 80
    assert {event.data["role"] for event in outcome.events_named("token gone")} >= {"signer-1"}
    assert outcome.verdicts["every request answered or counted as dropped"] == "pass"
    assert outcome.verdicts["no key used twice"] == "pass"
