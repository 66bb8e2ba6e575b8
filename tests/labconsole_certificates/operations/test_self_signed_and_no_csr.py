"""Without a CSR: self-signed and pinned, and the No-CSR method of the source with one PKCS#12."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import Name

from labconsole.errors import UserError
from labconsole.security.pki.records import Item, Origin, TrustKind
from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.fingerprints import grouped
from labconsole.security.x509.key_types import KeyType
from labconsole_certificates.operations import no_csr, received_csrs
from labconsole_certificates.operations.export import pkcs12_bytes
from labconsole_certificates.operations.identity_names import forget_identity, name_identity
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.removal import remove, restore
from labconsole_certificates.operations.self_signed import make_self_signed
from labconsole_certificates.trust.roots_and_pins import pin, trust_root
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of
from tests.labconsole_certificates.three_states import ThreeStates

PASSWORD = Secret("read-out-by-telephone")
TLS_CLIENT = CertificateProfile.TLS_CLIENT


def test_a_self_signed_certificate_is_pinned_by_its_whole_fingerprint(world: ThreeStates) -> None:
    record = make_self_signed(world.store, world.a, NewKey(), TLS_CLIENT, names=["a.example"])
    assert record.origin is Origin.SELF_SIGNED and record.key is not None
    for typed in ("", record.sha256[:60], world.root_a.sha256):
        with pytest.raises(UserError, match="That is not the fingerprint of State A TLS client"):
            pin(world.store, world.b, record, typed)
    assert world.store.snapshot().trusted_by(world.b.id, TrustKind.PIN) == ()
    row = pin(world.store, world.b, record, grouped(record.sha256).lower())
    assert world.store.snapshot().trusted_by(world.b.id, TrustKind.PIN) == (record,)
    with pytest.raises(UserError, match="State B trusts State A TLS client already"):
        pin(world.store, world.b, record, record.sha256)
    with world.store.change() as change:
        change.withdraw_trust(row.id)
    assert world.store.snapshot().trusted_by(world.b.id, TrustKind.PIN) == ()


def test_roots_are_trusted_and_end_certificates_are_pinned(world: ThreeStates) -> None:
    end = world.certified(world.a, world.b)
    with pytest.raises(UserError, match="is not a root CA"):
        trust_root(world.store, world.a, end, end.sha256)
    with pytest.raises(UserError, match="is a CA: trust it as a root"):
        pin(world.store, world.a, world.root_b, world.root_b.sha256)
    with pytest.raises(UserError, match="State C is a State of another console"):
        trust_root(world.store, world.c, world.root_b, world.root_b.sha256)
    trust_root(world.store, world.a, world.root_b, grouped(world.root_b.sha256))
    assert world.store.snapshot().trusted_by(world.a.id, TrustKind.ROOT) == (world.root_a, world.root_b)


def test_the_no_csr_method_produces_one_pkcs12_that_is_imported(world: ThreeStates, tmp_path: Path) -> None:
    keys = len(world.store.snapshot().keys)
    made = no_csr.make_for_client(
        world.store, world.b, world.a, KeyType.P_256, TLS_CLIENT, PASSWORD, names=["a.example"]
    )
    after = world.store.snapshot()
    assert len(after.keys) == keys and made.certificate.key is None and after.handovers[-1].item is Item.PKCS12
    file = tmp_path / "a.p12"
    file.write_bytes(made.pkcs12)
    said = run_openssl("pkcs12", "-in", file, "-passin", f"pass:{PASSWORD.reveal()}", "-nokeys")
    assert said.count("BEGIN CERTIFICATE") == 2
    before = world.rows()
    with pytest.raises(UserError, match="the passphrase is wrong"):
        no_csr.import_pkcs12(world.store, world.a, made.pkcs12, Secret("wrong"))
    assert world.rows() == before
    record = no_csr.import_pkcs12(world.store, world.a, made.pkcs12, PASSWORD, sender=world.b)
    assert record.sha256 == made.certificate.sha256 and record.key is not None


def test_a_type_that_no_pkcs12_holds_is_refused_before_anything_is_issued(world: ThreeStates) -> None:
    before = world.rows()
    with pytest.raises(UserError, match="ML-DSA"):
        no_csr.make_for_client(world.store, world.b, world.a, KeyType.ML_DSA_44, TLS_CLIENT, PASSWORD)
    with pytest.raises(UserError, match="password"):
        no_csr.make_for_client(world.store, world.b, world.a, KeyType.P_256, TLS_CLIENT, Secret(""))
    assert world.rows() == before


def test_only_certificates_with_their_key_here_are_exported_with_it_or_named(world: ThreeStates) -> None:
    csr = create_csr(key_of(KeyType.P_256), Name.from_rfc4514_string("CN=client of C"), (), TLS_CLIENT)
    taken = received_csrs.import_request(world.store, world.c, world.b, csr.public_bytes(Encoding.DER))
    issued = received_csrs.approve(world.store, taken)
    with pytest.raises(UserError, match="The private key of client of C is not here"):
        pkcs12_bytes(world.store, issued, PASSWORD)
    with pytest.raises(UserError, match="no key"):
        name_identity(world.store, "c", issued)
    with pytest.raises(UserError, match="is a CA"):
        name_identity(world.store, "ca", world.root_a)


def test_what_is_used_stays_and_what_is_removed_comes_back(world: ThreeStates) -> None:
    record = world.certified(world.a, world.b)
    name_identity(world.store, "a-to-b", record)
    with pytest.raises(UserError, match="The identity a-to-b uses"):
        remove(world.store, record)
    forget_identity(world.store, "a-to-b")
    hidden = remove(world.store, record)
    assert hidden.removed is not None
    with pytest.raises(UserError, match="was removed before"):
        remove(world.store, hidden)
    with pytest.raises(UserError, match="is hidden: restore it"):
        name_identity(world.store, "a-to-b", hidden)
    assert restore(world.store, hidden).removed is None
