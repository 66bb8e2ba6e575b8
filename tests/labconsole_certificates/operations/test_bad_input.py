"""Damaged files at every door of the operations: each gets its sentence, and nothing of it stays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from labconsole.cli.main import main
from labconsole.errors import UserError
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.key_types import KeyType
from labconsole_certificates.operations import own_csrs, received_csrs
from labconsole_certificates.operations.authorities import import_authority
from labconsole_certificates.operations.certificate_import import import_certificates
from labconsole_certificates.operations.export import Form, exported
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.revocation.crl_operations import import_crl, publish_crl
from tests.helpers.authorities import new_authority
from tests.helpers.mutations import mutations
from tests.helpers.x509_keys import key_of
from tests.labconsole_certificates.three_states import ThreeStates

COUNT = 150


def _doors(world: ThreeStates) -> dict[str, tuple[bytes, Callable[[bytes], object]]]:
    """What comes in, and the operation that takes it."""
    store = world.store
    asked = own_csrs.make_request(store, world.a, world.b, NewKey(), CertificateProfile.TLS_CLIENT, names=["a.example"])
    root = world.root_b.certificate.public_bytes(Encoding.DER)
    crl = exported(store.snapshot(), publish_crl(store, world.root_b), Form.DER)
    key = key_of(KeyType.P_256).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return {
        "csr": (
            asked.csr.public_bytes(Encoding.DER),
            partial(received_csrs.import_request, store, world.c, world.b),
        ),
        "certificate": (root, partial(import_certificates, store)),
        "answer": (root, partial(own_csrs.import_certificate, store)),
        "crl": (crl, partial(import_crl, store)),
        "authority": (root, lambda data: import_authority(store, world.a, data, key)),
    }


@pytest.mark.parametrize("door", ["csr", "certificate", "answer", "crl", "authority"])
def test_damaged_files_are_refused_with_a_sentence(world: ThreeStates, door: str) -> None:
    data, importing = _doors(world)[door]
    refused = 0
    for mutated in mutations(data, COUNT, seed=7):
        before = world.rows()
        try:
            importing(mutated)
        except UserError as error:
            refused += 1
            assert str(error).endswith((".", "?")) and world.rows() == before
    assert refused > COUNT * 0.8


def test_a_certificate_stays_that_of_its_state(world: ThreeStates) -> None:
    data, before = world.root_b.certificate.public_bytes(Encoding.PEM), world.rows()
    with pytest.raises(UserError, match="State B Root CA is known as a certificate of State B, not of State C"):
        import_certificates(world.store, data, world.c)
    assert world.rows() == before
    assert import_certificates(world.store, data, world.b) == (world.root_b,)


def test_a_new_state_is_added_only_with_its_certificate(world: ThreeStates, tmp_path: Path) -> None:
    file, arguments = tmp_path / "root.pem", ["--state", " State  D ", "--add-state"]
    file.write_bytes(world.root_b.certificate.public_bytes(Encoding.PEM))
    before = world.rows()
    assert main(["pki", "take", str(file), "--state", "State D"]) == 1
    assert main(["pki", "take", str(file), *arguments]) == 1, "it is a certificate of State B"
    assert world.rows() == before

    file.write_bytes(new_authority("State D Root CA").certificate.public_bytes(Encoding.PEM))
    for _ in range(2):
        assert main(["pki", "take", str(file), *arguments]) == 0
    state, snapshot = world.store.state("State D"), world.store.snapshot()
    assert not state.local and snapshot.certificates[-1].state == state.id
    assert len(snapshot.states) == 4
