"""Names from outside that are far too long, or have characters that are not seen: lists stay readable, and it warns."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from labconsole.cli.main import main
from labconsole.security.x509.csrs import judge_csr
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.names import short_name
from tests.helpers.x509_keys import key_of
from tests.labconsole_certificates.three_states import ThreeStates


def csr_named(*names: str) -> x509.CertificateSigningRequest:
    """A CSR of a client with these organisational units, as no console makes it."""
    subject = [x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, name, _validate=False) for name in names]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    key = key_of(KeyType.P_384)
    return builder.sign(key, hashes.SHA256())  # type: ignore[arg-type]


def received(world: ThreeStates, csr: x509.CertificateSigningRequest, tmp_path: Path) -> int:
    """Take it in at the terminal; the exit code."""
    file = tmp_path / "odd.csr"
    file.write_bytes(csr.public_bytes(Encoding.PEM))
    return main(["pki", "take-csr", str(file), "--from", world.c.name, "--to", world.a.name])


@pytest.mark.filterwarnings("ignore:Attribute's length must be")
def test_a_name_of_58_kb_leaves_tables_readable(
    world: ThreeStates, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    csr = csr_named("x" * 58_000)
    assert len(short_name(csr)) == 100 and short_name(csr).endswith("…")
    assert received(world, csr, tmp_path) == 0
    assert main(["pki", "requests"]) == 0
    assert main(["pki", "approve", "1"]) == 0
    assert main(["pki", "list"]) == 0
    assert main(["pki", "show", "request:1"]) == 0
    said = capsys.readouterr().out
    assert max(len(line) for line in said.splitlines()) < 1_200
    assert "(58,000 characters)" in said


def test_hidden_characters_in_names_are_warned_of_before_approval(
    world: ThreeStates, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    csr = csr_named("safe\u202egnp.exe\x1b[31m")
    [warning] = judge_csr(csr).warnings
    assert "(U+202E, U+001B)" in warning and not judge_csr(csr).problems
    assert received(world, csr, tmp_path) == 0
    assert "control or direction characters (U+202E, U+001B)" in capsys.readouterr().err
    assert main(["pki", "approve", "1"]) == 0
    output = capsys.readouterr()
    assert "control or direction characters (U+202E, U+001B)" in output.err
    assert "\x1b[31m" not in output.out + output.err and "\u202e" not in output.out + output.err


def test_the_list_shows_the_issuer(world: ThreeStates, capsys: pytest.CaptureFixture[str]) -> None:
    world.certified(world.a, world.b)
    assert main(["pki", "list"]) == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if "tls-client" in line]
    assert "State B Root CA" in line
