"""Two operators, two consoles: one sends and one receives, each with a database of its own; and where secrets go."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import psutil
import pytest

from labconsole.cli.main import main
from labconsole.model.trial import REMEDY
from labconsole.output.csv_export import export_run
from labconsole.paths import HOME_VARIABLE
from labconsole.security.identities import IdentityFiles, load_identity
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.store.reader import Reader
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.broker.queue import QueueLimits
from labconsole_amqp.link.server_handshake import Access
from labconsole_amqp.link.tls import TlsSettings
from tests.helpers.authorities import new_authority
from tests.helpers.forked_programs import programs_started
from tests.helpers.identities import write_identity
from tests.helpers.terminal import Terminal
from tests.helpers.worker_threads import CONSOLE_IN_THREADS, workers_in_threads
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving
from tests.labconsole_amqp.lab import Lab

PASSWORD = "a password that must not leak"
PROCESSES = (sys.executable, "-m", "labconsole.cli.main")


class Site:
    """Certificates of two States and a broker, made for a test; `sender` and `receiver` are the States' files."""

    def __init__(self, folder: Path) -> None:
        self.authority = new_authority("Test CA")
        self.folder = folder
        self.sender = self.issue("state-x")
        self.receiver = self.issue("state-y")
        self.broker = self.issue("the-broker", CertificateProfile.TLS_SERVER)

    def issue(self, name: str, profile: CertificateProfile = CertificateProfile.STATE) -> IdentityFiles:
        return write_identity(self.folder, name, self.authority, profile)

    def server_tls(self) -> TlsSettings:
        """The broker's settings."""
        return TlsSettings(load_identity(self.broker, "the broker"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("site"))


@contextmanager
def serving_states(site: Site) -> Iterator[RunningBroker]:
    """A broker that takes both States' certificates, and a password; with queues for the clocks."""
    settings = BrokerSettings(
        queues=("q", "q.clock", "q.clock-reply"),
        tls_port=0,
        tls=site.server_tls(),
        access=Access(anonymous=True, users={"operator": PASSWORD}),
        limits=QueueLimits(messages=40),
    )
    with serving(settings) as running:
        yield running


@pytest.fixture
def broker(site: Site) -> Iterator[RunningBroker]:
    with serving_states(site) as running:
        yield running


def external(broker: RunningBroker, site: Site, mode: str, test: int, **more: Any) -> dict[str, Any]:
    """Parameters of a console that plays one end, with nothing of the other end but its certificate."""
    settings: dict[str, Any] = {
        "mode": mode,
        "broker": "external",
        "host": "127.0.0.1",
        "port": broker.ports.tls if test >= 2 else broker.ports.plain,
        "address": "q",
        "test": test,
        "count": 60,
        "patience": 5.0,
        "wait_for_peer": 120.0,
        "trust": str(site.sender.trust),
        "sender_certificate": str(site.sender.certificate),
        "receiver_certificate": str(site.receiver.certificate),
    }
    own = site.sender if mode == "sender" else site.receiver
    settings |= {f"{mode}_key": str(own.key), f"{mode}_passphrase_file": str(own.passphrase_file)}
    return settings | more


SOURCE = "seed-2025"
MEETINGS = (
    ("sender", 1, SOURCE),
    ("receiver", 2, SOURCE),
    ("receiver", 3, "jose"),
    ("sender", 4, "cms"),
    pytest.param(("sender", 3, SOURCE), marks=pytest.mark.nightly),
    pytest.param(("receiver", 4, SOURCE), marks=pytest.mark.nightly),
)
"""Which console starts first, test and envelope."""


@pytest.fixture(params=MEETINGS, ids=lambda case: "-".join(map(str, case)))
def meeting(request: pytest.FixtureRequest, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the runs of both consoles, and the home of both."""
    first, test, envelope = request.param
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    with serving_states(site) as broker:

        def play(mode: str) -> None:
            Lab(tmp_path / mode).run(**external(broker, site, mode, test, envelope=envelope)).write()

        modes = sorted(("sender", "receiver"), key=first.__ne__)
        threads = [threading.Thread(target=play, args=(mode,)) for mode in modes]
        for thread in threads:
            thread.start()
            time.sleep(0.6)
        for thread in threads:
            thread.join()
    return tmp_path


def test_two_consoles_connect_in_any_order_of_start(meeting: Path) -> None:
    """Nightly: Tests 3 and 4 of the source's envelope, which two command lines exchange in Test 4 in CI, too."""
    sender, receiver = (Lab.read(meeting / mode) for mode in ("sender", "receiver"))
    assert (sender.failure, receiver.failure) == (None, None)
    assert sender.figures["sent"] == receiver.figures["received"] == 60
    assert (receiver.figures["lost"], receiver.figures["failed_verifications"]) == (0, 0)
    assert receiver.verdicts == {"all messages arrived": "pass", "all messages were accepted": "pass"}
    assert receiver.figures["queue_time_mean"] > -1
    assert sender.figures["clock_offset"] == receiver.figures["clock_offset"]
    assert sender.samples.roles("received") == receiver.samples.roles("sent") == []
    assert not (meeting / "home" / "pki" / "pki.db").exists(), "unneeded lab identities were created"


def test_a_receiver_without_a_sender_reports_it(broker: RunningBroker, site: Site, tmp_path: Path) -> None:
    outcome = Lab(tmp_path / "run").run(**external(broker, site, "receiver", 1, wait_for_peer=1.0))
    assert outcome.failure == (
        "No message came within 1 s: start sending on the other console, to the same queue q, or set "
        '"Wait for the other console" (wait_for_peer) higher.'
    )


def test_a_sender_without_a_receiver_reports_it_and_keeps_its_samples(
    broker: RunningBroker, site: Site, tmp_path: Path
) -> None:
    settings = external(broker, site, "sender", 1, wait_for_peer=1.0, patience=1.0)
    outcome = Lab(tmp_path / "run").run(**settings)
    assert outcome.failure is not None
    assert outcome.failure.startswith("No message moved for 1 s: the broker gives no credit, since its queue is full")
    assert outcome.figures["sent"] == 40


def test_a_queue_that_is_not_empty_is_refused_or_drained(broker: RunningBroker, site: Site, tmp_path: Path) -> None:
    Lab(tmp_path / "first").run(**external(broker, site, "sender", 1, count=30, compare_clocks=False))
    both = external(broker, site, "sender", 1, count=20) | {"mode": "both"}
    refused = Lab(tmp_path / "second").run(**both)
    assert refused.failure == (
        f"The queue q at 127.0.0.1:{broker.ports.plain} is not empty, 30 messages are in it and would distort the "
        'figures: empty it there, or set "Queue not empty" (leftover) to drain.'
    )
    (remedy,) = refused.events_named(REMEDY)
    assert remedy.data == {"title": "Drain the queue and run again", "parameters": {"leftover": "drain"}}
    drained = Lab(tmp_path / "third").run(**both, leftover="drain")
    assert drained.failure is None
    assert (drained.figures["received"], drained.figures["unknown"], drained.figures["lost"]) == (20, 0, 0)
    assert [event.message for event in drained.events_named("drained")] == [
        "30 messages were in the queue q and were discarded."
    ]


def profile(path: Path, settings: dict[str, Any]) -> Path:
    """A profile with one scenario."""
    lines = ["format = 1", 'kind = "amqp.messaging"', 'title = "Two consoles"', "[parameters]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("prompted_mode", "reading_console"),
    [("sender", CONSOLE_IN_THREADS), pytest.param("receiver", PROCESSES, marks=pytest.mark.nightly)],
    ids=["sender", "receiver"],
)
def test_two_command_lines_with_two_databases_leak_no_secret(
    prompted_mode: str,
    reading_console: Sequence[str],
    broker: RunningBroker,
    site: Site,
    tmp_path: Path,
    own_home: Path,
) -> None:
    """One console reads its secrets from files, the other one asks for them.

    Nightly, the two swapped: alone finds that processes of a console that reads its secrets from files show them; that
    those of a console that asks for them do not, is judged in CI.
    """
    password_file = tmp_path / "password"
    password_file.touch(0o600)
    password_file.write_text(PASSWORD)
    login = {"username": "operator", "password_file": str(password_file), "count": 200, "loop": "open", "rate": 100.0}
    secrets = [PASSWORD.encode(), *(b"passphrase of state-" + letter for letter in (b"x", b"y"))]
    consoles, seen = [], []
    for mode in ("receiver", "sender"):
        prompted = {"password_file": "", f"{mode}_passphrase_file": ""} if mode == prompted_mode else {}
        file = profile(tmp_path / f"{mode}.toml", external(broker, site, mode, 4, **login) | prompted)
        words = run_command(file, own_home / f"{mode}.db", PROCESSES if prompted else reading_console)
        with programs_started() if prompted else nullcontext():  # the system shows no environment of a forked program
            console = Terminal(words, os.environ)
        consoles.append(console)
        if prompted:
            own = site.sender if mode == "sender" else site.receiver
            console.answer("Passphrase for user operator at 127.0.0.1: ", PASSWORD)
            console.answer(f"Passphrase for the key of the {mode}, {own.key}: ", f"passphrase of {own.key.stem[:-4]}")
    while any(console.process.poll() is None for console in consoles):
        for child in psutil.Process().children(recursive=True):
            seen.append(_shown(child))
        for console in consoles:
            console.read()
        time.sleep(0.2)
    results = []
    for console in consoles:
        code, out = console.finish()
        assert code == 0, console.shown.decode()
        results.append(json.loads(out))
        seen += [out, console.shown]
    received, sent = results
    assert received["metrics"]["received"]["value"] == sent["metrics"]["sent"]["value"] == 200
    assert (received["metrics"]["lost"]["value"], received["metrics"]["failed_verifications"]["value"]) == (0, 0)
    assert "lost" not in sent["metrics"]
    for mode in ("receiver", "sender"):
        reader = Reader(own_home / f"{mode}.db")
        row = reader.runs()[0]
        detail = reader.run(row.id)
        export_run(reader, row.id, own_home / f"{mode}-csv")
        seen.append(repr((detail, list(detail.events))).encode())
        reader.close()
    files = [path for path in own_home.rglob("*") if path.is_file()]
    assert {"receiver.db", "sender.db"} <= {path.name for path in files}
    assert len([path for path in files if path.suffix == ".csv"]) > 2
    seen += [path.read_bytes() for path in files]
    assert len(seen) > 20
    for secret in secrets:
        assert not any(secret in text for text in seen)


def run_command(file: Path, database: Path, console: Sequence[str] = CONSOLE_IN_THREADS) -> list[str]:
    """The command that runs a profile and prints JSON; its worker and roles are threads unless `PROCESSES`."""
    return [*console, "run", str(file), "--json", "--db", str(database)]


@pytest.mark.parametrize(
    ("entered", "reason"),
    [
        ("not the passphrase", "does not open: the passphrase is wrong"),
        pytest.param("", "There is no passphrase for the key of the sender", marks=pytest.mark.nightly),
    ],
)
def test_a_wrong_or_missing_passphrase_fails_the_run_in_a_sentence(
    entered: str, reason: str, broker: RunningBroker, site: Site, tmp_path: Path
) -> None:
    """Nightly: an empty answer alone finds that it is tried; the same sentence without a terminal is judged in CI."""
    settings = external(broker, site, "sender", 2, sender_passphrase_file="", compare_clocks=False)
    console = Terminal(run_command(profile(tmp_path / "own.toml", settings), tmp_path / "runs.db"), os.environ)
    console.answer("Passphrase for the key of the sender, ", entered)
    code, out = console.finish()
    result = json.loads(out)
    assert (code, result["status"]) == (1, "failed")
    assert reason in result["reason"]
    assert b"Traceback" not in console.shown


def test_ctrl_c_at_the_prompt_runs_nothing(broker: RunningBroker, site: Site, tmp_path: Path) -> None:
    settings = external(broker, site, "sender", 2, sender_passphrase_file="", compare_clocks=False)
    console = Terminal(run_command(profile(tmp_path / "own.toml", settings), tmp_path / "runs.db"), os.environ)
    console.wait_for("Passphrase for the key of the sender, ")
    console.process.send_signal(signal.SIGINT)
    code, out = console.finish()
    assert (code, out) == (130, b"")
    assert b"Traceback" not in console.shown
    assert not (tmp_path / "runs.db").exists()


def test_without_a_terminal_no_prompt_is_shown(
    broker: RunningBroker,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    settings = external(broker, site, "sender", 2, sender_passphrase_file="", compare_clocks=False)
    file = profile(tmp_path / "own.toml", settings)
    with Path(os.devnull).open() as nothing, workers_in_threads():
        monkeypatch.setattr(sys, "stdin", nothing)
        code = main(["run", str(file), "--json", "--db", str(tmp_path / "runs.db")])
    out, err = capfd.readouterr()
    assert code == 1 and "Passphrase for" not in out + err
    assert json.loads(out)["reason"].startswith("There is no passphrase for the key of the sender")


def _shown(process: psutil.Process) -> bytes:
    """What other processes can see of a process: its arguments and environment."""
    try:
        return "\0".join([*process.cmdline(), *(f"{k}={v}" for k, v in process.environ().items())]).encode()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return b""
