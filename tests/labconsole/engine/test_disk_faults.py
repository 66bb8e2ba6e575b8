"""A disk that fills up in mid-run, on a real small file system; one whose writes fail (EIO, by a preloaded library)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from tests.helpers.practice import PLUGIN, TIMEOUT_S, environment, profile_text
from tests.helpers.program_text import PROGRAM
from tests.helpers.small_disk import on_small_disk

_FAILING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failing(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || access(getenv("FAILING"), F_OK)) return 0;
    path[length] = 0;
    return strstr(path, "runs.db") != 0;
}

#define FAIL(name, signature, call) \\
    ssize_t name signature { \\
        static ssize_t (*real) signature; \\
        if (!real) real = dlsym(RTLD_NEXT, #name); \\
        if (failing(file)) { errno = EIO; return -1; } \\
        return real call; \\
    }
FAIL(pwrite64, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
FAIL(pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
FAIL(write, (int file, const void *data, size_t size), (file, data, size))
"""


_RUN_AND_SHOW = """
import sys
from labconsole.cli.main import main
from tests.helpers.worker_threads import workers_in_threads

profile, *database = sys.argv[1:]
with workers_in_threads():
    code = main(["run", profile, *database, "--json"])
main(["show", "1", *database, "--json"])
sys.exit(code)
"""


def _run_on_small_disk(folder: Path, size: str, profile: Path) -> tuple[int, list[dict[str, object]], str]:
    """`labconsole run` in threads, then `show`, with the database on a disk of `size` that no other process sees.

    What processes of a run do on a full disk is judged by `test_attachments.py`.
    """
    disk = folder / "disk"
    command = (*PROGRAM, _RUN_AND_SHOW, profile, "--db", disk / "runs.db")
    done = on_small_disk(disk, size, command, environment(PLUGIN))
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_disk_that_fills_up_fails_the_run_and_keeps_the_samples_so_far(tmp_path: Path) -> None:
    profile = tmp_path / "big.toml"
    profile.write_text(profile_text(count=50_000_000, roles=2))
    code, [run_json, shown], log = _run_on_small_disk(tmp_path, "20m", profile)
    assert code == 1, log
    assert run_json["status"] == shown["status"] == "failed"
    assert "Free space on that disk" in str(run_json["reason"]) or "disk of" in str(run_json["reason"])
    counted = shown["metrics"]["counted"]["value"]  # type: ignore[index,call-overload]
    stored = sum(series["rows"] for series in shown["series"] if series["name"] == "counted")  # type: ignore[attr-defined,index]
    assert counted == stored > 100_000
    assert "Traceback" not in log


def test_a_disk_that_is_full_at_the_start_is_reported(tmp_path: Path) -> None:
    profile = tmp_path / "small.toml"
    profile.write_text(profile_text(count=100))
    code, [run_json, _], log = _run_on_small_disk(tmp_path, "4m", profile)
    assert code == 1, log
    assert run_json["status"] == "failed" and "No space left on device. Free space on that disk" in str(
        run_json["reason"]
    )


LOG, CAPTURE = {"trial.log": 10_000_000}, "capture.pcapng"


def _recovered(folder: Path, megabytes: int) -> list[dict[str, Any]]:
    """The two reports of `full_disk.py` on a dead run that left so much: with the disk full, and with room."""
    disk = folder / "disk"
    command = (sys.executable, "-m", "tests.labconsole.engine.full_disk", disk, megabytes)
    done = on_small_disk(disk, "64m", command, environment())
    assert done.returncode == 0, done.stderr
    reports: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return reports


def test_what_the_reserve_has_room_for_is_stored_on_a_full_disk(tmp_path: Path) -> None:
    full, _ = _recovered(tmp_path, 4)
    assert (full["refused"], full["status"], full["sound"], full["spool"]) == ("", "interrupted", True, False)
    assert full["kept"] == LOG | {CAPTURE: 4_000_000}


def test_a_dead_run_is_ended_on_a_full_disk_and_the_rest_of_it_stored_once_there_is_room(tmp_path: Path) -> None:
    """The log and the spool are both larger than the reserve: neither may take the room in which the end is marked."""
    full, later = _recovered(tmp_path, 12)
    assert "full" in full["refused"] and full["room"] > 900_000
    assert (full["status"], full["reason"], full["sound"], full["spool"]) == ("interrupted", "No room.", True, True)
    assert full["kept"] == LOG
    stored = {"refused": "", "room": later["room"], "kept": LOG | {CAPTURE: 12_000_000}, "spool": False}
    assert later == full | stored


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is of Linux")
def test_an_io_error_at_the_end_of_a_run_gives_one_sentence(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    assert compiler is not None  # python-qpid-proton is built with it
    library, source, failing = tmp_path / "failing.so", tmp_path / "failing.c", tmp_path / "failing"
    source.write_text(_FAILING, encoding="utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    profile, database = tmp_path / "counting.toml", tmp_path / "runs.db"
    profile.write_text(profile_text(count=100_000, rate=5000), encoding="utf-8")
    command = [sys.executable, "-m", "labconsole.cli.main", "run", profile, "--db", database]
    variables = environment(PLUGIN) | {"LD_PRELOAD": str(library), "FAILING": str(failing)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables) as run:
        _wait_for_samples(database)
        failing.touch()
        _, errors = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 1
    assert "Traceback" not in errors
    (line,) = [line for line in errors.replace("\n", " ").split("Run 1 ") if line.startswith("(counting)")]
    assert line.startswith("(counting) failed: ")
    assert line.partition("labconsole:")[0].count("check the disk and its free space") == 1
    with Reader(database) as reader:
        assert reader.run(1).row.status is RunStatus.RUNNING  # the next console takes it over
        assert len(reader.samples(1).table("counted", "counter-0")["number"]) > 0


def _wait_for_samples(database: Path) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            with Reader(database) as reader:
                if "counter-0" in reader.samples(1).roles("counted"):
                    return
        except StoreError:
            pass  # not there yet
        time.sleep(0.05)
    pytest.fail("nothing was counted")
