"""AMQP Tests 1 to 4 between two owners, from the proposal to the merged run: a person's console, and an agent."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.key_types import KeyType
from labconsole.store.reader import Reader
from tests.labconsole.agreements.agreement_files import Files, accept, propose
from tests.labconsole.agreements.two_owners import Owner, trusting_owners
from tests.labconsole.hosts.cluster_processes import Served

COUNT = 60
STATE, RSA = CertificateProfile.STATE, KeyType.RSA_2048


@dataclass(frozen=True)
class Owners:
    """State A, whose operator types commands and whose broker both use; State B, whose agent serves `folder`."""

    a: Owner
    b: Owner
    agent: Served
    folder: Path
    amqp: int
    amqps: int
    certificates: Mapping[str, Path]
    """Those for messages, by owner: the other one has a copy."""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owners]:
    place = tmp_path_factory.mktemp("two")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        a, b = trusting_owners(place)
        a.name_signer("a-broker", CertificateProfile.TLS_SERVER, host="localhost")
        certificates = {letter: place / f"{letter}-state.pem" for letter in "ab"}
        for owner, (letter, file) in zip((a, b), certificates.items(), strict=True):
            file.write_bytes(owner.name_signer(f"{letter}-state", STATE, type=RSA).public_bytes(Encoding.PEM))
        folder = place / "exchange"
        folder.mkdir()
        ports = ("--port", "0", "--tls-port", "0")
        served = [Served(a.folder, "broker", "--identity", "a-broker", "--queue", "q", *ports)]
        try:
            plain, tls = (int(served[0].waits_for(rf"{one}://127.0.0.1:(\d+)")[1]) for one in ("amqp", "amqps"))
            served.append(Served(b.folder, "agent", "--serve", str(folder), "--identity", "b-signer", threads=True))
            served[1].waits_for("No agreement is open")
            yield Owners(a, b, served[1], folder, plain, tls, certificates)
            assert [one.end() for one in served] == [0, 0], served[1].said
        finally:
            for one in served:
                if one.process.poll() is None:
                    one.process.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("test", [*(pytest.param(test, marks=pytest.mark.nightly) for test in (1, 2, 3)), 4])
def test_two_owners_agree_run_exchange_and_merge(test: int, two: Owners, tmp_path: Path) -> None:
    """Test 4 has the TLS and the signatures of Tests 2 and 3; two agents run a Test 1 in CI, too.

    Nightly: alone finds that a person's run of Test 1, 2 or 3 is not merged with that of an agent.
    """
    a, b = two.a, two.b
    own = {"sender_identity": "a-state", "host": "localhost"} if test > 1 else {}
    own |= {"receiver_certificate": str(two.certificates["b"])} if test == 4 else {}
    port = two.amqps if test > 1 else two.amqp
    settings = {"loop": "open", "rate": 100.0, "count": COUNT, "patience": 20.0, "port": port, **own}
    made = propose(a, "--with", "State B", folder=tmp_path, test=test, **settings)
    files = Files(
        made.proposal.rename(two.folder / f"{made.id}.pem"), tmp_path / "acceptance.pem", made.sha256, made.id
    )
    two.agent.waits_for(f"Proposal {files.id} of a-signer of State A waits for a person")
    of_b = {"receiver_identity": "b-state"} if test > 1 else {}
    of_b |= {"sender_certificate": str(two.certificates["a"])} if test > 2 else {}
    accept(b, files, *(word for name, value in of_b.items() for word in ("--set", f"{name}={value}")))
    a.does("agreements", "conclude", files.acceptance)
    run = json.loads(a.does("run", files.id, "--json"))["run"]
    bundle = two.folder / f"{files.id}-sender.lcz"
    a.does("bundle", run, bundle, "--sign", "a-signer")

    two.agent.waits_for(rf"Agreement {files.id}: Run \d+ \(sender\) came in a signed bundle. Signed by a-signer")
    two.agent.waits_for(rf"Agreement {files.id}: Run \d+ \(receiver\) was as agreed upon")
    [received] = two.folder.glob(f"{files.id}-receiver-*.lcz")
    a.does("import", received, "--signed")
    merged = json.loads(a.does("merge", run, run + 1, "--json"))
    assert merged["signers"] == {"receiver": "b-signer of State B"}
    for owner in (a, b):
        with Reader(owner.folder / "runs.db") as reader:
            [both] = [
                row for row in reader.runs() if row.parameters["mode"] == "both" and row.parameters["test"] == test
            ]
        figures = {name: both.metrics[name].value for name in ("sent", "received", "lost", "failed_verifications")}
        assert figures == {"sent": COUNT, "received": COUNT, "lost": 0, "failed_verifications": 0}
        assert both.metrics["latency_mean"].value > 0
