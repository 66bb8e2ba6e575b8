"""Artefacts of a run for later checks: certificates, the payload's hash, a message; never a key."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from cryptography import x509

from labconsole.security.lab_identities import BROKER, STATE_A, STATE_B, lab_identities
from labconsole_amqp.wire.payload import load_payload
from tests.labconsole_amqp.lab import Lab, Outcome

pytestmark = pytest.mark.usefixtures("lab_home")


def kept(folder: Path, **settings: object) -> tuple[dict[str, bytes], Outcome]:
    lab = Lab(folder)
    outcome = lab.run(count=3, payload="small", **settings)
    assert outcome.failure is None
    return lab.artefacts, outcome


def test_a_plain_run_keeps_its_message_and_the_payloads_hash(tmp_path: Path) -> None:
    artefacts, outcome = kept(tmp_path / "run", test=1)
    payload = load_payload("small").data
    assert artefacts.keys() == {"payload.sha256", "message.amqp"}
    assert artefacts["payload.sha256"] == f"{hashlib.sha256(payload).hexdigest()}  small\n".encode()
    assert payload in artefacts["message.amqp"]
    assert len(artefacts["message.amqp"]) == outcome.figures["sent_size"]


def test_an_encrypted_run_keeps_all_certificates(tmp_path: Path) -> None:
    artefacts, outcome = kept(tmp_path / "run", test=4)
    lab = lab_identities()
    certificates = {
        "trust.pem": lab.authority_file,
        **{f"{role}.pem": lab.files(name).certificate for role, name in _LAB_ROLES.items()},
    }
    assert artefacts.keys() == {"payload.sha256", "message.amqp", *certificates}
    for name, path in certificates.items():
        assert x509.load_pem_x509_certificates(artefacts[name]) == x509.load_pem_x509_certificates(path.read_bytes())
    assert load_payload("small").data not in artefacts["message.amqp"]
    assert len(artefacts["message.amqp"]) == outcome.figures["sent_size"]


_LAB_ROLES = {"broker": BROKER, "sender": STATE_A, "receiver": STATE_B}


def test_a_key_in_a_certificate_file_is_not_kept(tmp_path: Path) -> None:
    lab = lab_identities()
    trust = tmp_path / "trust-and-key.pem"
    trust.write_bytes(lab.files(STATE_A).key.read_bytes() + lab.authority_file.read_bytes())
    artefacts, _ = kept(tmp_path / "run", test=2, trust=str(trust))
    assert x509.load_pem_x509_certificates(artefacts["trust.pem"])
    assert all(b"PRIVATE" not in content for content in artefacts.values())
