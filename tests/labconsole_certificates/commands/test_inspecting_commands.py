"""`labconsole pki show | compare | list | check | export | audit`: files with passwords, and JSON for scripts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from labconsole.cli.main import main
from labconsole.engine.operation_process import Outcome
from labconsole.security.pki.records import Origin, TrustKind
from labconsole.security.secrets import Secret
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import make_self_signed
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.names import name_from_text
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.export import pkcs12_bytes
from tests.helpers.operations import Operations
from tests.helpers.x509_keys import key_of
from tests.labconsole_certificates.three_states import ThreeStates

LEFT, RIGHT = "left's password", "right's password"


@pytest.fixture
def locked(world: ThreeStates, tmp_path: Path) -> tuple[Path, Path]:
    """Two PKCS#12 files with a password each."""
    files = (tmp_path / "left.p12", tmp_path / "right.p12")
    for file, password, root in zip(files, (LEFT, RIGHT), (world.root_a, world.root_b), strict=True):
        file.write_bytes(pkcs12_bytes(world.store, root, Secret(password)))
    return files


def answered(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> Any:
    """The JSON of a command that exits with `code`."""
    assert main(["pki", *map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_each_file_has_its_own_password(locked: tuple[Path, Path]) -> None:
    operations = Operations(in_threads=True)
    both = {"left": str(locked[0]), "right": f"{locked[1]}"}
    try:
        unasked = operations.do("certificates.compare", secrets={}, **both)
        assert unasked.outcome is Outcome.FAILED and "There is no passphrase for the file left.p12" in unasked.sentence
        secrets = {"file-password-0": Secret(LEFT), "file-password-1": Secret(LEFT)}
        assert "right.p12" in operations.do("certificates.compare", secrets=secrets, **both).sentence
        secrets["file-password-1"] = Secret(RIGHT)
        ended = operations.do("certificates.compare", secrets=secrets, **both)
    finally:
        operations.close()
    assert ended.outcome is Outcome.DONE and ended.result is not None and not ended.result.passed
    assert "Serial number" in [one["label"] for one in ended.result.data["differences"]]


def test_a_password_file_opens_what_is_shown(
    locked: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    password = tmp_path / "password"
    password.write_text(f"{LEFT}\n")
    password.chmod(0o600)
    content = answered(capsys, "show", locked[0], "--password-file", password)["content"]
    assert any("State A Root CA" in one["title"] for one in content)
    rows = [row for one in content for section in one["sections"] for row in section["rows"]]
    assert rows and all(row["label"] and isinstance(row["warning"], bool) for row in rows)


def test_json_of_lists_has_whole_fingerprints(world: ThreeStates, capsys: pytest.CaptureFixture[str]) -> None:
    record = world.certified(world.a, world.b)
    listed = answered(capsys, "list", "tls-client")["certificates"]
    assert [(one["sha256"], one["state"], one["key"]) for one in listed] == [(record.sha256, "State A", "here")]
    entries = answered(capsys, "audit", "--limit", "2")["entries"]
    assert len(entries) == 2 and set(entries[0]) == {"at", "who", "what", "subject", "sha256", "detail"}


def test_a_refused_certificate_exits_with_1_and_says_why(
    world: ThreeStates, capsys: pytest.CaptureFixture[str]
) -> None:
    record = world.certified(world.a, world.b)
    accepted = answered(capsys, "check", "State B", record.sha256)
    assert accepted["accepted"] and set(accepted["opinions"]) == {"cryptography", "OpenSSL, with CRLs"}
    refused = answered(capsys, "check", "State A", record.sha256, code=1)
    assert not refused["accepted"] and refused["why"]
    differing = answered(capsys, "compare", world.root_a.sha256, world.root_b.sha256, code=1)
    assert "Serial number" in [one["label"] for one in differing["differences"]]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--from", "State A"), "give --from and --to, or neither"),
        (("--from", "State A", "--to", "State Q"), "No State is called State Q"),
        (("--form", "p12"), "give the fingerprint of a certificate"),
    ],
)
def test_an_export_that_cannot_be_writes_nothing(
    world: ThreeStates, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], why: str
) -> None:
    world.asks(world.a, world.b)
    assert main(["pki", "export", "request:1", str(tmp_path / "out"), *arguments]) == 1
    assert why in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_pinned_certificate_that_has_expired_is_refused(
    world: ThreeStates, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    sha256s = []
    for name, end in (("good", now + timedelta(days=1)), ("expired", now - timedelta(hours=1))):
        certificate = make_self_signed(
            key_of(KeyType.P_256),
            name_from_text(f"CN={name}"),
            [],
            CertificateProfile.TLS_CLIENT,
            Validity(now - timedelta(days=2), end),
        )
        with world.store.change() as change:
            record = change.add_certificate(
                certificate, state=world.c.id, profile=CertificateProfile.TLS_CLIENT, origin=Origin.IMPORTED
            )
            change.trust(world.a.id, record.id, TrustKind.PIN, "fingerprint typed")
        sha256s.append(record.sha256)
    assert answered(capsys, "check", "State A", sha256s[0])["why"] == "it is pinned."
    refused = answered(capsys, "check", "State A", sha256s[1], code=1)
    assert not refused["accepted"] and refused["why"].startswith("it is pinned, but ")
