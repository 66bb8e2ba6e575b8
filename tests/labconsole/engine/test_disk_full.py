"""A disk that fills up in mid-run, on a real small file system."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.helpers.practice import PLUGIN, environment, profile_text
from tests.helpers.small_disk import on_small_disk


def _run_on_small_disk(folder: Path, size: str, profile: Path) -> tuple[int, list[dict[str, object]], str]:
    """`labconsole run` and then `show`, with the database on a disk of `size` that no other process sees."""
    disk = folder / "disk"
    console, database = f"{sys.executable} -m labconsole.cli.main", f"--db {disk}/runs.db --json"
    commands = f"{console} run {profile} {database}; code=$?; {console} show 1 {database}; exit $code"
    done = on_small_disk(disk, size, commands, environment(PLUGIN))
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


def _recovered_on_a_full_disk(folder: Path, megabytes: int) -> list[dict[str, Any]]:
    """What `full_disk.py` tells of a dead run that left so much: on the full disk, and once there is room."""
    disk, program = folder / "disk", Path(__file__).with_name("full_disk.py")
    done = on_small_disk(disk, "64m", f"{sys.executable} {program} {disk} {megabytes}", environment())
    assert done.returncode == 0, done.stderr
    told: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    return told


def test_what_the_reserve_has_room_for_is_stored_on_a_full_disk(tmp_path: Path) -> None:
    full, _ = _recovered_on_a_full_disk(tmp_path, 4)
    assert (full["refused"], full["status"], full["sound"], full["spool"]) == ("", "interrupted", True, False)
    assert full["kept"] == LOG | {CAPTURE: 4_000_000}


def test_a_dead_run_is_ended_on_a_full_disk_and_the_rest_of_it_stored_once_there_is_room(tmp_path: Path) -> None:
    """The log and the spool are both larger than the reserve: neither may take the room in which the end is marked."""
    full, later = _recovered_on_a_full_disk(tmp_path, 12)
    assert "full" in full["refused"] and full["room"] > 900_000
    assert (full["status"], full["reason"], full["sound"], full["spool"]) == ("interrupted", "No room.", True, True)
    assert full["kept"] == LOG
    stored = {"refused": "", "room": later["room"], "kept": LOG | {CAPTURE: 12_000_000}, "spool": False}
    assert later == full | stored
