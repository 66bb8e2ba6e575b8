"""Messages that a key in a PKCS#11 token signs: SoftHSM, through a child process of the sender."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import psutil
import pytest

from labconsole.security.pki.records import Origin, TokenKey
from labconsole.security.secrets import Secret
from labconsole.security.token.lab_token import make_softhsm_token
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import save_configuration
from labconsole.security.token.remote_private_key import opened_new_token_key
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import issue
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.identities import RunIdentities
from labconsole_amqp.trial.messaging_run import role_specs
from tests.labconsole.security.pki.pki_lab import VALID, named
from tests.labconsole_amqp.lab import Outcome, ProcessLab
from tests.labconsole_amqp.link.test_revocation import States, states

__all__ = ["states"]

PIN = Secret("1234-user")
NAMES = {"sender_identity": "alpha-client", "receiver_identity": "beta-client", "broker_identity": "beta-broker"}


def in_token(states: States, name: str, kind: KeyKind, label: str = "") -> None:
    """An identity of Alpha whose key is in the token `office`; with `label` the database names that key instead."""
    with opened_new_token_key("office", name, kind, PIN) as key:
        public_key = key.public_key()
    profile = CertificateProfile.MESSAGE_SIGNING
    certificate = issue(states.alpha.issuer, public_key, named(name), (), profile, VALID)
    with states.store.change() as change:
        change.add_key(states.alpha.state.id, name, public_key, TokenKey("office", label or name))
        change.name_identity(name, change.add_certificate(certificate, origin=Origin.ISSUED, profile=profile).id)


@pytest.fixture
def office(states: States, tmp_path: Path) -> None:
    save_configuration("office", make_softhsm_token(tmp_path / "office", "office", PIN, Secret("5678-officer")))


def run(folder: Path, pin: Secret = PIN, **settings: Any) -> Outcome:
    values = {"payload": "small", "count": 20, "sender_message_identity": "signer", **NAMES}
    return ProcessLab(folder, secrets={"pin office": pin}).run(**values | settings)


@pytest.mark.usefixtures("office")
@pytest.mark.parametrize(
    ("test", "envelope", "kind"),
    [
        (3, "seed-2025", KeyKind.RSA_2048),
        (4, "cms", KeyKind.RSA_2048),
        (3, "cose", KeyKind.P_256),
        (3, "jose", KeyKind.P_256),
    ],
)
def test_a_key_in_a_token_signs_messages(
    states: States, test: int, envelope: str, kind: KeyKind, tmp_path: Path
) -> None:
    in_token(states, "signer", kind)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    outcome = run(tmp_path / "run", test=test, envelope=envelope)
    assert outcome.failure is None, outcome.failure
    figures = outcome.figures
    assert (figures["received"], figures["failed_verifications"], figures["lost"]) == (20, 0, 0)
    assert figures["sign_time"] > 0
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before, "the token's process is over"


@pytest.mark.usefixtures("office")
def test_the_pin_is_asked_for_and_only_the_sender_has_it(states: States) -> None:
    in_token(states, "signer", KeyKind.RSA_2048)
    parameters = AmqpParameters(test=3, sender_message_identity="signer", **NAMES)
    assert "pin office" in [request.key for request in AmqpTrial().secrets(parameters)]
    specs = list(chain.from_iterable(role_specs(parameters, RunIdentities(parameters))))
    assert [spec.name for spec in specs if "pin office" in [request.key for request in spec.secrets]] == ["sender-0"]
    assert not [spec for spec in specs if PIN.reveal() in repr(spec)]


@pytest.mark.usefixtures("office")
def test_a_wrong_pin_and_a_key_of_another_certificate_are_refused(states: States, tmp_path: Path) -> None:
    in_token(states, "signer", KeyKind.RSA_2048)
    wrong = run(tmp_path / "pin", Secret("4321-other"), test=3)
    assert wrong.failure is not None and "PIN" in wrong.failure and "4321" not in wrong.failure
    in_token(states, "other", KeyKind.RSA_2048, label="signer")
    mixed = run(tmp_path / "mixed", test=3, sender_message_identity="other")
    assert mixed.failure is not None and "does not belong to the certificate" in mixed.failure


@pytest.mark.usefixtures("office")
def test_a_receiver_cannot_decrypt_in_a_token(states: States, tmp_path: Path) -> None:
    in_token(states, "signer", KeyKind.RSA_2048)
    outcome = run(tmp_path / "run", test=4, sender_message_identity="", receiver_message_identity="signer")
    assert outcome.failure is not None and "is in a token" in outcome.failure
