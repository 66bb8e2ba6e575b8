"""Which secrets a run of the AMQP trial may need, and which role may ask for which."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from labconsole.model.plugin import Plugins
from labconsole.profiles.needed_secrets import needed_secrets
from labconsole.security.secrets import missing_secrets
from labconsole.store.records import NewScenario
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.identities import RunIdentities
from labconsole_amqp.trial.messaging_run import role_specs
from tests.helpers.authorities import new_authority
from tests.helpers.identities import write_identity


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Parameters with the operator's own identities at a foreign broker."""
    folder = tmp_path_factory.mktemp("own")
    authority = new_authority("Own CA")
    sender, receiver = (write_identity(folder, name, authority) for name in ("x", "y"))
    return {
        "test": 4,
        "broker": "external",
        "host": "broker.example",
        "port": 5671,
        "username": "operator",
        "trust": str(sender.trust),
        "sender_certificate": str(sender.certificate),
        "sender_key": str(sender.key),
        "receiver_certificate": str(receiver.certificate),
        "receiver_key": str(receiver.key),
    }


def purposes(settings: dict[str, Any]) -> list[str]:
    return [request.purpose for request in AmqpTrial().secrets(AmqpParameters(**settings))]


def test_password_and_own_keys_are_needed_by_the_end_that_has_them(own: dict[str, Any]) -> None:
    user, sender, receiver = (
        "user operator at broker.example",
        f"the key of the sender, {own['sender_key']}",
        f"the key of the receiver, {own['receiver_key']}",
    )
    assert purposes(own) == [user, sender, receiver]
    assert purposes(own | {"mode": "sender"}) == [user, sender]
    assert purposes(own | {"mode": "receiver"}) == [user, receiver]
    assert purposes(own | {"test": 1}) == [user]
    assert purposes(own | {"username": ""}) == [sender, receiver]
    assert purposes({"test": 4}) == [], "lab identities never ask"


def test_a_key_that_is_open_or_unreadable_needs_no_passphrase(own: dict[str, Any], tmp_path: Path) -> None:
    assert purposes(own | {"username": "", "mode": "sender", "sender_key": str(tmp_path / "none.pem")}) == []


def test_a_role_may_ask_for_its_own_secrets_only(own: dict[str, Any]) -> None:
    parameters = AmqpParameters(**own)
    password, sender, receiver = (request.key for request in AmqpTrial().secrets(parameters))
    specs = chain.from_iterable(role_specs(parameters, RunIdentities(parameters)))
    allowed = {role.name: {request.key for request in role.secrets} for role in specs}
    assert allowed == {"receiver-0": {receiver, password}, "sender-0": {sender, password}}


def test_a_campaign_asks_once_for_each_secret_and_not_for_what_a_file_holds(own: dict[str, Any]) -> None:
    scenarios = [
        NewScenario(str(test), AmqpTrial.kind, AmqpParameters(**own | {"test": test}).model_dump(mode="json"))
        for test in (1, 2, 3, 4)
    ]
    needed = needed_secrets(scenarios, Plugins.discover())
    assert len(needed) == 3
    assert missing_secrets(needed) == needed
    named = own | {"password_file": "/nowhere/password", "sender_passphrase_file": "/nowhere/passphrase"}
    some = needed_secrets(
        [NewScenario("named", AmqpTrial.kind, AmqpParameters(**named).model_dump(mode="json"))], Plugins.discover()
    )
    assert [request.purpose for request in missing_secrets(some)] == [f"the key of the receiver, {own['receiver_key']}"]
