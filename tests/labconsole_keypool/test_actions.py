"""Fill, purge, initialise and add, each in its own process on real SoftHSM2 tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.engine.action_process import ActionEnd, Outcome
from labconsole.locations import tokens_dir
from labconsole.security.secrets import Secret
from labconsole.security.token.inspection import inspect_token
from labconsole.security.token.lab_token import lab_token, make_softhsm_token
from labconsole.security.token.named_tokens import load_configurations, save_configuration
from labconsole.security.token.softhsm import library
from labconsole_keypool.actions import counts_of
from labconsole_keypool.key_records import Counts
from labconsole_keypool.token_actions import NEW_PIN, NEW_PIN_AGAIN, SO_PIN
from tests.helpers.actions import Actions

FILL, PURGE, INITIALISE, ADD = "keypool.fill", "keypool.purge", "keypool.initialise-token", "keypool.add-token"
PIN, NEW, OFFICER = Secret("1234-user"), Secret("4321-user"), Secret("5678-officer")


@pytest.fixture
def actions() -> Iterator[Actions]:
    opened = Actions()
    yield opened
    opened.close()


@pytest.fixture
def office(tmp_path: Path) -> None:
    """A token called office, labelled `partition-1`, whose PIN lies nowhere."""
    save_configuration("office", make_softhsm_token(tmp_path / "office", "partition-1", PIN, OFFICER))


def test_the_pool_is_filled_up_to_n_and_purged_after_its_label(actions: Actions) -> None:
    filled = actions.do(FILL, keys=20, key_kind="p-256")
    assert filled.outcome is Outcome.DONE and filled.sentence.startswith("The pool lab holds 20 key pairs; made in ")
    assert filled.sentence.endswith(": 20.") and counts_of("lab") == Counts(20, 0, 0, 0)
    again = actions.do(FILL, keys=20, key_kind="p-256")
    assert again == ActionEnd(Outcome.DONE, "The pool lab holds 20 key pairs: none was made.")
    refused = actions.do(PURGE, typed="lab")
    assert refused.outcome is Outcome.FAILED and counts_of("lab").new == 20
    purged = actions.do(PURGE, typed="labconsole")
    assert purged.sentence == "20 key pairs of the key store lab became invalid; it holds no new ones."
    assert counts_of("lab") == Counts(0, 0, 0, 20)


def test_a_cancelled_filling_keeps_what_was_made(actions: Actions) -> None:
    process = actions.start(FILL, keys=100_000, key_kind="p-256")
    actions.pump_until(process, lambda: process.progress is not None and process.progress.done > 0)
    assert process.progress is not None and process.progress.total == 100_000
    process.cancel()
    end = actions.end(process)
    kept = counts_of("lab").new
    assert end.outcome is Outcome.CANCELLED and 0 < kept < 100_000
    assert f"holds {kept:,} key pairs" in end.sentence


def test_a_store_that_was_never_made_holds_nothing() -> None:
    assert counts_of("unmade") == Counts(0, 0, 0, 0)


def objects(directory: Path) -> int:
    """Files of token objects: SoftHSM2 keeps a token's serial number when it is made anew."""
    return len(list((directory / "objects").rglob("*.object"))) - 1


def test_a_token_is_made_anew_only_after_its_label(actions: Actions) -> None:
    actions.do(FILL, keys=1, key_kind="p-256")
    assert objects(tokens_dir() / "lab") == 1, "the wrapper key"
    assert actions.do(INITIALISE, typed="lab").outcome is Outcome.FAILED
    assert objects(tokens_dir() / "lab") == 1
    done = actions.do(INITIALISE, typed="labconsole")
    assert done == ActionEnd(Outcome.DONE, "The token lab is empty now.")
    assert objects(tokens_dir() / "lab") == 0
    filled = actions.do(FILL, keys=3, key_kind="p-256")
    assert filled.outcome is Outcome.DONE and filled.sentence.endswith(": 2."), "under a new wrapper key"


def test_a_token_of_the_operators_gets_its_pin_from_the_dialog(actions: Actions, office: None) -> None:
    secrets = {SO_PIN: OFFICER, NEW_PIN: NEW, NEW_PIN_AGAIN: PIN}
    apart = actions.do(INITIALISE, token="office", typed="partition-1", secrets=secrets)
    assert apart.sentence == "The token office was not initialised: the new PIN was typed in two ways."
    assert not inspect_token("office", load_configurations()["office"], PIN).problem
    done = actions.do(INITIALISE, token="office", typed="partition-1", secrets={**secrets, NEW_PIN_AGAIN: NEW})
    assert done.outcome is Outcome.DONE and "Its new PIN is expected with the operator" in done.sentence
    assert not inspect_token("office", load_configurations()["office"], NEW).problem


def test_a_token_is_added_if_it_is_there(actions: Actions) -> None:
    lab_token()
    module = str(library())
    missing = actions.do(ADD, token="hsm", module="/nowhere.so", label="x")
    assert missing.outcome is Outcome.FAILED and missing.sentence.startswith("The token hsm was not added. ")
    unsaid = actions.do(ADD, token="hsm")
    assert unsaid.sentence == "Name the PKCS#11 module of the token's maker, and the label that the token has."
    file = tokens_dir() / "lab" / "pin"
    other = actions.do(ADD, token="hsm", module=module, label="nobody", passphrase_file=str(file))
    assert other.outcome is Outcome.FAILED and load_configurations() == {}
