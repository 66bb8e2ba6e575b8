"""Roles on other hosts, which have nothing of the console's disk, do what they do on the console's computer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from labconsole.security.key_files import load_private_key
from labconsole.security.lab_identities import STATE_A, STATE_B, lab_identities
from labconsole.security.private_files import PRIVATE_KEY_MARK
from labconsole.security.secrets import Secret
from tests.helpers.other_hosts import OtherHosts
from tests.labconsole_amqp.lab import Lab, Outcome
from tests.labconsole_amqp.states import FOLLOWED, States

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 and /proc are Linux's")

COUNT = 20
ADDRESSES = {"broker": "127.0.0.2", "receiver": "127.0.0.3", "sender": "127.0.0.4"}


class HostLab(Lab):
    """A run of the messaging trial whose roles have nothing of the folders of the console."""

    def __init__(
        self,
        folder: Path,
        *console: Path,
        secrets: Mapping[str, Secret] | None = None,
        during: Callable[[HostLab], None] | None = None,
        inspected: bool = False,
    ) -> None:
        self.hosts = OtherHosts(folder.with_name(f"{folder.name}-hosts"), ADDRESSES, console, inspected=inspected)
        super().__init__(folder, launcher=self.hosts, secrets=secrets, during=during)

    def shown(self) -> bytes:
        """Environment and command line of all roles, which are `inspected`, once they have loaded their secrets."""
        while not self.context.frame().begin_ns and not self.wait(0.005):
            pass
        return b"".join(role.shown() for role in self.hosts.roles.values())


class Found:
    """What a run left on its hosts, and what the system showed of its roles."""

    def __init__(self, lab: HostLab, outcome: Outcome, shown: bytes) -> None:
        self.lab, self.outcome, self.shown = lab, outcome, shown

    def is_whole(self) -> None:
        """All messages have arrived, and each was good."""
        outcome = self.outcome
        assert outcome.failure is None, outcome.failure
        assert (outcome.figures["sent"], outcome.figures["received"], outcome.figures["lost"]) == (COUNT, COUNT, 0)
        assert outcome.figures["failed_verifications"] == 0 and not outcome.column("received", "outcome").any()

    def keeps_secrets(self, *more: str) -> None:
        """No secret is on a host's disk, or shown by the system; no keyring was asked."""
        assert self.shown, "the roles were not inspected"
        secrets = [secret.reveal() for role in self.lab.hosts.roles.values() for secret in role.secrets.values()]
        for secret in (*secrets, *more):
            assert len(secret) > 5 and secret.encode() not in self.shown
        for path in filter(Path.is_file, self.lab.hosts.folder.rglob("*")):
            octets = path.read_bytes()
            assert PRIVATE_KEY_MARK not in octets, path
            assert not any(secret.encode() in octets for secret in secrets), path
        asked = {name: role.asked_for for name, role in self.lab.hosts.roles.items()}
        assert {name: path.read_text() for name, path in asked.items() if path.exists()} == {}


def run(
    folder: Path, *console: Path, secrets: dict[str, Secret] | None = None, inspected: bool = False, **settings: Any
) -> Found:
    """A run whose roles show what the system shows of them, if they are `inspected`."""
    shown: list[bytes] = []
    during = (lambda lab: shown.append(lab.shown())) if inspected else None
    lab = HostLab(folder, *console, secrets=secrets, during=during, inspected=inspected)
    outcome = lab.run(**{"count": COUNT, "payload": "small", "warm_up": 0, **settings})
    return Found(lab, outcome, shown[0] if shown else b"")


@pytest.fixture
def home(lab_home: Path) -> Iterator[Path]:
    """The console's home, which no host has."""
    lab_identities()
    yield lab_home


@pytest.mark.parametrize(
    ("test", "listens", "envelope"),
    [
        pytest.param(1, "broker", "seed-2025", marks=pytest.mark.nightly),
        (1, "receiver", "seed-2025"),
        pytest.param(2, "broker", "seed-2025", marks=pytest.mark.nightly),
        pytest.param(3, "broker", "seed-2025", marks=pytest.mark.nightly),
        (4, "broker", "hybrid"),
        pytest.param(4, "broker", "cms", marks=pytest.mark.nightly),
        (4, "receiver", "ml-dsa-65"),
    ],
)
def test_each_test_runs_with_the_labs_identities(
    home: Path, tmp_path: Path, test: int, listens: str, envelope: str
) -> None:
    """With a broker and without one, when the receiver listens; keys of messages travel too.

    Nightly has the tests whose TLS and signatures Test 4 has, and CMS, whose keys are those of the identities.
    """
    payload = tmp_path / "payload.txt"
    payload.write_text("flight plan")
    settings = {"test": test, "envelope": envelope, "broker": "none" if listens == "receiver" else "embedded"}
    found = run(tmp_path / "run", home, payload, inspected=test > 1, payload=str(payload), **settings)
    found.is_whole()
    if test > 1:
        found.keeps_secrets()
        assert set(found.lab.hosts.roles["sender-0"].secrets), "a key of the lab has a passphrase"
    checks = next(event for event in found.outcome.events_named("connected") if event.source == "sender-0")
    [tcp] = [check for check in checks.data["checks"] if check["name"] == "TCP"]
    assert tcp["evidence"]["peer"].startswith(ADDRESSES[listens])
    if test == 1:
        [verdict] = [one for one in found.outcome.evaluation.verdicts if one.name == "preflight: clock offset"]
        assert "Several clocks" in verdict.reason and "One clock" not in verdict.reason


PASSPHRASE = "only the operator knows it"


def own_files(folder: Path, role: str = "sender", passphrase: str = PASSPHRASE) -> dict[str, str]:
    """Settings of a role whose certificate and key are in one file, with a passphrase; `folder` is created."""
    folder.mkdir()
    lab, combined = lab_identities().files(STATE_A if role == "sender" else STATE_B), folder / f"{role}.pem"
    key = load_private_key(lab.key, lab.secret_source.resolve("the lab"))
    combined.touch(0o600)
    combined.write_bytes(
        lab.certificate.read_bytes()
        + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(passphrase.encode()))
    )
    return {f"{role}_certificate": str(combined), f"{role}_key": str(combined)}


def test_files_with_certificate_and_key_and_their_passphrase_file_are_never_on_a_hosts_disk(
    home: Path, tmp_path: Path
) -> None:
    """The passphrase of the sender is in a file of the console; that of the receiver is typed."""
    sender, receiver = (own_files(tmp_path / role, role) for role in ("sender", "receiver"))
    (file := tmp_path / "sender" / "passphrase").touch(0o600)
    file.write_text(f"{PASSPHRASE}\n")
    found = run(
        tmp_path / "run",
        home,
        tmp_path / "sender",
        tmp_path / "receiver",
        test=4,
        inspected=True,
        secrets={f"key {receiver['receiver_key']}": Secret(PASSPHRASE)},
        sender_passphrase_file=str(file),
        **sender,
        **receiver,
    )
    found.is_whole()
    found.keeps_secrets(PASSPHRASE)


def test_a_wrong_passphrase_names_the_consoles_file(home: Path, tmp_path: Path) -> None:
    own = own_files(tmp_path / "keys")
    typed = {f"key {own['sender_key']}": Secret("another one")}
    failure = run(tmp_path / "run", home, test=3, secrets=typed, **own).outcome.failure
    assert failure is not None and f"The key file {own['sender_key']}" in failure
    assert "/proc/" not in failure


def test_roles_keep_their_identities_when_those_of_the_database_change(states: States, tmp_path: Path) -> None:
    renew = states.prepared(states.alpha, "alpha-client")

    def change(lab: HostLab) -> None:
        lab.until("received", 25)
        renew()
        states.crl(states.alpha, "alpha-client")

    lab = HostLab(tmp_path / "run", states.store.directory.parent, during=change)
    outcome = lab.run(**FOLLOWED | {"test": 4})
    assert outcome.failure is None, outcome.failure
    kept = {event.source: event.message for event in outcome.events_named("identities kept")}
    assert set(kept) == {"broker", "receiver-0", "sender-0"}
    assert kept["sender-0"] == (
        "The sender keeps the identities that it has: the files of the new ones are on the console's computer, and it "
        "is on another."
    )
    assert not outcome.events_named("identities used")
    assert outcome.figures["lost"] == outcome.figures["failed_verifications"] == 0


def test_phases_begin_by_the_clock_of_each_host(home: Path, tmp_path: Path) -> None:
    found = run(tmp_path / "run", home, test=1, loop="both", full_speed=0.5, open_loop=0.5, rate=25.0)
    outcome = found.outcome
    assert outcome.failure is None, outcome.failure
    assert outcome.figures["lost"] == 0 and outcome.figures["latency_p50"] < 50
