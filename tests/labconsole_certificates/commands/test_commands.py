"""`labconsole pki` as an operator of two States uses it, from nothing to the handshake both ways and beyond."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import Name, ReasonFlags, load_pem_x509_certificates

from labconsole.cli.main import main
from labconsole.cli.operation_arguments import add_arguments
from labconsole.model.plugin import load_dotted
from labconsole.paths import pki_dir
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import RequestStatus
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.key_types import KeyType
from labconsole_certificates.manifest import plugin
from tests.helpers.openssl_command import run_openssl
from tests.helpers.x509_keys import key_of
from tests.labconsole_certificates.three_states import ThreeStates

A, B = "State A", "State B"


class Pki:
    """Calls `labconsole pki` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.said = ""

    def __call__(self, *arguments: str | Path, code: int = 0) -> str:
        """What the command says, once it has ended with `code`."""
        returned = main(["pki", *map(str, arguments)])
        output = self._capsys.readouterr()
        self.said += output.out + output.err
        assert returned == code, output.out + output.err
        if "--json" in arguments and code == 0:
            json.loads(output.out)  # nothing else on standard output: warnings and progress are elsewhere
        return output.out + output.err


@pytest.fixture
def pki(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pki:
    monkeypatch.chdir(tmp_path)
    return Pki(capsys)


def fingerprint(said: str) -> str:
    """The SHA-256 that a command has printed last."""
    [*_, last] = re.finditer(r"SHA-256 ([0-9A-F ]+)", said)
    return last[1].strip()


def test_two_states_from_nothing_to_the_handshake_both_ways(pki: Pki) -> None:
    roots = {}
    for state in (A, B):
        pki("add-state", state, "--domain", "example")
        roots[state] = fingerprint(pki("create-root", state))
    for number, (client, server) in enumerate([(A, B), (B, A)], start=1):
        pki("request", client, "--to", server, "--name", "client.example", "--out", f"{number}.csr")
        pki("take-csr", f"{number}.csr", "--from", client, "--to", server)
        pki("approve", str(number), "--out", f"{number}.pem")
        pki("take-certificate", f"{number}.pem", "--from", server)
    for number, state in enumerate((A, B), start=3):
        pki("request", state, "--to", state, "--profile", "tls-server", "--name", "broker.example")
        pki("approve", str(number))
    assert "imports bundle or root of State B" in pki("exchange", A, B, code=1)
    pki("export", roots[B], "b.pem", "--from", B, "--to", A)
    pki("trust", A, roots[B], "--confirmed", roots[B])
    pki("bundle", A, "a.bundle")
    assert "Trust bundle 1 of State A" in pki("show", "a.bundle")
    assert "as --confirmed" in pki("take-bundle", B, "a.bundle", code=1)
    assert "one root is now trusted" in pki("take-bundle", B, "a.bundle", "--confirmed", roots[A])
    assert pki("matrix").count("trusted") == 2
    assert pki("prove", A, B).count("passed (TLSv1.3") == 2
    pki("exchange", A, B)
    assert "proved by handshake" in pki("audit", "--limit", "3")


def test_the_audit_list_names_the_operation_and_its_parameters_once(pki: Pki, world: ThreeStates) -> None:
    before = len(world.store.audit())
    pki("add-state", "Gamma")
    pki("add-state", "Gamma", code=1)
    pki("create-root", "Gamma", "--days", "900")
    new = list(reversed(world.store.audit()[:-before]))
    operations = [(entry.subject, json.loads(entry.detail)) for entry in new if entry.what == "operation"]
    assert operations == [
        ("certificates.add-state", {"state": "Gamma"}),
        ("certificates.create-root", {"state": "Gamma", "valid_days": 900}),
    ]
    assert [entry.what for entry in new] == [
        "operation",
        "added State",
        "operation",
        "added key",
        "made self-signed certificate",
    ]


def test_a_revoked_certificate_is_refused_once_the_crl_is_known(pki: Pki, world: ThreeStates) -> None:
    client = world.certified(world.a, world.b, "a.example").sha256
    assert "State B accepts" in pki("check", B, client)
    pki("revoke", client[:10], "--reason", "keyCompromise")
    output = json.loads(pki("publish-crl", world.root_b.sha256, "--out", "b.crl", "--json"))
    assert (output["number"], output["revoked"]) == (1, 1)
    assert "is there already" in pki("publish-crl", world.root_b.sha256, "--out", "b.crl", code=1)
    assert "OpenSSL refuses it" in pki("check", B, client, code=1)
    said = run_openssl("crl", "-in", "b.crl", "-inform", "DER", "-noout", "-text")
    assert "Key Compromise" in said
    assert "revoked" in pki("list", "TLS client") and "State B Root CA" in pki("crls")
    assert "Revocation list of State B Root CA" in pki("show", "b.crl")


def test_a_command_revokes_at_once_without_a_confirmation(pki: Pki, world: ThreeStates) -> None:
    record = world.certified(world.a, world.b, "a.example")
    said = pki("revoke", record.sha256, "--reason", "aACompromise")
    assert "is revoked" in said and "To confirm" not in said
    revoked = world.store.certificate(record.id).revoked
    assert revoked is not None and revoked.reason is ReasonFlags.aa_compromise
    assert "signed itself, so no CRL can name it" in pki("revoke", world.root_a.sha256, code=1)


def test_problems_of_a_csr_are_reported_on_import(pki: Pki, world: ThreeStates, tmp_path: Path) -> None:
    csr = create_csr(key_of(KeyType.P_256), Name.from_rfc4514_string("CN=greedy"), (), CertificateProfile.INTERMEDIATE)
    (tmp_path / "c.csr").write_bytes(csr.public_bytes(Encoding.PEM))
    assert "Warning: It asks to become a CA" in pki("take-csr", "c.csr", "--from", "State C", "--to", A)
    assert "was not approved. It asks to become a CA" in pki("approve", "1", code=1)
    pki("refuse", "1", "no CA below ours")
    assert "no CA below ours" in pki("requests") and world.store.snapshot().requests[0].decided


def test_the_state_of_a_csr_is_added_only_if_asked_for(pki: Pki, world: ThreeStates, tmp_path: Path) -> None:
    csr = create_csr(key_of(KeyType.P_256), Name.from_rfc4514_string("CN=of D"), (), CertificateProfile.TLS_CLIENT)
    (tmp_path / "d.csr").write_bytes(csr.public_bytes(Encoding.PEM))
    assert "No State is called State D" in pki("take-csr", "d.csr", "--from", "State D", "--to", A, code=1)
    assert not world.store.snapshot().requests
    pki("take-csr", "d.csr", "--from", "State D", "--to", A, "--add-state")
    assert [state.local for state in world.store.states() if state.name == "State D"] == [False]


def test_end_certificates_are_not_given_the_profile_of_a_ca(pki: Pki, world: ThreeStates) -> None:
    number = str(world.asks(world.a, world.b).id)
    with pytest.raises(SystemExit):
        pki("approve", number, "--profile", "intermediate")
    assert main(["action", "certificates.approve-request", "--set", f"request={number}", "--set", "profile=root"]) == 2
    assert world.store.snapshot().requests[0].status is RequestStatus.RECEIVED


def test_a_request_as_json_has_its_states_and_status(pki: Pki, world: ThreeStates) -> None:
    made = json.loads(
        pki("request", A, "--to", B, "--name", "client.a.example", "--out", "a.der", "--form", "der", "--json")
    )
    assert made == {"request": 1, "subject": "CN=State A TLS client,O=State A", "from": A, "to": B}
    taken = json.loads(pki("take-csr", "a.der", "--from", A, "--to", B, "--json"))
    assert (taken["request"], taken["status"], taken["profile"]) == (1, "received", "tls-client")
    issued = json.loads(pki("approve", "1", "--out", "a.pem", "--json"))
    assert issued["sha256"] == world.store.snapshot().certificates[-1].sha256
    assert json.loads(pki("requests", "--json"))["requests"][0]["status"] == "approved"


def test_an_identity_as_json_has_its_state_and_fingerprint(pki: Pki, world: ThreeStates) -> None:
    record = world.certified(world.a, world.b)
    pki("name", "a-to-b", "tls-client:State A")
    assert json.loads(pki("identities", "--json")) == {
        "identities": [{"identity": "a-to-b", "state": A, "certificate": "State A TLS client", "sha256": record.sha256}]
    }


def test_a_self_signed_certificate_is_written_for_peers_to_pin(pki: Pki, world: ThreeStates, tmp_path: Path) -> None:
    said = pki("self-signed", A, "--name", "pinned.a.example", "--out", "pinned.pem")
    assert "Warning: A self-signed certificate has no CA" in said and "pinned.pem contains the certificate" in said
    assert "Warning: A self-signed certificate has no CA" in pki("self-signed", A, "--name", "b.a.example", "--json")
    [certificate] = load_pem_x509_certificates((tmp_path / "pinned.pem").read_bytes())
    assert certificate == world.store.snapshot().certificates[-2].certificate
    before = world.store.snapshot().keys
    assert "is there already" in pki("self-signed", A, "--out", "pinned.pem", code=1)
    assert world.store.snapshot().keys == before, "no key is created for a file that cannot be written"


def test_what_is_shown_is_all_there_is_to_see(pki: Pki, world: ThreeStates) -> None:
    record = world.certified(world.a, world.b, "bücher.a.example")
    shown = pki("show", record.sha256[:8])
    assert "bücher.a.example" in shown and "xn--bcher-kva" in shown
    assert "Proof of possession: verified" in pki("show", "request:1")
    assert "do not differ" in pki("compare", record.sha256, record.sha256)
    assert "Serial number" in pki("compare", record.sha256, world.root_a.sha256, code=1)
    assert "approved" in pki("requests") and "State C" in pki("states")


def test_a_certificate_moves_as_pkcs12_and_gets_a_name(pki: Pki, world: ThreeStates, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("by-telephone\n")
    password.chmod(0o600)
    output = pki("make-for", A, "--issuer", B, "--out", "a.p12", "--password-file", password)
    assert "Warning: Without a CSR the private key is created by another State" in output
    assert (tmp_path / "a.p12").stat().st_mode & 0o777 == 0o600
    taken = fingerprint(pki("take-p12", A, "a.p12", "--from", B, "--password-file", password))
    pki("name", "a-to-b", taken)
    assert "a-to-b" in pki("identities")
    pki("forget", "a-to-b")
    pki("remove", taken)
    digits = taken.replace(" ", "")[:16]
    assert digits not in pki("list") and digits in pki("list", "--all")
    pki("restore", taken)


def test_an_own_passphrase_is_read_from_the_given_source(pki: Pki, world: ThreeStates, tmp_path: Path) -> None:
    passphrase, other = tmp_path / "passphrase", tmp_path / "other"
    for file, text in ((passphrase, "mine-1357"), (other, "not-mine")):
        file.write_text(f"{text}\n")
        file.chmod(0o600)
    root = fingerprint(pki("create-root", A, "--passphrase-file", "passphrase", "--type", "ed25519"))
    pki("publish-crl", root)
    passphrase.rename(tmp_path / "moved")
    assert "passphrase file" in pki("publish-crl", root, "--passphrase-file", other, code=1)
    assert "no passphrase for the new key file" in pki("create-root", A, "--ask-passphrase", code=1)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("create-root", "State Q"), "No State is called State Q; did you mean"),
        (("create-root", A, "--subject", "nonsense"), "nonsense"),
        (("request", A, "--to", B, "--name", "a..b"), "a..b"),
        (("request", A, "--to", B, "--profile", "tls-server"), "needs its host name"),
        (("take-csr", "nothing.csr", "--from", A, "--to", B), "nothing.csr"),
        (("approve", "7"), "There is no request 7"),
        (("show", "12345678"), "No certificate here has the fingerprint"),
        (("export", "crl:3", "x.crl"), "There is no CRL 3"),
        (("take", "nothing.pem", "--from", A), "nothing.pem"),
        (("trust", A, "12345678"), "No certificate here has the fingerprint"),
        (("trust", A, "tls-server:State A"), "State A has no certificate of the profile tls-server"),
        (("rotation", "3"), "There is no rotation 3"),
        (("create-root", A, "--token", "nowhere"), "nowhere"),
    ],
)
@pytest.mark.usefixtures("world")
def test_what_cannot_be_is_said_in_one_sentence(pki: Pki, arguments: tuple[str, ...], why: str) -> None:
    said = pki(*arguments, code=1)
    assert why in said and said.startswith("labconsole: ") and said.count("\n") == 1


@pytest.mark.usefixtures("world")
def test_a_value_out_of_bounds_is_refused_by_the_name_of_its_option(pki: Pki) -> None:
    said = pki("create-root", A, "--days", "0", code=2)
    assert said == "labconsole: --days: input should be greater than or equal to 1 (it is '0').\n"


def test_without_a_database_nothing_is_listed_and_none_is_made(pki: Pki) -> None:
    assert "labconsole: " in pki("list", code=1)
    assert not (pki_dir() / "pki.db").exists()


def test_the_group_alone_prints_its_help(pki: Pki) -> None:
    said = pki()
    for command in ("create-root", "take-csr", "rotate", "matrix", "demo", "audit"):
        assert command in said


def test_every_operation_has_a_help_for_each_argument() -> None:
    for entry in plugin.operations.values():
        parser = argparse.ArgumentParser(prog=entry.command)
        add_arguments(parser, load_dotted(entry.target).parameters)
        assert all(action.help for action in parser._actions), parser.format_help()
        assert bool(entry.command) == bool(entry.help)


def test_links_of_a_root_are_distinguished_from_cas(pki: Pki, world: ThreeStates) -> None:
    pki("rotate", world.root_a.sha256)
    pki("rotation", "1", "prepare")
    assert [line.split().count("link") for line in pki("list", "State A Root CA").splitlines()[1:]] == [0, 0, 1, 1]


def test_a_rotation_is_done_step_by_step(pki: Pki, world: ThreeStates) -> None:
    record = world.certified(world.b, world.b, "b.example")
    said = pki("rotate", record.sha256, "--overlap", "0")
    assert "Rotation 1 of State B TLS client" in said
    pki("rotation", "1", "prepare")
    assert "name it with --peer" in pki("rotation", "1", "confirm", code=1)
    data = json.loads(pki("rotation", "1", "--json"))
    assert (data["sha256"], data["status"]) == (record.sha256, "overlap") and data["successor"] != record.sha256
    pki("rotation", "1", "switch")
    assert "finished" in pki("rotation", "1", "finish", "--force")
    with PkiReader.open() as reader:
        [rotation] = reader.snapshot().rotations
    assert rotation.successor is not None and "State B TLS client" in pki("rotations")


def test_a_file_name_of_300_characters_is_refused(pki: Pki) -> None:
    pki("add-state", A)
    assert "is not a fingerprint" in pki("show", "x" * 300, code=1)
