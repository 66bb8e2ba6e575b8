"""Keys that are pinned by file: saved encrypted, loaded by type, used in runs; the lab's are created on first use."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from pydantic import ValidationError

from labconsole.errors import UserError
from labconsole.paths import pki_dir
from labconsole.security.secrets import Secret
from labconsole_amqp.envelopes.encryption_keys import EncryptionKeyType, generate, load_private, load_public, save
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.amqp_trial import AmqpTrial
from labconsole_amqp.trial.lab_encryption_keys import lab_encryption_key
from tests.labconsole_amqp.lab import Lab, run

CANARY = "canary-9d1c"
LATTICE, HYBRID = EncryptionKeyType.ML_KEM_768, EncryptionKeyType.ML_KEM_768_X25519
ENVELOPES = {LATTICE: "ml-dsa-44", HYBRID: "hybrid"}


@pytest.mark.parametrize("type", EncryptionKeyType)
def test_a_saved_key_is_encrypted_and_its_owners_alone(type: EncryptionKeyType, tmp_path: Path) -> None:
    private, public = save(tmp_path, "key", type, Secret(CANARY))
    assert os.name != "posix" or stat.S_IMODE(private.stat().st_mode) == 0o600
    text = private.read_bytes()
    assert text.count(b"BEGIN ENCRYPTED PRIVATE KEY") == text.count(b"BEGIN") and CANARY.encode() not in text
    load_private(private, type, Secret(CANARY))
    load_public(public, type)
    other = next(one for one in EncryptionKeyType if one is not type)
    for wrong in (lambda: load_private(private, other, Secret(CANARY)), lambda: load_public(public, other)):
        with pytest.raises(UserError, match=f"has no {other.label} key"):
            wrong()
    for secret in (Secret("wrong"), None):
        with pytest.raises(UserError, match="cannot be opened: check the passphrase and the file"):
            load_private(private, type, secret)
    with pytest.raises(UserError, match="not a public key"):
        load_public(private, type)
    assert generate(type).public_key()


@pytest.mark.usefixtures("lab_home")
@pytest.mark.parametrize("type", EncryptionKeyType)
def test_the_labs_key_is_created_once_and_again_if_it_is_lost(type: EncryptionKeyType) -> None:
    first = lab_encryption_key(type)
    assert first.key is not None and first.public_key is not None
    assert first.key.parent == pki_dir() / "message-keys"
    before = first.key.read_bytes()
    assert lab_encryption_key(type) == first and first.key.read_bytes() == before
    first.public_key.unlink()
    lab_encryption_key(type)
    assert first.key.read_bytes() != before
    load_private(first.key, type, first.secret_source.resolve("the test"))


@pytest.mark.usefixtures("lab_home")
@pytest.mark.parametrize("type", EncryptionKeyType)
def test_a_run_with_the_operators_key_asks_for_its_passphrase(type: EncryptionKeyType, tmp_path: Path) -> None:
    private, public = save(tmp_path, "key", type, Secret(CANARY))
    settings = {
        "test": 4,
        "envelope": ENVELOPES[type],
        "receiver_encryption_key": str(private),
        "receiver_encryption_public_key": str(public),
    }
    [request] = AmqpTrial().secrets(AmqpParameters.model_validate(settings))
    assert request.source.must_be_asked() and "the receiver's encryption key" in request.purpose
    for other in ({"test": 3}, {"envelope": "compact"}, {"receiver_encryption_key": str(tmp_path / "missing")}):
        assert not list(AmqpTrial().secrets(AmqpParameters.model_validate({**settings, **other})))
    lab = Lab(tmp_path / "run", secrets={request.key: Secret(CANARY)})
    outcome = lab.run(count=5, payload="small", **settings)
    assert outcome.failure is None
    assert set(outcome.verdicts.values()) == {"pass"}
    assert outcome.artefacts["receiver-encryption-key.pem"] == public.read_bytes()
    assert not [name for name, content in outcome.artefacts.items() if b"PRIVATE" in content]


@pytest.mark.usefixtures("lab_home")
def test_a_key_of_another_type_or_half_a_pair_is_refused_with_a_sentence(tmp_path: Path) -> None:
    private, public = save(tmp_path, "key", LATTICE, Secret(CANARY))
    passphrase = tmp_path / "passphrase"
    passphrase.touch(0o600)
    passphrase.write_text(CANARY)
    outcome = run(
        tmp_path / "run",
        test=4,
        envelope="hybrid",
        count=5,
        receiver_encryption_key=str(private),
        receiver_encryption_public_key=str(public),
        receiver_passphrase_file=str(passphrase),
    )
    assert (
        outcome.failure is not None and "has no ML-KEM-768 with X25519 key, which the envelope needs" in outcome.failure
    )
    with pytest.raises(ValidationError, match="set both"):
        AmqpParameters(test=4, envelope="hybrid", receiver_encryption_key=str(private))  # type: ignore[arg-type]
