"""Messages that a key in a PKCS#11 token signs: SoftHSM, through a child process of the sender."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from labconsole.security.secrets import Secret
from labconsole.security.token.mechanisms import KeyKind
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.identities import RunIdentities
from labconsole_amqp.trial.messaging_run import role_specs
from tests.helpers.forked_programs import own_children
from tests.labconsole_amqp.lab import Lab, Outcome, ProcessLab
from tests.labconsole_amqp.message_token import OTHER_KEY, PIN, SIGNERS
from tests.labconsole_amqp.states import NAMES


def run(folder: Path, pin: Secret = PIN, lab: type[Lab] = Lab, **settings: Any) -> Outcome:
    values = {"payload": "small", "count": 20, **NAMES}
    return lab(folder, secrets={"pin office": pin}).run(**values | settings)


@pytest.mark.usefixtures("office")
@pytest.mark.parametrize(
    ("test", "envelope", "kind", "lab"),
    [
        (3, "seed-2025", KeyKind.RSA_2048, Lab),
        (4, "cms", KeyKind.RSA_2048, ProcessLab),
        (3, "cose", KeyKind.P_256, Lab),
        (3, "jose", KeyKind.P_256, Lab),
    ],
)
def test_a_key_in_a_token_signs_messages(
    test: int, envelope: str, kind: KeyKind, lab: type[Lab], tmp_path: Path
) -> None:
    before = own_children()
    outcome = run(tmp_path / "run", lab=lab, test=test, envelope=envelope, sender_message_identity=SIGNERS[kind])
    assert outcome.failure is None, outcome.failure
    figures = outcome.figures
    assert (figures["received"], figures["failed_verifications"], figures["lost"]) == (20, 0, 0)
    assert figures["sign_time"] > 0
    assert own_children() <= before, "the token's process is over"


RSA_SIGNER = SIGNERS[KeyKind.RSA_2048]


@pytest.mark.usefixtures("office")
def test_the_pin_is_asked_for_and_only_the_sender_has_it() -> None:
    parameters = AmqpParameters(test=3, sender_message_identity=RSA_SIGNER, **NAMES)
    assert "pin office" in [request.key for request in AmqpTrial().secrets(parameters)]
    specs = list(chain.from_iterable(role_specs(parameters, RunIdentities(parameters))))
    assert [spec.name for spec in specs if "pin office" in [request.key for request in spec.secrets]] == ["sender-0"]
    assert not [spec for spec in specs if PIN.reveal() in repr(spec)]


@pytest.mark.usefixtures("office")
def test_a_wrong_pin_and_a_key_of_another_certificate_are_refused(tmp_path: Path) -> None:
    wrong = run(tmp_path / "pin", Secret("4321-other"), test=3, sender_message_identity=RSA_SIGNER)
    assert wrong.failure is not None and "PIN" in wrong.failure and "4321" not in wrong.failure
    mixed = run(tmp_path / "mixed", test=3, sender_message_identity=OTHER_KEY)
    assert mixed.failure is not None and "does not belong to the certificate" in mixed.failure


@pytest.mark.usefixtures("office")
def test_a_receiver_cannot_decrypt_in_a_token(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", test=4, receiver_message_identity=RSA_SIGNER)
    assert outcome.failure is not None and "is in a token" in outcome.failure
