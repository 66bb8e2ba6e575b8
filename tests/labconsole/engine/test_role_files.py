"""Files that travel with a run: each role reads the content that was hashed, from where the launcher put it."""

from __future__ import annotations

import platform
from hashlib import sha256
from pathlib import Path

import pytest

from labconsole.clock import clock_domain
from labconsole.engine.launcher import RunFiles
from labconsole.engine.recorder import spool_root
from labconsole.errors import UserError
from labconsole.model.plugin import Plugins
from labconsole.output.csv_export import flat_provenance
from labconsole.output.run_json import run_as_json
from labconsole.profiles.profile import campaign_of, load_profile
from labconsole.security.private_files import PRIVATE_KEY_MARK
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, RunStatus, StoredFile
from tests.helpers.practice import Bench

CANARY = "c4n4ry-of-a-private-key"
KEY = f"-----BEGIN ENCRYPTED {PRIVATE_KEY_MARK.decode()}\n{CANARY}\n"


@pytest.fixture
def note(tmp_path: Path) -> Path:
    """A file for the roles to read."""
    path = tmp_path / "note.txt"
    path.write_text("first")
    return path


def run(bench: Bench, **parameters: str) -> RunDetail:
    """One run of the trial whose roles read a file."""
    profile = bench.folder / "files.toml"
    lines = [f'{name} = "{value}"' for name, value in parameters.items()]
    profile.write_text("\n".join(['format = 1\nkind = "practice.files"\n[parameters]', *lines, ""]))
    [run_id] = bench.queue.submit(campaign_of(load_profile(str(profile), Plugins.discover())))
    bench.pump_until_idle()
    return bench.detail(run_id)


def data_of(detail: RunDetail, what: str) -> list[str]:
    """What each role said of the file that it read."""
    return [str(event.data[what]) for event in detail.events if event.name == "read"]


def test_roles_read_the_content_at_the_start_of_a_file_that_is_edited_in_mid_run(
    thread_bench: Bench, note: Path
) -> None:
    detail = run(thread_bench, note=str(note), edited="second")
    assert detail.row.status is RunStatus.FINISHED, detail.row.reason
    assert note.read_text() == "second"
    assert data_of(detail, "text") == ["first"] * 3
    assert len(set(data_of(detail, "path"))) == 1, "the content is kept once"


def test_a_role_reads_the_copy_and_its_sentences_have_the_path_of_the_operator(thread_bench: Bench, note: Path) -> None:
    detail = run(thread_bench, note=str(note))
    [copy] = set(data_of(detail, "path"))
    assert Path(copy).is_relative_to(spool_root(thread_bench.database))
    assert Path(copy).name == sha256(b"first").hexdigest()
    assert [event.message for event in detail.events if event.name == "read"] == [f"Read {note}."] * 3
    assert not Path(copy).exists(), "it goes with the run's spool"


def test_an_error_of_a_role_names_the_operators_file(thread_bench: Bench, note: Path) -> None:
    note.write_text("faulty")
    detail = run(thread_bench, note=str(note))
    assert (detail.row.status, detail.row.reason) == (
        RunStatus.FAILED,
        f"The note {note} is faulty: write another one.",
    )


def test_a_role_without_a_file_of_that_key_has_none(thread_bench: Bench) -> None:
    assert data_of(run(thread_bench), "text") == ["nothing"] * 3


def test_roles_are_stored_with_host_clock_domain_and_files(thread_bench: Bench, note: Path) -> None:
    detail = run(thread_bench, note=str(note))
    content = StoredFile("note", "note.txt", 5, sha256(b"first").hexdigest())
    assert [role.name for role in detail.roles] == ["reader-0", "reader-1", "reader-2"]
    assert {(role.host, role.clock_domain, role.files) for role in detail.roles} == {
        (platform.node(), clock_domain(), (content,))
    }
    assert clock_domain()
    shown = dict(flat_provenance(detail))
    assert shown[f"roles.{platform.node()}"] == f"reader-0, reader-1, reader-2 (clock {clock_domain()})"
    assert shown["files.note.txt"] == f"reader-0, reader-1, reader-2 (5 B, SHA-256 {content.sha256})"
    with Reader(thread_bench.database) as reader:
        assert verify(reader, detail.row.id).ok
        assert run_as_json(reader, detail.row.id)["roles"][0]["files"][0]["sha256"] == content.sha256


@pytest.mark.parametrize("padding", [0, 1024 * 1024 - 30], ids=["at once", "over the edge of a block"])
def test_a_private_key_is_refused_and_not_copied(thread_bench: Bench, note: Path, padding: int) -> None:
    note.write_text("x" * padding + KEY)
    detail = run(thread_bench, note=str(note))
    assert detail.row.status is RunStatus.FAILED
    assert detail.row.reason == (
        f"{note} holds a private key, and the files of a role travel with the run: name a file without the key."
    )
    for path in thread_bench.folder.rglob("*"):
        assert (
            path in (note, thread_bench.folder / "files.toml")
            or path.is_dir()
            or CANARY.encode() not in path.read_bytes()
        )


def test_a_key_that_was_refused_leaves_nothing_behind(tmp_path: Path, note: Path) -> None:
    note.write_text("x" * 2_000_000 + KEY)
    with pytest.raises(UserError, match="holds a private key"):
        RunFiles(tmp_path / "files").keep(note)
    assert list((tmp_path / "files").iterdir()) == []


@pytest.mark.parametrize(("name", "why"), [("none.txt", "cannot be read"), (".", "is not a regular file")])
def test_a_file_that_cannot_travel_is_named_with_its_reason(thread_bench: Bench, name: str, why: str) -> None:
    detail = run(thread_bench, note=str(thread_bench.folder / name))
    assert detail.row.status is RunStatus.FAILED
    assert str(thread_bench.folder / name) in detail.row.reason and why in detail.row.reason


def test_a_role_for_another_host_is_refused(bench: Bench) -> None:
    assert run(bench, host="obu-3").row.reason == (
        "Role reader-0 cannot be started on obu-3: the scenario of this run names no hosts."
    )
