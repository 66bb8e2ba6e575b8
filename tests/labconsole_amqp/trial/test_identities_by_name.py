"""Runs with identities by name from the certificate database: trust of each end, refusals, secrets."""

from __future__ import annotations

import ssl
from itertools import chain
from pathlib import Path

import pytest
from cryptography import x509
from pydantic import ValidationError

from labconsole.paths import HOME_VARIABLE, pki_dir
from labconsole.security.pki.records import Origin, TokenKey, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.key_types import KeyType, generate
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.identities import RoleName, RunIdentities
from labconsole_amqp.trial.messaging_run import role_specs
from tests.labconsole.security.pki.pki_lab import OwnState, issue_for
from tests.labconsole_amqp.lab import Lab, Outcome
from tests.labconsole_amqp.states import NAMES, name_identity

CANARY = "canary-61b0"


@pytest.fixture(scope="module")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """State Alpha, whose client has a certificate of Beta's CA and trusts Beta's root; Beta with broker and client."""
    home = tmp_path_factory.mktemp("by-name")
    with pytest.MonkeyPatch.context() as patch, PkiStore.open(home / "pki") as store:
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        alpha, beta = OwnState(store, "Alpha"), OwnState(store, "Beta")
        name_identity(store, alpha, beta, "alpha-client")
        name_identity(store, beta, beta, "beta-client")
        name_identity(store, beta, beta, "beta-broker", CertificateProfile.TLS_SERVER)
        name_identity(store, alpha, alpha, "alpha-unknown")
        name_identity(store, beta, beta, "beta-ec", type=KeyType.P_256)
        name_identity(store, beta, beta, "beta-ml-dsa", CertificateProfile.TLS_CLIENT, KeyType.ML_DSA_44)
        name_identity(store, alpha, beta, "alpha-ec", type=KeyType.P_256)
        name_identity(store, alpha, alpha, "alpha-signer")
        name_identity(store, beta, beta, "beta-reader")
        name_identity(store, beta, beta, "beta-reader-asked", passphrase=CANARY)
        name_identity(store, beta, beta, "beta-asked", type=KeyType.P_256, passphrase=CANARY)
        key = generate(KeyType.P_256)
        with store.change() as change:
            change.trust(alpha.state.id, beta.root.id, TrustKind.ROOT, "by the test")
            change.add_key(beta.state.id, "in token", key.public_key(), TokenKey("hsm", "in token"))
            in_token = change.add_certificate(issue_for(beta.issuer, key, "in token"), origin=Origin.ISSUED)
            change.name_identity("beta-token", in_token.id)
    return home


@pytest.fixture(autouse=True)
def home(own_home: Path, shared_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data directory with the database."""
    monkeypatch.setenv(HOME_VARIABLE, str(shared_home))
    return shared_home


def run(folder: Path, secrets: dict[str, Secret] | None = None, **settings: object) -> Outcome:
    return Lab(folder, secrets=secrets).run(count=5, payload="small", **(NAMES | settings))


@pytest.mark.parametrize("test", [2, 4])
def test_two_states_by_name(tmp_path: Path, test: int) -> None:
    outcome = run(tmp_path / "run", test=test)
    assert outcome.failure is None
    assert outcome.verdicts["all messages arrived"] == "pass"
    with PkiStore.open(pki_dir()) as store:
        snapshot = store.snapshot()
    by_name = {
        identity.name: snapshot.certificate_by_id[identity.certificate].certificate for identity in snapshot.identities
    }
    for parameter, name in NAMES.items():
        kept = outcome.artefacts[f"{parameter.removesuffix('_identity')}.pem"]
        assert x509.load_pem_x509_certificates(kept) == [by_name[name]]
    roots = {record.certificate.subject.rfc4514_string(): record.certificate for record in snapshot.certificates}
    alpha, beta = roots["CN=Alpha Root CA"], roots["CN=Beta Root CA"]
    assert x509.load_pem_x509_certificates(outcome.artefacts["sender-trust.pem"]) == [alpha, beta]
    assert x509.load_pem_x509_certificates(outcome.artefacts["broker-trust.pem"]) == [beta]
    assert not [name for name, content in outcome.artefacts.items() if b"PRIVATE" in content]


@pytest.mark.parametrize("envelope", ["cose", "jose"])
def test_messages_are_protected_by_identities_with_the_keys_of_the_envelope(tmp_path: Path, envelope: str) -> None:
    keys = {"sender_message_identity": "alpha-ec", "receiver_message_identity": "beta-ec"}
    outcome = run(tmp_path / "run", test=4, envelope=envelope, **keys)
    assert outcome.failure is None
    assert set(outcome.verdicts.values()) == {"pass"}


def test_a_certificate_of_a_ca_that_the_broker_does_not_trust_is_refused(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", test=2, sender_identity="alpha-unknown")
    assert outcome.failure is not None
    assert "it does not know the CA" in outcome.failure
    assert "alpha-unknown-" in outcome.failure


def test_the_labs_end_does_not_trust_a_states_broker(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", test=2, sender_identity="")
    assert outcome.failure is not None
    assert "is not trusted by" in outcome.failure


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"test": 2, "sender_identity": "gamma"}, "There is no identity gamma: choose one of alpha-client"),
        ({"test": 2, "sender_identity": "beta-token"}, "is in a token, and TLS needs a key file"),
        (
            {"test": 3, "sender_identity": "beta-ec"},
            "beta-ec is not RSA, with which messages of the envelope seed-2025 are signed",
        ),
        (
            {"test": 4, "receiver_identity": "beta-ec"},
            "not RSA, with which messages of the envelope seed-2025 are encrypted",
        ),
        (
            {"test": 3, "sender_message_identity": "alpha-ec"},
            "alpha-ec is not RSA, with which messages of the envelope",
        ),
        ({"test": 3, "envelope": "cose"}, "alpha-client is not ECDSA P-256, with which messages of the envelope cose"),
        (
            {"test": 4, "envelope": "compact", "receiver_message_identity": "beta-ec"},
            "beta-ec is not RSA, with which messages of the envelope compact are encrypted",
        ),
        ({"test": 4, "receiver_message_identity": "gamma"}, "There is no identity gamma"),
    ],
)
def test_unusable_identities_are_reported_before_anything_starts(
    tmp_path: Path, settings: dict[str, object], sentence: str
) -> None:
    lab = Lab(tmp_path / "run")
    outcome = lab.run(count=5, payload="small", **(NAMES | settings))
    assert outcome.failure is not None and sentence in outcome.failure
    assert lab.started == []


@pytest.mark.skipif(ssl.OPENSSL_VERSION_INFO >= (3, 5), reason="TLS here knows ML-DSA")
def test_a_key_type_that_tls_does_not_support_is_reported(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", test=2, sender_identity="beta-ml-dsa")
    assert outcome.failure is not None and "beta-ml-dsa is ML-DSA, which TLS here (OpenSSL" in outcome.failure


def test_ecdsa_keys_work_where_nothing_is_signed(tmp_path: Path) -> None:
    assert run(tmp_path / "run", test=2, receiver_identity="beta-ec").failure is None
    assert run(tmp_path / "run-3", test=3, receiver_identity="beta-ec").failure is None


MESSAGES = {
    "sender_identity": "alpha-ec",
    "receiver_identity": "beta-ec",
    "sender_message_identity": "alpha-signer",
    "receiver_message_identity": "beta-reader",
}


@pytest.mark.parametrize("test", [3, 4])
def test_messages_have_keys_of_their_own_next_to_tls(tmp_path: Path, test: int) -> None:
    outcome = run(tmp_path / "run", test=test, **MESSAGES)
    assert outcome.failure is None and outcome.verdicts["all messages were accepted"] == "pass"
    with PkiStore.open(pki_dir()) as store:
        snapshot = store.snapshot()
    by_name = {one.name: snapshot.certificate_by_id[one.certificate].certificate for one in snapshot.identities}
    messages = {"sender-message.pem": "alpha-signer"} | ({"receiver-message.pem": "beta-reader"} if test == 4 else {})
    kept = {"sender.pem": "alpha-ec", "receiver.pem": "beta-ec", **messages}
    for file, name in kept.items():
        assert x509.load_pem_x509_certificates(outcome.artefacts[file]) == [by_name[name]]
    assert ("receiver-message.pem" in outcome.artefacts) == (test == 4)


def test_a_message_that_another_key_has_signed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver verifies with the message certificate, not with that of TLS."""
    right = RunIdentities.certificate

    def certificate(self: RunIdentities, role: RoleName) -> Path:
        return right(self, "broker" if role == "sender_message" else role)

    monkeypatch.setattr(RunIdentities, "certificate", certificate)
    outcome = run(tmp_path / "run", test=3, **MESSAGES)
    assert outcome.figures["failed_verifications"] == 5


def test_the_passphrase_of_a_message_key_is_asked_for(tmp_path: Path) -> None:
    settings = {"test": 4, "receiver_message_identity": "beta-reader-asked"}
    requests = AmqpTrial().secrets(AmqpParameters.model_validate({**NAMES, **settings}))
    (asked,) = [one for one in requests if one.source.must_be_asked()]
    assert asked.purpose.startswith("the key of the receiver's messages (identity beta-reader-asked), ")
    lab = Lab(tmp_path / "run", secrets={asked.key: Secret(CANARY)})
    assert lab.run(count=5, payload="small", **(NAMES | settings)).failure is None
    not_encrypted = AmqpParameters.model_validate({**NAMES, **settings, "test": 3})
    assert not any(one.source.must_be_asked() for one in AmqpTrial().secrets(not_encrypted))


def test_a_passphrase_that_the_operator_knows_is_asked_for(tmp_path: Path) -> None:
    settings = {"test": 2, "count": 5, "payload": "small"} | NAMES | {"receiver_identity": "beta-asked"}
    [request] = AmqpTrial().secrets(AmqpParameters.model_validate(settings))[1:2]
    assert request.purpose.startswith("the key of the receiver (identity beta-asked), ")
    assert [one.source.must_be_asked() for one in AmqpTrial().secrets(AmqpParameters.model_validate(settings))] == [
        False,
        True,
        False,
    ]
    parameters = AmqpParameters.model_validate(settings)
    specs = chain.from_iterable(role_specs(parameters, RunIdentities(parameters)))
    allowed = {role.name: {one.key for one in role.secrets} for role in specs}
    assert request.key in allowed["receiver-0"] and request.key not in allowed["sender-0"]
    with pytest.raises(Exception, match="There is no passphrase for"):
        request.resolve()
    assert request.resolve(lambda _: Secret(CANARY)).reveal() == CANARY


def test_an_identity_is_named_once() -> None:
    with pytest.raises(ValidationError, match="`sender_identity` names that identity already"):
        AmqpParameters(test=2, sender_identity="alpha-client", sender_certificate="a.pem", sender_key="a.key")


def test_plain_runs_read_no_certificate_database(tmp_path: Path) -> None:
    assert run(tmp_path / "run", test=1, sender_identity="gamma").failure is None
