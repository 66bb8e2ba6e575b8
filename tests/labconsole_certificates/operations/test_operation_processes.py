"""Actions in their own processes: secrets are asked for before, and the last sentence is the result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509.ocsp import OCSPCertStatus

from labconsole.engine.operation_process import Outcome
from labconsole.errors import UserError
from labconsole.model.plugin import Plugins
from labconsole.security.pki.records import RequestStatus
from labconsole.security.secrets import Secret, missing_secrets
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.names import short_name
from labconsole.security.x509.parsing import read_pkcs12
from labconsole_certificates.manifest import plugin
from labconsole_certificates.operations import received_csrs
from labconsole_certificates.operations.export import ExportPkcs12, ExportPkcs12Parameters
from labconsole_certificates.operations.received_csrs import ApproveRequest, ApproveRequestParameters
from labconsole_certificates.operations.states import claim_domain
from labconsole_certificates.revocation.crl_operations import Revoke, RevokeParameters
from labconsole_certificates.revocation.ocsp_check import ask
from labconsole_certificates.trust.roots_and_pins import trust_root
from tests.helpers.operations import Operations
from tests.labconsole_certificates.three_states import ThreeStates

PLUGINS = Plugins((plugin,))


class Here:
    """`OperationContext` of an action that is done in this process."""

    stop_requested = False
    typed = ""

    def __init__(self, secrets: dict[str, Secret]) -> None:
        self._secrets = secrets

    def progress(self, done: int, total: int) -> None: ...

    def say(self, sentence: str) -> None: ...

    def secret(self, key: str) -> Secret | None:
        return self._secrets.get(key)

    def hand_over(self, title: str, secret: Secret) -> None: ...


@pytest.fixture
def actions() -> Iterator[Operations]:
    opened = Operations(in_threads=True)
    yield opened
    opened.close()


def _asked(name: str, **parameters: Any) -> list[str]:
    """What the operator is asked for before the action starts: the keys of the secrets."""
    action = PLUGINS.operation(name)
    missing = missing_secrets(action.secrets(action.parameters.model_validate(parameters)))
    return [request.key for request in missing]


def test_every_action_has_a_title_and_a_form() -> None:
    for name in plugin.operations:
        action = PLUGINS.operation(name)
        assert action.name == name and action.title and action.description.endswith(".")
        assert all(field.title for field in action.parameters.model_fields.values()), name


def test_a_passphrase_of_one_s_own_opens_the_ca_when_it_is_asked_for(world: ThreeStates, actions: Operations) -> None:
    assert _asked("certificates.create-root", state="State A") == []
    keys = _asked("certificates.create-root", state="State A", protection="asked")
    assert keys == ["new-passphrase", "new-passphrase-again"]
    typed = dict.fromkeys(keys, Secret("mine-1357"))
    end = actions.do("certificates.create-root", secrets=typed, state="State A", protection="asked")
    assert end.outcome is Outcome.DONE, end.sentence
    assert "The CA State A Root CA was created. Its fingerprint: SHA-256 " in end.sentence
    request = world.asks(world.b, world.a)
    [key] = _asked("certificates.approve-request", request=request.id)
    parameters = ApproveRequestParameters(request=request.id)
    with pytest.raises(UserError, match="the passphrase is wrong"):
        ApproveRequest().run(parameters, Here({key: Secret("wrong")}))
    assert world.store.snapshot().requests[0].status is RequestStatus.RECEIVED
    ApproveRequest().run(parameters, Here({key: Secret("mine-1357")}))
    assert world.store.snapshot().requests[0].status is RequestStatus.APPROVED


def test_a_certificate_leaves_with_its_key_under_a_password_typed_twice(
    world: ThreeStates, actions: Operations, tmp_path: Path
) -> None:
    record, file = world.certified(world.a, world.b), tmp_path / "a.p12"
    parameters: dict[str, Any] = {"certificate": record.sha256, "file": str(file)}
    first, again = _asked("certificates.export-pkcs12", **parameters)
    two_ways = {first: Secret("one"), again: Secret("two")}
    with pytest.raises(UserError, match="typed in two ways"):
        ExportPkcs12().run(ExportPkcs12Parameters(**parameters), Here(two_ways))
    assert not file.exists()
    end = actions.do("certificates.export-pkcs12", secrets=dict.fromkeys([first, again], Secret("one")), **parameters)
    assert end.outcome is Outcome.DONE, end.sentence
    assert read_pkcs12(file.read_bytes(), Secret("one")).certificate == record.certificate
    assert file.stat().st_mode & 0o777 == 0o600


def test_refusals_come_before_any_prompt(world: ThreeStates, tmp_path: Path) -> None:
    record, there = world.certified(world.a, world.b), tmp_path / "there.p12"
    there.touch()
    for name, parameters, why in (
        ("export-pkcs12", {"certificate": record.sha256, "file": str(there)}, "is there already"),
        ("create-root", {"state": "State C"}, "State of another console"),
        ("create-root", {"state": "State A", "token": "nowhere"}, "nowhere"),
        ("approve-request", {"request": 9}, "There is no request 9"),
        ("publish-crl", {"authority": "0" * 64}, "No certificate here"),
        ("import-authority", {"state": "State A", "file": str(tmp_path / "no.pem")}, r"no\.pem"),
        ("import-pkcs12", {"state": "State A", "file": str(tmp_path / "no.p12")}, r"no\.p12 does not exist"),
        ("make-request", {"state": "State A", "issuer": "State B", "file": str(there)}, "is there already"),
    ):
        with pytest.raises(UserError, match=why):
            _asked(f"certificates.{name}", **parameters)


def test_two_states_are_proven_by_an_action(world: ThreeStates) -> None:
    """In its process, as all actions of the window are."""
    for one, other, root in ((world.a, world.b, world.root_b), (world.b, world.a, world.root_a)):
        trust_root(world.store, one, root, root.sha256)
        world.certified(one, other)
        asked = world.asks(one, one, f"broker.{one.domain}", profile=CertificateProfile.TLS_SERVER)
        received_csrs.approve(world.store, asked)
    assert _asked("certificates.prove", state_a="State A", state_b="State B") == []
    with closing(Operations()) as actions:
        end = actions.do("certificates.prove", state_a="State A", state_b="State B")
    assert end.outcome is Outcome.DONE, end.sentence
    assert "[State A] -> tls-connect -> [State B] passed (TLSv1.3" in end.sentence
    assert len(world.store.snapshot().proofs) == 2
    claim_domain(world.store, world.b, "elsewhere.example")
    with closing(Operations(in_threads=True)) as actions:
        refused = actions.do("certificates.prove", state_a="State A", state_b="State B")
    assert refused.outcome is Outcome.DONE and not refused.passed
    assert "[State A] -> tls-connect -> [State B] failed." in refused.sentence


def test_the_ocsp_responder_answers_until_it_is_cancelled(world: ThreeStates, actions: Operations) -> None:
    record = world.certified(world.a, world.b)
    process = actions.start("certificates.serve-ocsp", authority=world.root_b.sha256)
    actions.pump_until(process, lambda: "http://" in process.said)
    url = next(word for word in process.said.split() if word.startswith("http://"))
    answer = ask(url, record.certificate, world.root_b.certificate)
    assert answer.status is OCSPCertStatus.GOOD
    process.cancel()
    end = actions.end(process)
    assert end.outcome is Outcome.CANCELLED and "requests that it answered: 1" in end.sentence


def test_a_revocation_of_the_window_is_confirmed_by_the_name_of_the_certificate(
    actions: Operations, world: ThreeStates
) -> None:
    record = world.certified(world.a, world.b, "a.example")
    name = short_name(record.certificate)
    asked = Revoke().confirmation(RevokeParameters(certificate=record.sha256))
    assert asked is not None and asked.text == name
    assert asked.loss.startswith(f"{name} of State A is no longer accepted as soon as peers have the next CRL.")
    for typed in ("", "yes", name[:-1]):
        end = actions.do("certificates.revoke", typed=typed, certificate=record.sha256)
        assert (end.outcome, end.sentence[:16]) == (Outcome.FAILED, "Nothing was done")
    assert world.store.certificate(record.id).revoked is None
    assert actions.do("certificates.revoke", typed=name, certificate=record.sha256).outcome is Outcome.DONE
    assert world.store.certificate(record.id).revoked is not None
    with pytest.raises(UserError, match="signed itself"):
        Revoke().confirmation(RevokeParameters(certificate=world.root_a.sha256))
