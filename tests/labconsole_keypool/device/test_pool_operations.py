"""Fill, purge, initialise and add on real SoftHSM2 tokens; what loads a module itself does so in its own process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.engine.operation_process import OperationEnd, Outcome
from labconsole.model.operation import Confirmation
from labconsole.operations.configured_tokens import AddToken, AddTokenParameters
from labconsole.operations.token_initialisation import (
    NEW_PIN,
    NEW_PIN_AGAIN,
    SO_PIN,
    InitialiseParameters,
    InitialiseToken,
)
from labconsole.paths import tokens_dir
from labconsole.security.secrets import Secret
from labconsole.security.token.errors import TokenError
from labconsole.security.token.inspection import inspect_token
from labconsole.security.token.named_tokens import load_configurations, save_configuration
from labconsole.store.errors import StoreError
from labconsole_keypool.device.pool_operations import PurgeParameters, PurgePool, counts_of
from labconsole_keypool.store.key_records import Counts
from tests.helpers.operations import Operations
from tests.helpers.softhsm_token import create_softhsm_token

pytestmark = pytest.mark.usefixtures("lab_home")

FILL, INITIALISE = "keypool.fill", "keypool.initialise-token"
PIN, NEW, OFFICER = Secret("1234-user"), Secret("4321-user"), Secret("5678-officer")


@pytest.fixture
def actions() -> Iterator[Operations]:
    opened = Operations(in_threads=True)
    yield opened
    opened.close()


@pytest.fixture
def office(tmp_path: Path) -> None:
    """A token called office, labelled `partition-1`, whose PIN has no source."""
    save_configuration("office", create_softhsm_token(tmp_path / "office", "partition-1", PIN, OFFICER))


class Context:
    """`OperationContext` of an action that is done here: it loads no module."""

    stop_requested = False
    typed = ""

    def __init__(self, **secrets: Secret) -> None:
        self._secrets = secrets

    def progress(self, done: int, total: int) -> None: ...

    def say(self, sentence: str) -> None: ...

    def secret(self, key: str) -> Secret | None:
        return self._secrets.get(key)

    def hand_over(self, title: str, secret: Secret) -> None:
        raise AssertionError("there is nothing to be handed over")


def objects(directory: Path) -> int:
    """Files of token objects: SoftHSM2 keeps a token's serial number when it is reinitialised."""
    return len(list((directory / "objects").rglob("*.object"))) - 1


def test_the_pool_is_filled_up_to_n_and_purged(actions: Operations) -> None:
    filled = actions.do(FILL, keys=20, key_kind="p-256")
    assert filled.outcome is Outcome.DONE and filled.sentence.startswith("The pool lab holds 20 key pairs; made in ")
    assert filled.sentence.endswith(": 20.") and counts_of("lab") == Counts(20, 0, 0, 0)
    again = actions.do(FILL, keys=20, key_kind="p-256")
    assert again == OperationEnd(Outcome.DONE, "The pool lab holds 20 key pairs: none was made.")
    asked = PurgePool().confirmation(PurgeParameters())
    assert asked == Confirmation("labconsole", "20 key pairs in the key store lab will be lost.")
    purged = PurgePool().run(PurgeParameters(), Context())
    assert purged.text == "20 key pairs of the key store lab became invalid; it holds no new ones."
    assert counts_of("lab") == Counts(0, 0, 0, 20)


def test_the_terminal_has_commands_of_the_same_definitions(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["hsm", "fill", "--keys", "3", "--key-kind", "p-256", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"key_store": "lab", "token": "lab", "held": 3, "made": 3}
    assert main(["hsm", "purge"]) == 1
    refused = capfd.readouterr().err
    assert "3 key pairs in the key store lab will be lost. This must be confirmed by typing labconsole" in refused
    assert counts_of("lab") == Counts(3, 0, 0, 0)


def test_cancelled_fill_keeps_its_keys_and_token_is_reinitialised_by_label(actions: Operations) -> None:
    process = actions.start(FILL, keys=100_000, key_kind="p-256")
    actions.pump_until(process, lambda: process.progress is not None and process.progress.done > 0)
    assert process.progress is not None and process.progress.total == 100_000
    process.cancel()
    end = actions.end(process)
    kept = counts_of("lab").new
    assert end.outcome is Outcome.CANCELLED and 0 < kept < 100_000
    assert f"holds {kept:,} key pairs" in end.sentence
    assert actions.do(INITIALISE, typed="lab").outcome is Outcome.FAILED
    assert objects(tokens_dir() / "lab") == 1, "the wrapper key"
    assert actions.do(INITIALISE, typed="labconsole") == OperationEnd(Outcome.DONE, "The token lab is empty now.")
    assert objects(tokens_dir() / "lab") == 0
    filled = actions.do(FILL, keys=kept + 2, key_kind="p-256")
    assert filled.outcome is Outcome.DONE and filled.sentence.endswith(": 2."), "under a new wrapper key"


def test_a_store_that_was_never_made_holds_nothing_and_cannot_be_purged() -> None:
    assert counts_of("unmade") == Counts(0, 0, 0, 0)
    with pytest.raises(StoreError, match=r"There is no key store .*unmade\.db"):
        PurgePool().confirmation(PurgeParameters(key_store="unmade"))


def test_a_token_of_the_operators_gets_its_pin_from_the_dialog(office: None) -> None:
    action, parameters = InitialiseToken(), InitialiseParameters(token="office")
    assert [request.key for request in action.secrets(parameters)] == [SO_PIN, NEW_PIN, NEW_PIN_AGAIN]
    with pytest.raises(TokenError, match="To initialise the token office, its PINs are asked for"):
        action.run(parameters, Context())
    with pytest.raises(TokenError, match="The token office was not initialised: the new PIN was typed in two ways"):
        action.run(parameters, Context(**{SO_PIN: OFFICER, NEW_PIN: NEW, NEW_PIN_AGAIN: PIN}))
    done = action.run(parameters, Context(**{SO_PIN: OFFICER, NEW_PIN: NEW, NEW_PIN_AGAIN: NEW}))
    assert done.text == "The token office is empty now. Its new PIN is expected with the operator, who is asked for it."
    assert not inspect_token("office", load_configurations()["office"], NEW).problem


def test_a_token_is_added_if_it_is_there(tmp_path: Path) -> None:
    made = create_softhsm_token(tmp_path / "hsm", "partition-1", PIN, OFFICER)
    with pytest.raises(TokenError, match=r"Name the PKCS#11 module"):
        AddToken().run(AddTokenParameters(), Context())
    with pytest.raises(TokenError, match=r"The token hsm was not added\. .*nowhere\.so"):
        AddToken().run(AddTokenParameters(module=Path("/nowhere.so"), label="x"), Context())
    assert load_configurations() == {}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        result = AddToken().run(AddTokenParameters(module=made.module, label="partition-1"), Context())
    assert result.parts[0] == "The token hsm was added. Its PIN is expected with the operator, who is asked for it."
    assert load_configurations()["hsm"].label == "partition-1"
