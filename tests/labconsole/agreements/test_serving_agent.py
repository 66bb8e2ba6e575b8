"""`labconsole agent --serve`: agreements run once and at their time, their bundles are exchanged, their runs merged."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from labconsole.agreements import agreement_service
from labconsole.agreements.agreement_files import Served, keep_served
from labconsole.agreements.agreement_service import AgreementService
from labconsole.agreements.exchange_folder import ExchangeFolder
from labconsole.clock import wall_now
from labconsole.model.plugin import Plugins
from labconsole.output.bundle_format import signature_path
from labconsole.paths import HOME_VARIABLE
from labconsole.security.pki.reader import PkiReader
from labconsole.security.secrets import Secret
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole.store.run_store import Store
from tests.helpers.worker_threads import workers_in_threads
from tests.labconsole.agreements.agreement_files import Files, accept, agree, bundle_of, propose, swap
from tests.labconsole.agreements.two_owners import LIMIT_S, Owner, Watched, new_owner, statuses
from tests.labconsole.hosts.cluster_processes import Served as Process
from tests.labconsole_amqp.embedded_broker import RunningBroker


@pytest.fixture
def agents() -> Iterator[Callable[..., Process]]:
    """Starts agents, which are stopped in the end; `threads` as that of `Process`."""
    with ExitStack() as stack:

        def start(owner: Owner, folder: Path, *, threads: bool = False) -> Process:
            signer = f"{owner.folder.name}-signer"
            process = Process(owner.folder, "agent", "--serve", str(folder), "--identity", signer, threads=threads)
            stack.callback(lambda: process.process.poll() is None and process.kill())
            process.waits_for("Serves agreements over")
            return process

        yield start


@dataclass(frozen=True)
class Agent:
    """Serves an owner's agreements in this process until a sentence is said."""

    owner: Owner
    folder: Path

    def says(self, until: str, secrets: dict[str, Secret] | None = None) -> list[str]:
        context = Watched(until, secrets or {})
        signer = f"{self.owner.folder.name}-signer"
        AgreementService(self.folder, signer, self.owner.folder / "runs.db", context).serve()
        assert any(until in one for one in context.said), context.said
        return context.said


@pytest.fixture
def agent(owners: tuple[Owner, Owner], shared: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """That of State B, its runs in threads; commands of both owners run before it is used."""
    monkeypatch.setenv(HOME_VARIABLE, str(owners[1].folder))
    monkeypatch.setattr(agreement_service, "_LOOK_S", 0.1)
    with workers_in_threads():
        yield Agent(owners[1], shared)


def test_two_agents_run_exchange_and_merge_what_two_persons_have_agreed_upon(
    owners: tuple[Owner, Owner],
    tmp_path: Path,
    shared: Path,
    broker: RunningBroker,
    agents: Callable[..., Process],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = owners
    at_a, at_b = (agents(owner, shared, threads=True) for owner in (a, b))
    at_b.waits_for("No agreement is open")
    made = propose(a, folder=tmp_path, loop="open", rate=100.0, port=broker.ports.plain, patience=10.0)
    files = Files(made.proposal.rename(shared / "proposal.pem"), shared / "acceptance.pem", made.sha256, made.id)
    at_a.waits_for(f"proposal.pem: Proposal {files.id} of this console waits for the other owner's acceptance")
    at_b.waits_for(f"proposal.pem: Proposal {files.id} of a-signer of State A waits for a person")
    accept(b, files)
    at_b.waits_for(f"Agreement {files.id}: runs now, as receiver")
    at_a.waits_for(f"acceptance.pem: Acceptance of {files.id} by b-signer of State B waits for a person")
    a.does("agreements", "conclude", files.acceptance)
    for one in (at_a, at_b):
        one.waits_for(f"Agreement {files.id}: run 1 has finished, and is in {files.id}-")
        one.waits_for(f"Agreement {files.id}: Run 3 is runs")
        one.waits_for(rf"Agreement {files.id}: Run 1 \([a-z]+\) was as agreed upon")
        assert one.end() == 0
        assert "runs now" not in one.said.partition("Run 3 is runs")[2]
    for owner in owners:
        with Reader(owner.folder / "runs.db") as reader:
            assert reader.run(3).row.metrics["lost"].value == 0

    monkeypatch.setenv(HOME_VARIABLE, str(a.folder))
    said = Agent(a, shared).says("No agreement is open")
    assert statuses(a) == [RunStatus.FINISHED] * 3
    assert not any(files.id in one for one in said)
    b.does("import", next(shared.glob(f"{files.id}-sender-*.lcz")), "--signed", "--db", tmp_path / "other.db")


def test_an_agent_that_was_killed_in_a_run_does_not_repeat_it(
    owners: tuple[Owner, Owner],
    tmp_path: Path,
    shared: Path,
    broker: RunningBroker,
    agents: Callable[..., Process],
    agent: Agent,
) -> None:
    _, b = owners
    files = agree(*owners, tmp_path, port=broker.ports.plain)
    first = agents(b, shared)
    first.waits_for(f"Agreement {files.id}: runs now")
    deadline_s = time.monotonic() + LIMIT_S
    while statuses(b) != [RunStatus.RUNNING] and time.monotonic() < deadline_s:
        time.sleep(0.1)
    first.kill()
    said = agent.says(f"Agreement {files.id}: run 1 interrupted: ")
    assert f"`labconsole run {files.id}` does so" in said[-1]
    assert statuses(b) == [RunStatus.INTERRUPTED]


def test_stopping_an_agent_cancels_its_run(
    owners: tuple[Owner, Owner],
    tmp_path: Path,
    shared: Path,
    broker: RunningBroker,
    agents: Callable[..., Process],
) -> None:
    _, b = owners
    files = agree(*owners, tmp_path, port=broker.ports.plain)
    process = agents(b, shared)
    process.waits_for(f"Agreement {files.id}: runs now")
    assert process.end() == 0
    assert statuses(b) == [RunStatus.CANCELLED]
    assert "The agent was stopped" in process.said


def test_an_agreement_runs_at_its_time_and_what_fails_is_not_repeated(
    owners: tuple[Owner, Owner], tmp_path: Path, agent: Agent
) -> None:
    starts = (wall_now() + timedelta(seconds=8)).replace(microsecond=0)
    files = agree(*owners, tmp_path, "--starts", starts.isoformat(), port=1)
    said = agent.says(f"Agreement {files.id}: run 1 failed:")
    assert said[1] == f"Agreement {files.id}: waits until {starts:%Y-%m-%d %H:%M:%S} UTC, to play receiver then."
    assert f"`labconsole run {files.id}` does so." in said[-1]
    with Reader(agent.owner.folder / "runs.db") as reader:
        [row] = reader.runs()
    assert row.created >= starts
    agent.says(f"Agreement {files.id}: run 1 failed:")
    assert statuses(agent.owner) == [RunStatus.FAILED]


@pytest.mark.parametrize("starts", [True, False])
def test_an_agreement_whose_time_has_passed_is_left_to_a_person(
    starts: bool, owners: tuple[Owner, Owner], tmp_path: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = wall_now() + timedelta(hours=1)
    files = agree(*owners, tmp_path, *(("--starts", at.isoformat()) if starts else ()))
    late = at + timedelta(minutes=6) if starts else at + timedelta(days=7)
    monkeypatch.setattr(agreement_service, "wall_now", lambda: late)
    agent.says(f"Agreement {files.id}: Its time has passed")
    assert statuses(agent.owner) == []


def test_what_was_begun_without_a_trace_is_not_begun_again(
    owners: tuple[Owner, Owner], tmp_path: Path, agent: Agent
) -> None:
    files = agree(*owners, tmp_path)
    keep_served(files.id, Served(begun="2026-12-01 14:30:00"))
    agent.says("begun at 2026-12-01 14:30:00 UTC, and no run of it is in the database")
    assert statuses(agent.owner) == []


def test_what_a_person_has_run_is_not_run_by_the_agent(
    owners: tuple[Owner, Owner], tmp_path: Path, agent: Agent
) -> None:
    files = agree(*owners, tmp_path, port=1)
    agent.owner.refuses("run", files.id)
    agent.says(f"Agreement {files.id}: run 1 was begun by a person")
    assert statuses(agent.owner) == [RunStatus.FAILED]


def test_a_profile_that_is_not_as_agreed_upon_is_not_run(
    owners: tuple[Owner, Owner], tmp_path: Path, agent: Agent
) -> None:
    files = agree(*owners, tmp_path)
    profile = agent.owner.folder / "profiles" / f"{files.id}.toml"
    profile.write_text(profile.read_text().replace("count = 50", "count = 60"))
    said = agent.says(f"Agreement {files.id}: Not run, since the profile {files.id} is not as agreed upon")
    assert "Messages was 60, and 50 was agreed upon." in said[-1]
    assert statuses(agent.owner) == []


def test_nothing_is_run_with_an_owner_that_is_no_longer_trusted(
    owners: tuple[Owner, Owner], tmp_path: Path, agent: Agent
) -> None:
    a, b = owners
    files = agree(a, b, tmp_path)
    b.import_crl(a.issuer, a.certificate_of("a-signer"))
    said = agent.says(f"Agreement {files.id}: Not run, since the other owner is no longer trusted")
    assert "(revoked)" in said[-1]
    assert statuses(b) == []


def test_a_run_waits_for_a_passphrase_that_nothing_gives(
    owners: tuple[Owner, Owner], tmp_path: Path, agent: Agent
) -> None:
    settings = {"test": 2, "port": 1}
    a, b = owners
    certificate, key = b.key_file("b-client", "passphrase")
    files = propose(a, folder=tmp_path, **settings)
    accept(b, files, "--set", f"receiver_certificate={certificate}", "--set", f"receiver_key={key}")
    a.does("agreements", "conclude", files.acceptance)
    agent.says("There is no passphrase for the key of")
    assert statuses(b) == []
    agent.says(f"Agreement {files.id}: run 1 failed:", {f"key {key}": Secret("passphrase")})


def test_a_console_has_one_serving_agent(
    owners: tuple[Owner, Owner], shared: Path, agents: Callable[..., Process]
) -> None:
    a, _ = owners
    agents(a, shared)
    assert "Another agent serves the agreements of this console" in a.refuses(
        "agent", "--serve", shared, "--identity", "a-signer"
    )


def test_an_agent_needs_a_folder_and_an_identity(owners: tuple[Owner, Owner], tmp_path: Path) -> None:
    a, _ = owners
    refused = a.refuses("agent", "--serve", tmp_path / "none", "--identity", "a-signer")
    assert "cannot be the exchange folder" in refused
    assert "There is no identity no-one" in a.refuses("agent", "--serve", tmp_path, "--identity", "no-one")
    for words in (["agent"], ["agent", "--serve", tmp_path], ["agent", "host.pem", "--serve", tmp_path]):
        assert a.command(*words).returncode == 2


@pytest.mark.parametrize(
    ("signing", "of_trial", "change", "sentence"),
    [
        ("a", True, None, "Run 1 of the other console is imported. Signed by a-signer of State A, trusted here"),
        ("a", True, "unsigned", "It waits for its signature, the file with .p7s after its name."),
        ("a", True, "swapped", "It is not the bundle that a-signer of State A signed"),
        ("a", False, None, "its runs are of no agreement with a-signer of State A"),
        ("c", True, None, "its runs are of no agreement with c-signer of State C"),
        ("d", True, None, "It is not imported. Signed by d-signer of an unknown State, not trusted here"),
        ("b", True, None, ""),
    ],
)
def test_only_bundles_of_an_agreement_that_its_other_owner_has_signed_are_imported(
    signing: str,
    of_trial: bool,
    change: str | None,
    sentence: str,
    owners: tuple[Owner, Owner],
    tmp_path: Path,
    shared: Path,
    agent: Agent,
) -> None:
    a, b = owners
    files = agree(a, b, tmp_path)
    by_letter = {"a": a, "b": replace(b, folder=tmp_path / "copy" / "b")}
    shutil.copytree(b.folder, tmp_path / "copy" / "b")
    for letter in "cd":
        by_letter[letter] = new_owner(tmp_path / letter, letter)
    b.trust("State C", by_letter["c"].issuer.certificate)
    bundle = bundle_of(by_letter[signing], shared / "results.lcz", files.id if of_trial else "0" * 16)
    if change == "unsigned":
        signature_path(bundle).unlink()
    elif change == "swapped":
        swap(bundle, tmp_path, by_letter[signing])
    database = b.folder / "runs.db"
    Store.open(database).close()
    with PkiReader.open(b.pki) as reader:
        folder = ExchangeFolder(shared, database, Plugins.discover())
        [*news] = folder.news(reader.snapshot())
        assert [*folder.news(reader.snapshot())] == [], "what was said is not said again"
    assert [sentence in said for _, said in news] == ([True] if sentence else []), news
    assert statuses(b) == ([RunStatus.FINISHED] if sentence.startswith("Run 1") else [])


def test_other_files_in_the_folder_are_left_alone(owners: tuple[Owner, Owner], shared: Path, agent: Agent) -> None:
    a, _ = owners
    shutil.copy(a.root_file, shared / "root.pem")
    (shared / "notes.txt").write_text("text")
    (shared / "link.lcz").symlink_to(shared / "notes.txt")
    said = agent.says("root.pem: Neither a proposal nor an acceptance, and left alone.")
    assert not [one for one in said if "notes" in one or "link" in one]
