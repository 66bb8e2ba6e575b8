"""Bundles with a signature next to them: what an import says of the signer, what it refuses, and what it keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from labconsole.agreements import signed_bundles
from labconsole.agreements.agreement_files import keep_results
from labconsole.errors import BadInput
from labconsole.paths import HOME_VARIABLE
from labconsole.store.reader import Reader
from tests.helpers.openssl_command import run_openssl
from tests.labconsole.agreements.agreement_files import add_run
from tests.labconsole.agreements.two_owners import Owner, new_owner


@dataclass(frozen=True)
class Signed:
    """A bundle of State B with its signature, and both consoles."""

    a: Owner
    b: Owner
    bundle: Path

    @property
    def signature(self) -> Path:
        return self.bundle.with_name(f"{self.bundle.name}.p7s")


@pytest.fixture
def signed(owners: tuple[Owner, Owner], tmp_path: Path) -> Signed:
    a, b = owners
    add_run(b.folder / "runs.db")
    made = Signed(a, b, tmp_path / "b.lcz")
    assert b.does("bundle", "1", made.bundle, "--sign", "b-signer").split() == [str(made.bundle), str(made.signature)]
    return made


def test_an_import_names_the_signer(signed: Signed) -> None:
    said = signed.a.does("import", signed.bundle, "--signed")
    assert said.startswith("Signed by b-signer of State B, trusted here")
    assert "Run 1 was imported." in said


def test_openssl_accepts_the_signature_and_finds_the_hash_of_the_bundle(signed: Signed, tmp_path: Path) -> None:
    statement = tmp_path / "statement.json"
    root = signed.b.root_file
    run_openssl("cms", "-verify", "-inform", "PEM", "-in", signed.signature, "-CAfile", root, "-out", statement)
    hashed = run_openssl("dgst", "-sha256", "-r", signed.bundle).split()[0]
    found = json.loads(statement.read_text())
    with Reader(signed.b.folder / "runs.db") as reader:
        evidence = reader.evidence(1)
        assert evidence is not None
        assert found["runs"] == [{"uuid": reader.run(1).row.uuid, "digest": evidence.digest}]
    assert found["bundle_sha256"] == hashed


def test_a_bundle_that_is_not_as_it_was_signed_is_refused(signed: Signed, tmp_path: Path) -> None:
    add_run(signed.b.folder / "runs.db")
    signed.b.does("bundle", "2", tmp_path / "other.lcz")
    signed.bundle.write_bytes((tmp_path / "other.lcz").read_bytes())
    refused = signed.a.refuses("import", signed.bundle)
    assert "It is not the bundle that b-signer of State B signed" in refused
    assert not (signed.a.folder / "runs.db").exists()


def test_a_changed_signature_is_refused(signed: Signed) -> None:
    text = signed.signature.read_text()
    place = len(text) // 2
    signed.signature.write_text(text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :])
    assert "was not imported, and nothing was changed" in signed.a.refuses("import", signed.bundle)


def test_a_signer_that_is_not_trusted_is_reported_and_refused_on_demand(signed: Signed, tmp_path: Path) -> None:
    c = new_owner(tmp_path / "c", "c")
    said = c.does("import", signed.bundle)
    assert "not trusted here" in said and "Run 1 was imported." in said
    assert "not trusted here" in c.refuses("import", signed.bundle, "--signed")


def test_a_bundle_without_signature_is_imported_but_not_on_demand(signed: Signed) -> None:
    signed.signature.unlink()
    assert "There is no signature b.lcz.p7s next to it" in signed.a.refuses("import", signed.bundle, "--signed")
    assert signed.a.does("import", signed.bundle) == "Run 1 was imported.\n"


def test_a_new_bundle_does_not_keep_the_signature_of_another_one(signed: Signed) -> None:
    assert "is the signature of another bundle" in signed.b.refuses("bundle", "1", signed.bundle)
    signed.b.does("bundle", "1", signed.bundle, "--sign", "b-signer")
    signed.a.does("import", signed.bundle, "--signed")


def test_whose_a_run_is_stays_known_and_is_checked_against_its_digest(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed.a.does("import", signed.bundle)
    monkeypatch.setenv(HOME_VARIABLE, str(signed.a.folder))
    with Reader(signed.a.folder / "runs.db") as reader:
        uuid, evidence = reader.run(1).row.uuid, reader.evidence(1)
    assert evidence is not None
    signer = signed_bundles.signer_of_run(uuid, evidence.digest)
    assert signer is not None and signer.trusted and signer.title == "b-signer of State B"
    with pytest.raises(BadInput, match="is not as b-signer of State B signed it"):
        signed_bundles.signer_of_run(uuid, "0" * 64)
    assert signed_bundles.signer_of_run("0" * 8 + uuid[8:], evidence.digest) is None
    with pytest.raises(BadInput, match="is not the uuid of a run"):
        keep_results("../../etc", b"")


def test_a_second_bundle_of_a_run_does_not_replace_its_signer(
    signed: Signed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = new_owner(tmp_path / "c", "c")
    signed.a.trust(c.state, c.issuer.certificate)
    c.does("import", signed.bundle)
    c.does("bundle", "1", tmp_path / "c.lcz", "--sign", "c-signer")
    signed.a.does("import", signed.bundle)
    said = signed.a.does("import", tmp_path / "c.lcz")
    assert said.startswith("Signed by c-signer of State C, trusted here") and "was there already" in said
    monkeypatch.setenv(HOME_VARIABLE, str(signed.a.folder))
    with Reader(signed.a.folder / "runs.db") as reader:
        uuid, evidence = reader.run(1).row.uuid, reader.evidence(1)
    assert evidence is not None
    signer = signed_bundles.signer_of_run(uuid, evidence.digest)
    assert signer is not None and signer.title == "b-signer of State B"
