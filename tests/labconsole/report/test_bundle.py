"""Runs go from one database to another whole and unchanged; a file that is not as it should be changes nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labconsole.engine.containment import this_process
from labconsole.report.bundle import write_bundle
from labconsole.report.bundle_format import MANIFEST, BundleError, RunRows, chunk_bytes, run_member, series_member
from labconsole.report.bundle_import import import_bundle
from labconsole.report.files import ExportError
from labconsole.store import chunks, edits
from labconsole.store.errors import StoreError
from labconsole.store.evidence import verify
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.samples import StoredChunk, series_columns
from labconsole.store.store import EventRecord, SampleChunk, Store
from labconsole.trial import Column, Direction, Evaluation, Event, Level, Metric, Series, Verdict

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MESSAGES = Series(
    "messages", "Messages", (Column("sequence", "u4", "", "No."), Column("latency", "f8", "ns", "Latency"))
)
CAMPAIGN = NewCampaign(
    "demo",
    "Demo ✓",
    'title = "Demo ✓"\n',
    7,
    (NewScenario("Test 1", "swim", {"tls": False}, {"throughput": {"min": 1.5}}), NewScenario("Test 2", "swim", {})),
    ((0, 1), (1, 1), (0, 2), (1, 2)),
    ({"name": "State A"},),
)


def filled(path: Path) -> list[int]:
    """A database with the four runs of the campaign; those of Test 1 have all that a run can have."""
    with Store.open(path) as store:
        ids = store.add_campaign(CAMPAIGN, this_process(), NOW)
        for run_id in ids[::2]:
            store.run_started(run_id, this_process(), {"cpu": "i7"}, ["Closed loop."], NOW)
            for role in ("receiver", "sender"):
                for seq in range(3):
                    values = {"sequence": np.arange(100) + 100 * seq, "latency": np.arange(100) / (run_id + 1)}
                    said = Event(-5, role, Level.WARNING, "slow", "Größe\n", {"a": [1, None]})
                    store.append(
                        run_id, [SampleChunk(role, MESSAGES, seq, 100, values)], [EventRecord(role, seq, said)]
                    )
            store.add_artefact(run_id, "trust.pem", "application/x-pem-file", b"-----BEGIN\x00")
            metrics = (
                Metric("throughput", 1 / 3, "msg/s", Direction.HIGHER, 300),
                Metric("lost", 5e-324, "", labels={"reason": "late"}),
            )
            store.replace_evaluation(run_id, Evaluation(metrics, (Verdict("limit", "pass", "Enough.", {"min": 1}),)))
        for run_id in ids:
            store.run_ended(run_id, RunStatus.FINISHED if run_id in ids[::2] else RunStatus.FAILED, "", NOW)
        edits.set_note(store, ids[0], "first light ✓")
        edits.set_tags(store, ids[0], ["a", "b"])
    return ids


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The operator's database that runs come from; not to be changed."""
    path = tmp_path_factory.mktemp("original") / "runs.db"
    filled(path)
    return path


@pytest.fixture(scope="module")
def good(original: Path) -> Path:
    """A bundle of all its runs."""
    path = original.with_name("runs.lcz")
    with Reader(original) as reader:
        write_bundle(reader, [1, 2, 3, 4], path)
    return path


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Where the database of another operator is, or will be."""
    return tmp_path / "other.db"


def digests(path: Path) -> dict[str, str]:
    """Digest by uuid of all runs, each verified."""
    found = {}
    with Reader(path) as reader:
        for row in reader.runs(include_trashed=True):
            verification = verify(reader, row.id)
            assert verification.ok, verification.faults
            found[row.uuid] = verification.digest_now
    return found


def counts(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as raw:
        names = [name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: raw.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names}


def test_runs_arrive_with_everything_and_the_same_digest(original: Path, good: Path, other: Path) -> None:
    result = import_bundle(other, good)
    assert (result.imported, result.skipped) == ((1, 2, 3, 4), ())
    assert digests(other) == digests(original)
    assert counts(other) == counts(original)
    with Reader(original) as before, Reader(other) as after:
        for run_id in result.imported:
            told, kept = before.run(run_id), after.run(run_id)
            assert replace(kept, row=told.row) == told
            assert replace(kept.row, owner=None, metrics={}) == replace(told.row, owner=None, metrics={})
            assert dict(kept.row.metrics) == dict(told.row.metrics)
            assert before.evidence(run_id) == after.evidence(run_id)
            for series in told.series:
                mine = before.samples(run_id).table(series.name, series.role)
                theirs = after.samples(run_id).table(series.name, series.role)
                for name in mine:
                    np.testing.assert_array_equal(mine[name], theirs[name])
        assert after.artefact(1, "trust.pem") == before.artefact(1, "trust.pem")


def test_imported_runs_are_compared_with_ones_own(good: Path, other: Path) -> None:
    own = filled(other)
    result = import_bundle(other, good)
    assert not set(result.imported) & set(own)
    with Reader(other) as reader:
        rows = reader.comparable([own[0], result.imported[0]])
    assert [row.metrics["lost{reason=late}"].value for row in rows] == [5e-324, 5e-324]


def test_what_is_there_already_is_left_as_it_is(good: Path, other: Path) -> None:
    first = import_bundle(other, good)
    with Store.open(other) as store:
        edits.set_note(store, first.imported[0], "mine")
    before = counts(other)
    second = import_bundle(other, good)
    assert second.imported == ()
    assert set(second.skipped) == digests(other).keys()
    assert counts(other) == before
    with Reader(other) as reader:
        assert reader.run(first.imported[0]).row.note == "mine"


def test_a_campaign_that_comes_in_parts_is_one(original: Path, other: Path, tmp_path: Path) -> None:
    with Reader(original) as reader:
        for number, chosen in enumerate(([3], [2, 1], [1, 4])):
            write_bundle(reader, chosen, tmp_path / f"{number}.lcz")
            import_bundle(other, tmp_path / f"{number}.lcz")
    assert digests(other) == digests(original)
    assert counts(other)["campaign"] == 1
    assert counts(other)["scenario"] == 2


def test_repeats_that_were_added_on_both_sides_stay_apart(good: Path, other: Path, tmp_path: Path) -> None:
    """Both operators add the same repeat to the same campaign: two runs that no one campaign can hold."""
    third = tmp_path / "third.db"
    for path in (other, third):
        import_bundle(path, good)
        with Store.open(path) as store:
            run_id = store.add_repeat(1, this_process(), NOW)
            store.run_ended(run_id, RunStatus.CANCELLED, "Cancelled.", NOW)
    with Reader(third) as reader:
        write_bundle(reader, [5], tmp_path / "5.lcz")
    assert import_bundle(other, tmp_path / "5.lcz").imported == (6,)
    assert counts(other)["campaign"] == 2
    assert digests(third).items() <= digests(other).items()


def test_a_bundle_is_there_complete_or_not_at_all(original: Path, tmp_path: Path) -> None:
    target = tmp_path / "runs.lcz"

    def stop(share: float) -> None:
        if share > 0.5:
            raise InterruptedError("enough")

    with Reader(original) as reader:
        with pytest.raises(ExportError):
            write_bundle(reader, [1, 3], target, stop)
        assert list(tmp_path.glob("*.lcz*")) == []
        with pytest.raises(StoreError, match="There is no run 9"):
            write_bundle(reader, [1, 9], target)
        with pytest.raises(ExportError, match="cannot be written"):
            write_bundle(reader, [1], original / "runs.lcz")
    assert not target.exists()


def test_progress_goes_from_nothing_to_all(original: Path, other: Path, tmp_path: Path) -> None:
    written: list[float] = []
    read: list[float] = []
    with Reader(original) as reader:
        write_bundle(reader, [1, 3], tmp_path / "runs.lcz", written.append)
    import_bundle(other, tmp_path / "runs.lcz", read.append)
    for shares in (written, read):
        assert shares == sorted(shares)
        assert 0 < shares[0] < 0.2
        assert shares[-1] == 1


def test_a_run_that_goes_on_is_not_handed_on(tmp_path: Path) -> None:
    with Store.open(tmp_path / "runs.db") as store:
        (run_id, *_) = store.add_campaign(CAMPAIGN, this_process(), NOW)
        with Reader(store.path) as reader, pytest.raises(ExportError, match=f"Run {run_id} is queued: wait"):
            write_bundle(reader, [run_id], tmp_path / "runs.lcz")
    assert not (tmp_path / "runs.lcz").exists()


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        ("UPDATE metric SET value = 9", "labconsole verify 1"),
        ("UPDATE chunk SET payload = zeroblob(9) WHERE seq = 1", "damaged in chunk 1"),
        ("UPDATE artefact SET content = zeroblob(9)", "is damaged"),
    ],
)
def test_a_run_that_was_changed_is_not_handed_on(original: Path, tmp_path: Path, damage: str, sentence: str) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(original, copy)
    with closing(sqlite3.connect(copy)) as raw, raw:
        raw.execute(damage)
    with Reader(copy) as reader, pytest.raises((StoreError, ExportError), match=sentence):
        write_bundle(reader, [1], tmp_path / "runs.lcz")
    assert not (tmp_path / "runs.lcz").exists()


Members = dict[str, bytes]


def _first_uuid(members: Members) -> str:
    return str(json.loads(members[MANIFEST])["runs"][0]["uuid"])


def _json(members: Members, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads(members[name])
    change(content)
    members[name] = json.dumps(content).encode()


def _run(change: Callable[[dict[str, Any]], object]) -> Callable[[Members], None]:
    return lambda members: _json(members, run_member(_first_uuid(members)), change)


def _manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[Members], None]:
    return lambda members: _json(members, MANIFEST, change)


def _chunks(change: Callable[[bytes], bytes]) -> Callable[[Members], None]:
    def apply(members: Members) -> None:
        name = series_member(_first_uuid(members), 0)
        members[name] = change(members[name])

    return apply


def _flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def _with(name: str) -> Callable[[Members], None]:
    return lambda members: members.update({name: b"#!"})


def _without(name: Callable[[str], str]) -> Callable[[Members], object]:
    return lambda members: members.pop(name(_first_uuid(members)))


TAMPERED: dict[str, tuple[Callable[[Members], object], str]] = {
    "path upwards": (_with("../../.bashrc"), "does not belong into a bundle: '../../.bashrc'"),
    "absolute path": (_with("/etc/passwd"), "does not belong"),
    "path with drive": (_with("C:\\evil.dll"), "does not belong"),
    "run that is not declared": (_with("runs/x/run.json"), "does not belong"),
    "no manifest": (lambda members: members.pop(MANIFEST), "manifest.json is missing"),
    "no rows": (_without(run_member), "is missing"),
    "no series": (_without(lambda uuid: series_member(uuid, 1)), "is missing"),
    "manifest no JSON": (lambda members: members.update({MANIFEST: b"\xff{"}), "no bundle of the lab console"),
    "manifest deep": (lambda members: members.update({MANIFEST: b"[" * 100_000}), "no bundle of the lab console"),
    "other format": (_manifest(lambda m: m.update(format="OCI image")), "no bundle of the lab console"),
    "newer": (_manifest(lambda m: m.update(version=2)), "newer lab console .* update the console"),
    "unknown field": (_manifest(lambda m: m.update(hook="rm")), "damaged or foreign .hook"),
    "run twice": (_manifest(lambda m: m["runs"].append(m["runs"][0])), "a run twice"),
    "campaign that is not there": (_manifest(lambda m: m["runs"][0].update(campaign=5)), "scenario of run .* missing"),
    "uuid as path": (_manifest(lambda m: m["runs"][0].update(uuid="../../x")), "damaged or foreign"),
    "profile changed": (
        _manifest(lambda m: m["campaigns"][0]["row"].update(profile_text="other")),
        "not as it was sealed",
    ),
    "parameters changed": (
        _manifest(lambda m: m["campaigns"][0]["scenarios"][0].update(parameters='{"tls":true}')),
        "not as it was sealed",
    ),
    "metric changed": (_run(lambda r: r["metric"][0].update(value=99.0)), "not as it was sealed"),
    "metric infinite": (_run(lambda r: r["metric"][0].update(value=float("inf"))), "damaged or foreign"),
    "event gone": (_run(lambda r: r["event"].pop()), "not as it was sealed"),
    "event twice": (_run(lambda r: r["event"].append(r["event"][0])), "contradicts itself"),
    "event with no object": (_run(lambda r: r["event"][0].update(data="[")), "damaged or foreign"),
    "reason changed": (_run(lambda r: r["run"].update(reason="Fine.")), "not as it was sealed"),
    "live": (_run(lambda r: r["run"].update(status="running")), "status of an ended run"),
    "digest changed": (_run(lambda r: r["evidence"][0].update(digest="0" * 64)), "not as it was sealed"),
    "no evidence": (_run(lambda r: r["evidence"].clear()), "damaged or foreign"),
    "another run's rows": (_run(lambda r: r["run"].update(uuid="0" * 8 + "-0000" * 3 + "-" + "0" * 12)), "of another"),
    "objects as samples": (
        _run(lambda r: r["series"][0].update(columns='[["a","O","",""]]')),
        "not a list of columns",
    ),
    "artefact's name a path": (_run(lambda r: r["artefact"][0].update(name="../x")), "name of an artefact"),
    "more rows than there are": (_run(lambda r: r["series"][0].update(rows=2**40)), "does not end as declared"),
    "fewer chunks than there are": (_run(lambda r: r["series"][0].update(chunks=2)), "does not end as declared"),
    "first chunk's header": (_chunks(lambda c: _flipped(c, 0)), "not what it should be"),
    "huge payload declared": (_chunks(lambda c: c[:16] + b"\xff" * 8 + c[24:]), "not what it should be"),
    "huge rows declared": (_chunks(lambda c: c[:8] + b"\xff" * 8 + c[16:]), "not what it should be"),
    "a byte of a payload": (_chunks(lambda c: _flipped(c, 60)), "hash of chunk 0 is wrong"),
    "the last byte": (_chunks(lambda c: _flipped(c, len(c) - 1)), "hash of chunk 2 is wrong"),
    "cut": (_chunks(lambda c: c[:-5]), "hash of chunk 2 is wrong"),
    "cut in a header": (_chunks(lambda c: c[:20]), "3 chunks are declared, 0"),
    "longer": (_chunks(lambda c: c + b"x"), "does not end as declared"),
}


def members_of(path: Path) -> Members:
    with zipfile.ZipFile(path) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def written(path: Path, members: Members) -> Path:
    with zipfile.ZipFile(path, "w") as bundle:
        for name, content in members.items():
            bundle.writestr(name, content)
    return path


@pytest.fixture
def refused(other: Path, tmp_path: Path) -> Iterator[Callable[[Path, str], None]]:
    """Checks that a file is refused with a sentence; neither a new database nor anything in one that is there."""

    def check(file: Path, sentence: str) -> None:
        with pytest.raises(BundleError, match=sentence) as caught:
            import_bundle(tmp_path / "new.db", file)
        assert str(caught.value).startswith(f"{file} is not taken in, and nothing was changed.")
        with pytest.raises(BundleError):
            import_bundle(other, file)

    filled(other)
    before, names = counts(other), {path.name for path in tmp_path.iterdir()}
    yield check
    assert counts(other) == before
    assert {path.name for path in tmp_path.iterdir()} <= names | {"bad.lcz"}
    assert len(digests(other)) == 4


@pytest.mark.parametrize("name", TAMPERED)
def test_a_bundle_that_was_tampered_with_is_refused(
    name: str, good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    change, sentence = TAMPERED[name]
    members = members_of(good)
    change(members)
    refused(written(tmp_path / "bad.lcz", members), sentence)


def test_payloads_that_hold_no_rows_are_refused(
    good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    """Hashes and digest are all in order, as somebody could make them: the samples could still not be read."""
    members = members_of(good)
    uuid = _first_uuid(members)
    series = RunRows.model_validate_json(members[run_member(uuid)]).series[0]
    link = chunks.first_link(uuid, series.role, series.name, series_columns(series.columns))
    content = b""
    for seq in range(series.chunks):
        link = chunks.next_link(link, seq, 100, b"no zstd frame")
        content += chunk_bytes(StoredChunk(seq, 100, link, b"no zstd frame"))
    members[series_member(uuid, 0)] = content
    _json(members, run_member(uuid), lambda rows: rows["series"][0].update(link=link.hex()))
    refused(written(tmp_path / "bad.lcz", members), "Chunk 0 of series messages is damaged")


def test_files_that_are_no_bundles_are_refused(
    original: Path, good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    bad = tmp_path / "bad.lcz"
    for content in (b"", b"%PDF-1.7", original.read_bytes(), good.read_bytes()[:-100], good.read_bytes()[:10_000]):
        bad.write_bytes(content)
        refused(bad, "damaged or no bundle")
    refused(tmp_path, "cannot be read")
    with pytest.raises(BundleError, match="cannot be read"):
        import_bundle(tmp_path / "new.db", tmp_path / "nowhere.lcz")


def test_any_flipped_byte_is_refused_or_meant_nothing(good: Path, original: Path, tmp_path: Path) -> None:
    """Through the whole file, as a bad disk or link would do it."""
    content = good.read_bytes()
    places = range(0, len(content), max(1, len(content) // 300))
    accepted = 0
    for at in places:
        (tmp_path / "bad.lcz").write_bytes(_flipped(content, at))
        database = tmp_path / f"{at}.db"
        try:
            import_bundle(database, tmp_path / "bad.lcz")
        except BundleError:
            assert not database.exists() or set(counts(database).values()) == {0}
        else:  # a time stamp of a member, say
            accepted += 1
            assert digests(database) == digests(original)
    assert accepted < len(places) / 10


def test_compressed_members_are_refused(good: Path, tmp_path: Path, refused: Callable[[Path, str], None]) -> None:
    with zipfile.ZipFile(tmp_path / "bad.lcz", "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in members_of(good).items():
            bundle.writestr(name, content)
        bundle.writestr("zeros", bytes(50_000_000))
    assert (tmp_path / "bad.lcz").stat().st_size < 200_000
    refused(tmp_path / "bad.lcz", "is compressed")


def test_members_that_share_their_bytes_are_refused(
    good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    members = members_of(good) | {f"zeros-{number}": b"" for number in range(9)}
    with zipfile.ZipFile(written(tmp_path / "bad.lcz", members), "a") as bundle:
        bundle.writestr("zeros", bytes(100_000))
        whole = bundle.getinfo("zeros")
        for number in range(9):
            member = bundle.getinfo(f"zeros-{number}")
            member.header_offset, member.file_size, member.compress_size = whole.header_offset, 100_000, 100_000
    refused(tmp_path / "bad.lcz", "declares more than it has")


def test_a_member_that_is_there_twice_is_refused(
    good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    with (
        zipfile.ZipFile(written(tmp_path / "bad.lcz", members_of(good)), "a") as bundle,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        bundle.writestr(MANIFEST, members_of(good)[MANIFEST])
    refused(tmp_path / "bad.lcz", "more than once")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFDIR, stat.S_IFIFO])
def test_links_and_folders_are_refused(
    kind: int, good: Path, tmp_path: Path, refused: Callable[[Path, str], None]
) -> None:
    with zipfile.ZipFile(written(tmp_path / "bad.lcz", members_of(good)), "a") as bundle:
        member = zipfile.ZipInfo("runs/link")
        member.create_system = 3
        member.external_attr = (kind | 0o777) << 16
        bundle.writestr(member, "/etc")
    refused(tmp_path / "bad.lcz", "no plain file")


def test_the_database_itself_is_no_bundle(original: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(original, copy)
    before = hashlib.sha256(copy.read_bytes()).digest()
    with pytest.raises(BundleError, match="the database itself"):
        import_bundle(copy, copy)
    assert hashlib.sha256(copy.read_bytes()).digest() == before


def test_a_failure_in_the_middle_leaves_nothing(good: Path, other: Path) -> None:
    def stop(share: float) -> None:
        if share > 0.6:  # while it is written, after all was checked
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_bundle(other, good, stop)
    assert set(counts(other).values()) == {0}
    assert len(import_bundle(other, good).imported) == 4


_KILLED = """
import os, signal, sys
from pathlib import Path
from labconsole.report.bundle_import import import_bundle

def die(share):
    if share > 0.8:
        os.kill(os.getpid(), signal.SIGKILL)

import_bundle(Path(sys.argv[1]), Path(sys.argv[2]), die)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_a_kill_in_the_middle_leaves_nothing(good: Path, other: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(other), str(good)], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert set(counts(other).values()) == {0}
    assert len(import_bundle(other, good).imported) == 4
