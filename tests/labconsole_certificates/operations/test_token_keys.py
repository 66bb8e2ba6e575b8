"""A CA whose key is in a token (SoftHSM2): it signs all that a CA signs, and never leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from labconsole.errors import UserError
from labconsole.paths import pki_dir
from labconsole.security.pki.keys import keys_directory
from labconsole.security.pki.records import TokenKey
from labconsole.security.secrets import Secret, SecretSource
from labconsole.security.token.named_tokens import save_configuration
from labconsole.security.token.softhsm import library
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.key_types import KeyType
from labconsole_certificates.operations import own_csrs, received_csrs
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.export import Form, exported, pkcs12_bytes
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.revocation.crl_operations import publish_crl, revoke
from tests.helpers.openssl_command import run_openssl
from tests.helpers.softhsm_token import create_softhsm_token
from tests.labconsole_certificates.three_states import ThreeStates

pytestmark = pytest.mark.skipif(library() is None, reason="SoftHSM2 is needed")


PIN = Secret("1234-user")


@pytest.fixture
def office(tmp_path: Path) -> SecretSource:
    """A token called office whose PIN is not stored; and a file with its PIN."""
    save_configuration("office", create_softhsm_token(tmp_path / "office", "partition-1", PIN, Secret("5678-officer")))
    file = tmp_path / "pin"
    file.write_text(f"{PIN.reveal()}\n")
    file.chmod(0o600)
    return SecretSource(passphrase_file=file)


def test_a_ca_in_a_token_signs_certificates_and_crls(world: ThreeStates, office: SecretSource, tmp_path: Path) -> None:
    files = set(keys_directory(pki_dir()).iterdir())
    root = create_root(world.store, world.b, NewKey(KeyType.P_256, "office", office))
    snapshot = world.store.snapshot()
    place = snapshot.key_by_id[root.key or 0].place
    assert isinstance(place, TokenKey) and place.token == "office"
    assert set(keys_directory(pki_dir()).iterdir()) == files
    new, profile = NewKey(KeyType.P_256, "office"), CertificateProfile.TLS_CLIENT
    asked = own_csrs.make_request(world.store, world.a, world.b, new, profile, prompt=lambda _: PIN)
    assert isinstance(asked.csr.public_key(), ec.EllipticCurvePublicKey) and asked.csr.is_signature_valid
    issued = received_csrs.approve(world.store, asked, authority=root, prompt=lambda _: PIN)
    revoke(world.store, issued)
    crl = publish_crl(world.store, root, prompt=lambda _: PIN)
    snapshot = world.store.snapshot()
    (tmp_path / "root.pem").write_bytes(exported(snapshot, root))
    (tmp_path / "a.pem").write_bytes(exported(snapshot, issued))
    (tmp_path / "b.crl").write_bytes(exported(snapshot, crl, Form.DER))
    assert run_openssl("verify", "-CAfile", tmp_path / "root.pem", tmp_path / "a.pem").endswith("OK\n")
    assert "verify OK" in run_openssl(
        "crl", "-in", tmp_path / "b.crl", "-inform", "DER", "-noout", "-CAfile", tmp_path / "root.pem"
    )
    with pytest.raises(UserError, match="There is no passphrase for token partition-1"):
        publish_crl(world.store, root)
    with pytest.raises(UserError, match="is in the token office and never leaves it"):
        pkcs12_bytes(world.store, root, Secret("any"))


def test_a_refusal_of_the_token_changes_nothing(world: ThreeStates) -> None:
    before = world.rows()
    with pytest.raises(UserError, match="Keys of the type Ed25519 cannot be created in a token"):
        create_root(world.store, world.a, NewKey(KeyType.ED25519, token="lab"))
    with pytest.raises(UserError, match="nowhere"):
        create_root(world.store, world.a, NewKey(token="nowhere"))
    assert world.rows() == before
