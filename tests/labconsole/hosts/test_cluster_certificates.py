"""The certificates of a cluster: a CA of their own, judged by openssl, and keys of hosts that are kept nowhere else."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from labconsole.cli.main import main
from labconsole.errors import UserError
from labconsole.hosts.cluster_certificates import CONSOLE, OWNER, console_files, enrol
from labconsole.hosts.cluster_tls import Member
from labconsole.paths import HOME_VARIABLE
from labconsole.security.lab_identities import lab_identities
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import TrustKind
from labconsole.security.secrets import Secret


def private_file(path: Path, content: bytes) -> Path:
    path.touch(0o600)
    path.write_bytes(content)
    return path


def test_the_console_has_one_certificate_until_it_is_of_no_use(tmp_path: Path) -> None:
    first = console_files(tmp_path)
    assert console_files(tmp_path) == first
    with PkiReader.open(tmp_path) as reader:
        snapshot = reader.snapshot()
    assert [state.name for state in snapshot.states] == [OWNER]
    assert [identity.name for identity in snapshot.identities] == [CONSOLE]


def test_openssl_verifies_an_enrolment_for_both_ends_of_a_connection(tmp_path: Path) -> None:
    enrolment = enrol("alpha", tmp_path)
    certificate, authority, _ = enrolment.pem.split(b"-----BEGIN ")[1:]
    files = tmp_path / "host.pem", tmp_path / "ca.pem"
    for file, content in zip(files, (certificate, authority), strict=True):
        file.write_bytes(b"-----BEGIN " + content)
    for purpose in ("sslserver", "sslclient"):
        command = ["openssl", "verify", "-purpose", purpose, "-CAfile", str(files[1]), str(files[0])]
        assert subprocess.run(command, capture_output=True, check=True).stdout.endswith(b"OK\n")
    usage = enrolment.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(usage) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def test_the_key_of_a_host_is_in_its_enrolment_alone(tmp_path: Path) -> None:
    enrolment = enrol("alpha", tmp_path)
    with PkiReader.open(tmp_path) as reader:
        snapshot = reader.snapshot()
    record = next(one for one in snapshot.certificates if one.certificate == enrolment.certificate)
    assert record.key is None
    file = private_file(tmp_path / "alpha.pem", enrolment.pem)
    assert b"ENCRYPTED PRIVATE KEY" in enrolment.pem
    assert Member.of_enrolment(file, enrolment.passphrase).name == "alpha"
    with pytest.raises(UserError, match="passphrase is wrong"):
        Member.of_enrolment(file, Secret("guessed"))


def test_no_state_trusts_the_ca_of_the_hosts(tmp_path: Path) -> None:
    lab_identities(tmp_path)
    console_files(tmp_path)
    with PkiReader.open(tmp_path) as reader:
        snapshot = reader.snapshot()
    (owner,) = (state for state in snapshot.states if state.name == OWNER)
    roots = set(snapshot.roots_of(owner.id))
    assert len(roots) == 1
    others = [state for state in snapshot.states if state.id != owner.id]
    assert others and not any(roots & set(snapshot.trusted_by(state.id, TrustKind.ROOT)) for state in others)


def test_what_is_no_enrolment_is_refused(tmp_path: Path) -> None:
    enrolment = enrol("alpha", tmp_path)
    certificate, authority, key = (b"-----BEGIN " + part for part in enrolment.pem.split(b"-----BEGIN ")[1:])
    without_authority = private_file(tmp_path / "no-ca.pem", certificate + key)
    mixed = private_file(tmp_path / "mixed.pem", authority + certificate + key)
    for file in (without_authority, mixed):
        with pytest.raises(UserError, match="is not the enrolment of a host"):
            Member.of_enrolment(file, enrolment.passphrase)


def test_the_command_writes_a_private_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    file = tmp_path / "alpha.pem"
    assert main(["hosts", "enrol", "alpha", "--file", str(file)]) == 0
    said = capsys.readouterr().out
    passphrase = said.splitlines()[1]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Member.of_enrolment(file, Secret(passphrase)).name == "alpha"
    content = file.read_bytes()
    assert main(["hosts", "enrol", "alpha", "--file", str(file)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert file.read_bytes() == content


def test_a_program_reads_the_json_of_an_enrolment_without_its_passphrase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    file = tmp_path / "alpha.pem"
    assert main(["hosts", "enrol", "alpha", "--file", str(file), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["file"] == str(file)
    title, passphrase, *_ = said.err.splitlines()
    assert title == "Passphrase of the enrolment of alpha"
    assert Member.of_enrolment(file, Secret(passphrase)).name == "alpha"


@pytest.mark.parametrize("name", ["../x", "a/b", "bad name", "a\nb", "x" * 64, "-x", CONSOLE])
def test_a_name_that_is_none_enrols_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert main(["hosts", "enrol", "--", name]) in (1, 2)
    assert not list(tmp_path.glob("**/*.pem"))


def test_no_certificate_is_made_where_the_file_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    assert main(["hosts", "enrol", "alpha", "--file", str(tmp_path / "none" / "x.pem")]) == 1
    assert "is not a folder that you can write to" in capsys.readouterr().err
    assert not list((tmp_path / "home").glob("pki/*.db"))


def test_commands_of_one_computer_do_not_import_dask(tmp_path: Path) -> None:
    program = (
        "import sys; from labconsole.cli.main import main; "
        "codes = [main([command, *rest]) for command, *rest in (['trials'], ['action'])]; "
        "print(codes, sorted({'dask', 'distributed', 'tornado'} & sys.modules.keys()), file=sys.stderr)"
    )
    environment = {**os.environ, HOME_VARIABLE: str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[0, 0] []"
