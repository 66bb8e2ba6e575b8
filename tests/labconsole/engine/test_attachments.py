"""Attachments and columns of bytes in real runs: whole, killed in the middle, on a full disk, in flat memory."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labconsole.engine.recorder import spool_root
from labconsole.engine.run_end import Recovery
from labconsole.engine.spool import AttachmentBlock, SpoolReader
from labconsole.output.csv_export import export_run
from labconsole.store.evidence.checking import verify
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunDetail, RunStatus, StoredAttachment
from tests.benchmarks.export import measured
from tests.helpers.practice import PLUGIN, Bench, environment
from tests.helpers.program_text import PROGRAM
from tests.helpers.small_disk import on_small_disk

KIND, ROLE, CAPTURE, LOG = "practice.attaching", "sniffer-0", "capture.pcapng", "trial.log"
needs_sigkill = pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")


def _campaign(**parameters: Any) -> NewCampaign:
    return NewCampaign("attach", "Attach", "", 1, (NewScenario("attach", KIND, parameters),), ((0, 1),))


def _run(bench: Bench, **parameters: Any) -> RunDetail:
    [run_id] = bench.queue.submit(_campaign(**parameters))
    bench.pump_until_idle()
    return bench.detail(run_id)


def _written(run: RunDetail, size: int, role: int = 0) -> bytes:
    practice = importlib.import_module("practice_attaching_trial")
    return b"".join(practice.written(run.row.seed + role, size))


def _attachments(bench: Bench, run: RunDetail) -> dict[tuple[str, str], tuple[StoredAttachment, bytes]]:
    """All of a run with what they hold, from a run whose evidence was checked."""
    with Reader(bench.database) as reader:
        verification = verify(reader, run.row.id)
        assert verification.ok, verification.faults
        stored = reader.attachments(run.row.id)
        return {(kept.role, kept.name): (kept, b"".join(stored.content(kept.role, kept.name))) for kept in stored.all()}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_role_and_run_attach_files_that_are_exported_as_they_were_written(thread_bench: Bench, tmp_path: Path) -> None:
    run = _run(thread_bench, size=3_500_000, roles=2, packets=10)
    assert run.row.status is RunStatus.FINISHED, run.row.reason
    found = _attachments(thread_bench, run)
    assert list(found) == [(ROLE, CAPTURE), ("sniffer-1", CAPTURE), ("worker", LOG)]
    for number, role in enumerate((ROLE, "sniffer-1")):
        kept, content = found[role, CAPTURE]
        assert content == _written(run, 3_500_000, number)
        assert kept == StoredAttachment(role, CAPTURE, "application/x-pcapng", 3_500_000, _sha256(content))
    log = b"One line of a log that compresses well.\n" * 100_000
    assert found["worker", LOG][1] == log
    with Reader(thread_bench.database) as reader:
        export_run(reader, run.row.id, tmp_path / "csv")
    files = {path.relative_to(tmp_path / "csv"): path for path in (tmp_path / "csv" / "attachments").rglob("*.*")}
    assert {str(name): _sha256(path.read_bytes()) for name, path in files.items()} == {
        f"attachments/{role}/{name}": kept.sha256 for (role, name), (kept, _) in found.items()
    }
    assert thread_bench.database.stat().st_size < 9_000_000, "the log was compressed"


def test_packets_of_any_length_are_kept_byte_for_byte(thread_bench: Bench) -> None:
    run = _run(thread_bench, size=0, packets=10_000)
    expected = importlib.import_module("practice_attaching_trial").packets(run.row.seed, 10_000)
    with Reader(thread_bench.database) as reader:
        table = reader.samples(run.row.id).table("packets", ROLE)
    assert table["packet"].tolist() == expected
    np.testing.assert_array_equal(table["t_ns"], np.arange(10_000))
    assert run.row.metrics["packet_bytes"].value == sum(map(len, expected))


def test_an_empty_attachment_is_complete(thread_bench: Bench) -> None:
    run = _run(thread_bench, size=0, packets=0, lines=0)
    empty = _sha256(b"")
    assert [(kept.size, kept.sha256) for kept, _ in _attachments(thread_bench, run).values()] == [
        (0, empty),
        (0, empty),
    ]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("error", "ValueError: the capture broke off"),
        ("same name", f"Role {ROLE} has an attachment {CAPTURE} already"),
    ],
)
def test_an_attachment_left_by_an_exception_is_kept_as_cut(thread_bench: Bench, fault: str, reason: str) -> None:
    run = _run(thread_bench, size=3_000_000, fault=fault)
    assert run.row.status is RunStatus.FAILED and reason in run.row.reason
    kept, content = _attachments(thread_bench, run)[ROLE, CAPTURE]
    assert kept.sha256 is None and kept.size == len(content) > 1_500_000
    assert _written(run, 3_000_000).startswith(content)


def test_an_attachment_that_the_trial_itself_leaves_is_kept_as_cut(thread_bench: Bench) -> None:
    run = _run(thread_bench, lines=10, fault="trial error")
    assert run.row.status is RunStatus.FAILED and "the log broke off" in run.row.reason
    assert _attachments(thread_bench, run) == {
        ("worker", LOG): (
            StoredAttachment("worker", LOG, "text/plain", 400, None),
            b"One line of a log that compresses well.\n" * 10,
        )
    }


@needs_sigkill
def test_a_slow_attachment_is_stored_while_it_is_written(bench: Bench) -> None:
    """Four times a second, long before a block is full: a kill costs no more."""
    [run_id] = bench.queue.submit(_campaign(size=1_000_000, rate=100_000))
    bench.pump_until(lambda: bool(bench.listener.frames) and _stored_bytes(bench.database, run_id) > 150_000)
    [pid] = [event.data["pid"] for event in bench.detail(run_id).events if event.name == "process"]
    os.kill(pid, signal.SIGKILL)
    bench.pump_until_idle()
    run = bench.detail(run_id)
    kept, content = _attachments(bench, run)[ROLE, CAPTURE]
    assert kept.sha256 is None and 150_000 < len(content) < 1_000_000
    assert _written(run, 1_000_000).startswith(content)


def test_a_name_that_leaves_its_folder_is_refused(thread_bench: Bench) -> None:
    run = _run(thread_bench, fault="bad name")
    assert "'../capture.pcapng' cannot name an attachment" in run.row.reason
    assert list(_attachments(thread_bench, run)) == [("worker", LOG)]


@needs_sigkill
@pytest.mark.parametrize("victim", ["role", pytest.param("worker", marks=pytest.mark.nightly)])
def test_a_kill_keeps_the_attachment_up_to_its_last_whole_block(bench: Bench, victim: str) -> None:
    """The nightly set also kills the worker; what is stored after its death is judged in CI by `test_kills.py`."""
    [run_id] = bench.queue.submit(_campaign(size=200_000_000, rate=8_000_000))
    bench.pump_until(lambda: any(frame.done > 3_000_000 for _, frame in bench.listener.frames))
    detail = bench.detail(run_id)
    pids = {event.source: event.data["pid"] for event in detail.events if event.name == "process"}
    assert detail.row.owner is not None
    before = _stored_bytes(bench.database, run_id)
    os.kill(pids[ROLE] if victim == "role" else detail.row.owner.pid, signal.SIGKILL)
    bench.pump_until(lambda: any(number == run_id for number, _ in bench.listener.ends))
    run = bench.detail(run_id)
    assert run.row.status is (RunStatus.FAILED if victim == "role" else RunStatus.INTERRUPTED)
    found = _attachments(bench, run)
    kept, content = found[ROLE, CAPTURE]
    assert kept.sha256 is None and before <= len(content) < 200_000_000
    assert _written(run, len(content) + 65_536).startswith(content)
    assert found["worker", LOG][0].sha256 is not None
    assert not (spool_root(bench.database) / run.row.uuid).exists()


def _stored_bytes(database: Path, run_id: int) -> int:
    """Bytes of the capture in the store, or in whole blocks of the spool."""
    with Reader(database) as reader:
        uuid = reader.run(run_id).row.uuid
        stored = sum(kept.size for kept in reader.attachments(run_id).all() if kept.name == CAPTURE)
    path = spool_root(database) / uuid / f"{ROLE}.spool"
    blocks = _blocks(SpoolReader(path)) if path.exists() else ()
    return max(stored, sum(len(block.content) for block in blocks if isinstance(block, AttachmentBlock)))


def _blocks(spool: SpoolReader) -> Iterable[Any]:
    while blocks := spool.read_new():
        yield from blocks


def test_a_full_disk_ends_the_run_with_a_sentence_and_keeps_the_written_part(tmp_path: Path) -> None:
    _ended, shown = _until_the_disk_is_full(tmp_path, 3_000_000)  # slowly: a busy recorder keeps up, too
    capture = _kept_capture(shown)
    assert (capture["complete"], capture["sha256"]) == (False, None) and capture["size"] > 5_000_000


@pytest.mark.nightly
def test_what_a_full_disk_has_no_room_for_is_stored_when_there_is_room(tmp_path: Path) -> None:
    """A role that is faster than the recorder leaves more in its spool than the reserve can take.

    Nightly: alone finds that the next command stores nothing of a whole run that filled its disk; that the rest of a
    run is stored once there is room is judged in CI by `test_disk_faults.py`.
    """
    later = tmp_path / "later.toml"
    later.write_text(f'format = 1\nkind = "{KIND}"\n[parameters]\nsize = 1\nlines = 0\n')
    ended, shown, second, shown_later = _until_the_disk_is_full(tmp_path, 0, later)
    assert second["status"] == "finished", second["reason"]
    before, after = (_kept_capture(run) for run in (shown, shown_later))
    assert not after["complete"] and after["size"] > 5_000_000
    assert (before["size"] < after["size"]) == (Recovery.UNSTORED in ended["reason"])


SHOWN = """
import sys
from contextlib import redirect_stdout
from labconsole.cli.main import main

main(["show", "1", "--json", *sys.argv[1:]])
with redirect_stdout(sys.stderr):
    main(["verify", "1", *sys.argv[1:]])
"""
"""Shows a run on standard output, and verifies it on standard error."""
ONE_BY_ONE = """
import json, subprocess, sys

codes = [subprocess.run(command).returncode for command in json.loads(sys.argv[1])]
sys.exit(codes[-1])
"""


def _until_the_disk_is_full(folder: Path, rate: int, later: Path | None = None) -> list[dict[str, Any]]:
    """What `run` and `show` say of a run that fills its disk, which fails and is verified; then, with more room, what
    they say of the run `later` and again of the first one, whose spool is then gone."""
    profile, disk = folder / "big.toml", folder / "disk"
    profile.write_text(f'format = 1\nkind = "{KIND}"\n[parameters]\nsize = 200000000\nrate = {rate}\n')
    console, database = (sys.executable, "-m", "labconsole.cli.main"), ("--db", f"{disk}/runs.db")
    shown = (*PROGRAM, SHOWN, *database)
    commands: list[tuple[str, ...]] = [(*console, "run", str(profile), *database, "--json"), shown]
    if later is not None:
        commands += [
            ("mount", "-o", "remount,size=300m", str(disk)),
            (*console, "run", str(later), *database, "--json"),
            shown,
            ("sh", "-c", f'test -z "$(ls {disk}/runs.db.spool)"'),
        ]
    done = on_small_disk(disk, "32m", (*PROGRAM, ONE_BY_ONE, json.dumps(commands)), environment(PLUGIN))
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert said[0]["status"] == "failed" and "Traceback" not in done.stderr and done.returncode == 0
    assert "Free space on that disk" in said[0]["reason"] or "disk of" in said[0]["reason"]
    assert done.stderr.count("Run 1: ok, sealed") == len(said) // 2
    return said


def _kept_capture(shown: Mapping[str, Any]) -> dict[str, Any]:
    """The capture among the attachments of a run; one of no bytes where nothing of it was stored."""
    kept = [kept for kept in shown["attachments"] if kept["name"] == CAPTURE]
    return kept[0] if kept else {"size": 0}


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_200_mb_are_attached_exported_bundled_and_imported_in_flat_memory(tmp_path: Path) -> None:
    with closing(Bench(tmp_path)) as bench:
        run = _run(bench, size=200_000_000, packets=1000)
        short = _run(bench, size=1_000_000, packets=1000)
        assert run.row.status is RunStatus.FINISHED, run.row.reason
        with Reader(bench.database) as reader:
            for role in ("worker", ROLE):
                peaks = [
                    int(reader.samples(one.row.id).table("resources", role)["rss"].max()) / 1e6 for one in (short, run)
                ]
                print(f"{role}: {peaks[0]:.0f} MB with 1 MB, {peaks[1]:.0f} MB with 200 MB")
                assert peaks[1] < peaks[0] + 50
            content = hashlib.sha256()
            for part in reader.attachments(run.row.id).content(ROLE, CAPTURE):
                content.update(part)
    expected = hashlib.sha256()
    for part in importlib.import_module("practice_attaching_trial").written(run.row.seed, 200_000_000):
        expected.update(part)
    assert content.digest() == expected.digest()
    peaks_mb: dict[str, list[float]] = {}
    for name, number in (("short", short.row.id), ("long", run.row.id)):
        bundle = str(tmp_path / f"{name}.lcz")
        for database, *command in (
            (bench.database, "export", str(number), "--csv", str(tmp_path / name)),
            (bench.database, "verify", str(number)),
            (bench.database, "bundle", str(number), bundle),
            (tmp_path / f"{name}.db", "import", bundle),
        ):
            seconds, peak = measured(database, *command)
            peaks_mb.setdefault(command[0], []).append(peak / 1e6)
            print(f"{command[0]} {name}: {seconds:.1f} s, {peak / 1e6:.0f} MB")
    for least, most in peaks_mb.values():
        assert most < least + 50
    exported = tmp_path / "long" / "attachments" / ROLE / CAPTURE
    with exported.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").digest() == expected.digest()
