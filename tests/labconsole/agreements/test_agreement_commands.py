"""Two owners agree on a trial by the commands of their consoles: propose, show, accept, conclude."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from labconsole.security.pki.reader import PkiReader
from labconsole.security.x509.certificate_profiles import CertificateProfile
from tests.helpers.openssl_command import run_openssl
from tests.helpers.terminal import Terminal
from tests.labconsole.agreements.agreement_files import Files, accept, profile_of, propose
from tests.labconsole.agreements.two_owners import CONSOLE, Owner, new_owner, sender_profile

OWN = {
    "sender_identity": "a-tls",
    "trust": "/home/a/trust.pem",
    "password_file": "/home/a/password",
    "username": "a-login",
    "receiver_certificate": "/home/a/of-b.pem",
}
"""What only State A's console has."""


def test_two_owners_agree_and_both_have_the_scenario(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    a, b = owners
    files = propose(a, "--with", "State B", folder=tmp_path, test=2, host="broker.example", port=5671, **OWN)
    read = tmp_path / "read.json"
    run_openssl("cms", "-verify", "-inform", "PEM", "-in", files.proposal, "-CAfile", a.root_file, "-out", read)
    assert hashlib.sha256(read.read_bytes()).hexdigest() == files.sha256
    shown = b.does("agreements", "show", files.proposal)
    assert "Signed by a-signer of State A, trusted here" in shown
    assert "State A plays sender, this console plays receiver." in shown
    assert "- Connects once to the broker amqps://broker.example:5671, with the lab's identity." in shown
    assert "- Receives 50 messages from q." in shown
    assert "Receiver only" in shown and "Refused" not in shown
    assert not (b.folder / "profiles").exists()

    said = accept(b, files, "--set", "receiver_identity=b-tls", "--set", "port=6671")
    assert "- Connects once to the broker amqps://broker.example:6671, with the identity b-tls." in said
    run_openssl("cms", "-verify", "-inform", "PEM", "-in", files.acceptance, "-CAfile", b.root_file)
    assert not (a.folder / "profiles").exists()
    assert "b-signer of State B has accepted" in a.does("agreements", "conclude", files.acceptance)

    sender, receiver = (profile_of(owner, files.id)["parameters"] for owner in owners)
    assert (sender["mode"], receiver["mode"]) == ("sender", "receiver")
    assert sender["trial_id"] == receiver["trial_id"] == files.id
    assert {name: sender[name] for name in OWN} == OWN
    assert (receiver["receiver_identity"], receiver["port"]) == ("b-tls", 6671)
    assert not [name for name in OWN if receiver[name]]
    for owner, what in ((a, "signed proposal"), (b, "signed acceptance")):
        with PkiReader.open(owner.pki) as reader:
            assert what in [row.what for row in reader.snapshot().audit]


def test_a_proposal_has_nothing_that_only_its_console_has(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    files = propose(owners[0], folder=tmp_path, test=2, **OWN)
    content = (tmp_path / "proposal.json").read_text()
    assert not [value for value in OWN.values() if value in content]
    assert str(tmp_path) not in content and str(owners[0].folder) not in files.proposal.read_text()


def test_a_payload_that_the_other_console_does_not_have_is_not_proposed(
    owners: tuple[Owner, Owner], tmp_path: Path
) -> None:
    payload = tmp_path / "payload"
    payload.write_text("text")
    profile = sender_profile(tmp_path / "sender.toml", payload=str(payload))
    refused = owners[0].refuses("agreements", "propose", profile, tmp_path / "p.pem", "--identity", "a-signer")
    assert f"is the file {payload} of this console, which the other one does not have" in refused
    assert not (tmp_path / "p.pem").exists()


@pytest.mark.parametrize("change", ["bit flip", "another signature"])
def test_a_changed_proposal_is_refused(change: str, owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    _, b = owners
    files = propose(owners[0], folder=tmp_path)
    der = tmp_path / "proposal.der"
    run_openssl("cms", "-cmsout", "-inform", "PEM", "-in", files.proposal, "-outform", "DER", "-out", der)
    data = der.read_bytes()
    place = data.index(b'"count":50') + 8 if change == "bit flip" else len(data) - 8
    der.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    refused = b.refuses("agreements", "show", der)
    assert ("was changed after it was signed" if change == "bit flip" else "is not that of its signer's") in refused


def test_a_signer_that_is_not_trusted_is_named_and_refused(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    _, b = owners
    c = new_owner(tmp_path / "c", "c")
    profile = sender_profile(tmp_path / "sender.toml")
    proposal = tmp_path / "proposal.pem"
    c.does("agreements", "propose", profile, proposal, "--identity", "c-signer")
    shown = b.command("agreements", "show", proposal)
    assert shown.returncode == 1
    assert "Signed by c-signer of an unknown State, not trusted here (untrusted)" in shown.stdout
    assert "Refused: The proposal is signed by c-signer of an unknown State, which is not trusted here" in shown.stdout
    assert "Unknown issuer, no trusted root leads to it" in shown.stdout
    refused = b.refuses("agreements", "accept", proposal, tmp_path / "acceptance.pem", "--identity", "b-signer")
    assert "is not trusted here" in refused
    assert not (tmp_path / "acceptance.pem").exists()


def test_a_revoked_signer_is_refused(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    a, b = owners
    files = propose(a, folder=tmp_path)
    b.import_crl(a.issuer, a.certificate_of("a-signer"))
    shown = b.command("agreements", "show", files.proposal)
    assert shown.returncode == 1 and "not trusted here (revoked)" in shown.stdout


def test_a_certificate_that_is_not_for_signing_signs_no_proposal(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    a, _ = owners
    a.name_signer("a-tls", CertificateProfile.TLS_CLIENT)
    profile = sender_profile(tmp_path / "sender.toml")
    refused = a.refuses("agreements", "propose", profile, tmp_path / "p.pem", "--identity", "a-tls")
    assert "its extended key usage lacks emailProtection" in refused


def test_nothing_is_accepted_without_the_confirmation_of_what_was_read(
    owners: tuple[Owner, Owner], tmp_path: Path
) -> None:
    _, b = owners
    files = propose(owners[0], folder=tmp_path)
    accepting = ["agreements", "accept", files.proposal, files.acceptance, "--identity", "b-signer"]
    asked = b.refuses(*accepting)
    assert "- Receives 50 messages from q." in asked and f"by typing {files.sha256[:8]}" in asked
    assert "is another one than was confirmed" in b.refuses(*accepting, "--confirmed", "0" * 64)
    assert "is another one than was confirmed" in b.refuses(*accepting, "--confirmed", files.sha256[:7])
    assert not files.acceptance.exists() and not (b.folder / "profiles").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo terminals")
@pytest.mark.parametrize("confirmed", [True, False])
def test_a_person_confirms_at_the_terminal(confirmed: bool, owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    _, b = owners
    files = propose(owners[0], folder=tmp_path)
    accepting = ["agreements", "accept", str(files.proposal), str(files.acceptance), "--identity", "b-signer"]
    terminal = Terminal([*CONSOLE, *accepting], b.environment())
    terminal.answer("> ", files.sha256[:8] if confirmed else "yes")
    code, out = terminal.finish()
    assert "- Receives 50 messages from q." in terminal.shown.decode()
    assert (code, files.acceptance.exists()) == ((0, True) if confirmed else (1, False))
    assert ("is accepted" in out.decode()) == confirmed


def test_what_is_agreed_upon_cannot_be_set_by_one_end(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    _, b = owners
    files = propose(owners[0], folder=tmp_path)
    refused = b.refuses(
        "agreements", "accept", files.proposal, files.acceptance, "--identity", "b-signer", "--set", "count=5"
    )
    assert "count is agreed upon by both ends" in refused


def test_a_proposal_is_accepted_and_concluded_once(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    a, b = owners
    files = propose(a, folder=tmp_path)
    accept(b, files)
    accepting = ["--identity", "b-signer", "--confirmed", files.sha256]
    again = b.refuses("agreements", "accept", files.proposal, tmp_path / "second.pem", *accepting)
    assert f"There is an agreement {files.id} on this console already" in again
    a.does("agreements", "conclude", files.acceptance)
    assert f"There is an agreement {files.id} on this console already" in a.refuses(
        "agreements", "conclude", files.acceptance
    )


def test_a_proposal_that_was_changed_after_its_acceptance_is_not_concluded(
    owners: tuple[Owner, Owner], tmp_path: Path
) -> None:
    a, b = owners
    files = propose(a, folder=tmp_path)
    accept(b, files)
    other = tmp_path / "other"
    other.mkdir()
    later = propose(a, folder=other, count=60)
    kept = a.folder / "agreements" / f"{files.id}.proposal.pem"
    kept.write_bytes(later.proposal.read_bytes())
    assert "The acceptance is of another text of the proposal" in a.refuses("agreements", "conclude", files.acceptance)
    assert not (a.folder / "profiles").exists()


def test_only_the_named_state_can_accept(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    a, _ = owners
    c = new_owner(tmp_path / "c", "c")
    a.trust(c.state, c.issuer.certificate)
    c.trust(a.state, a.issuer.certificate)
    files = propose(a, "--with", "State B", folder=tmp_path)
    accepting = ["agreements", "accept", files.proposal, files.acceptance, "--confirmed", files.sha256]
    c.does(*accepting, "--identity", "c-signer")
    refused = a.refuses("agreements", "conclude", files.acceptance)
    assert "signed by c-signer of State C, and the proposal is for State B" in refused


def test_the_proposer_does_not_accept_its_own_proposal(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    a, _ = owners
    files = propose(a, folder=tmp_path)
    accepting = ["agreements", "accept", files.proposal, files.acceptance, "--identity", "a-signer"]
    assert "State A of this console has signed the proposal" in a.refuses(*accepting, "--confirmed", files.sha256)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--starts", "2020-01-01 12:00"], "Begins is 2020-01-01 12:00:00 UTC, which is in the past"),
        (["--starts", "2090-01-01T08:00+08:00", "--valid-until", "2090-01-01 00:01"], "after the trial has begun"),
        (["--with", "State C"], "State C is not a State of another console: choose one of State B"),
        (["--scenario", "none"], "has no scenario none: choose one of"),
        (["--set", "mode=both"], "runs on one console alone"),
        (["--identity", "no-one"], "There is no identity no-one"),
    ],
)
def test_a_proposal_that_cannot_be_is_not_written(
    options: list[str], reason: str, owners: tuple[Owner, Owner], tmp_path: Path
) -> None:
    profile, file = sender_profile(tmp_path / "sender.toml"), tmp_path / "proposal.pem"
    refused = owners[0].refuses("agreements", "propose", profile, file, "--identity", "a-signer", *options)
    assert reason in refused
    assert not file.exists()


def test_one_of_several_scenarios_is_proposed(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    a, b = owners
    profile = sender_profile(tmp_path / "sender.toml")
    profile.write_text(
        profile.read_text().replace('"test" = 1', "").replace("test = 1\n", "") + "[matrix]\ntest = [1, 2]\n"
    )
    proposing = ["agreements", "propose", profile, tmp_path / "p.pem", "--identity", "a-signer"]
    assert "has several scenarios: choose one of test=1, test=2" in a.refuses(*proposing)
    a.does(*proposing, "--scenario", "test=2", "--starts", "2090-01-01T08:00+08:00")
    shown = b.does("agreements", "show", tmp_path / "p.pem")
    assert "Between two States: test=2 (amqp.messaging)" in shown
    assert "It begins at 2090-01-01 00:00:00 UTC. The proposal is valid until 2090-01-01 00:00:00 UTC." in shown
    assert "- Test 2: TLS with client certificate." in shown


def test_the_proposer_keeps_its_own_thresholds_and_hosts(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    a, b = owners
    profile = sender_profile(tmp_path / "sender.toml")
    own = '[thresholds]\nlost = { max = 0.0 }\n[[hosts.roles]]\nrole = "sender-*"\nhost = "obu-1"\n'
    profile.write_text(profile.read_text() + own)
    said = json.loads(a.does("agreements", "propose", profile, tmp_path / "p.pem", "--identity", "a-signer", "--json"))
    digest = json.loads(b.does("agreements", "show", tmp_path / "p.pem", "--json"))["sha256"]
    assert "obu-1" not in b.does("agreements", "show", tmp_path / "p.pem")
    accept(b, Files(tmp_path / "p.pem", tmp_path / "acceptance.pem", digest, said["id"]))
    a.does("agreements", "conclude", tmp_path / "acceptance.pem")
    kept, theirs = profile_of(a, said["id"]), profile_of(b, said["id"])
    assert kept["thresholds"] == {"lost": {"max": 0.0}}
    assert kept["hosts"]["roles"][0]["host"] == "obu-1"
    assert "hosts" not in theirs and "thresholds" not in theirs
