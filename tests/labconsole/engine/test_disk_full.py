"""A disk that fills up in mid-run, on a real small file system."""

from __future__ import annotations

import json
import sys
from pathlib import Path

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
