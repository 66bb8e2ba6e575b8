"""Which Python makes the environment: another build of the same version where it is clearly faster and complete."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fastest_python import PROBE, cpu_time, fastest_python, installed_pythons, search_folders

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"
Install = Callable[[str, str], Path]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Make a stand-in for Python in a folder, which does this when it is measured."""

    def create(folder: str, command: str) -> Path:
        path = tmp_path / folder / NAME
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{command}\n")
        path.chmod(0o755)
        return path

    return create


@pytest.mark.parametrize(
    ("other", "changed"),
    [
        ("echo 0.004", True),
        ("echo 0.0095", False),
        ("echo 0.02", False),
        ("exit 1", False),
        ("exit 0", False),
        ("echo 0.0", False),
        ("echo notice; echo 0.004", False),
    ],
)
def test_another_build_is_used_where_it_is_clearly_faster_and_complete(
    install: Install, other: str, changed: bool
) -> None:
    started = install("started", "echo 0.01")
    candidate = install("other", other)
    folders = [str(started.parent), str(candidate.parent), "/nowhere"]
    expected = (str(candidate), 2.5) if changed else (str(started), 1.0)
    assert fastest_python(str(started), folders) == expected


def test_the_fastest_of_several_is_used(install: Install) -> None:
    started = install("started", "echo 0.01")
    pythons = [install(f"{time}", f"echo 0.00{time}") for time in (6, 4, 5)]
    assert fastest_python(str(started), [str(path.parent) for path in pythons]) == (str(pythons[1]), 2.5)


def test_one_slow_moment_of_the_computer_decides_nothing(install: Install, tmp_path: Path) -> None:
    once = f"[ -e {tmp_path}/measured ] && echo 0.01 || echo 0.09; touch {tmp_path}/measured"
    started, other = install("started", once), install("other", "echo 0.01")
    assert fastest_python(str(started), [str(other.parent)]) == (str(started), 1.0)


def test_a_python_that_cannot_be_measured_stays(install: Install) -> None:
    started, other = install("started", "exit 1"), install("other", "echo 0.01")
    assert fastest_python(str(started), [str(other.parent)]) == (str(started), 1.0)


def test_links_and_other_versions_are_not_candidates(install: Install, tmp_path: Path) -> None:
    started, other = install("started", ""), install("other", "")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / NAME).symlink_to(started)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / NAME).symlink_to(other)
    other.with_name("python3.99").write_bytes(other.read_bytes())
    folders = [str(tmp_path / name) for name in ("links", "other", "more", "started")]
    assert [Path(path).resolve() for path in installed_pythons(str(started), folders)] == [other]


def test_the_search_path_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(["/opt/one", "", "/opt/two"]))
    assert search_folders()[:3] == ["/opt/one", "/opt/two", "/usr/bin"]


@pytest.mark.parametrize("lacking", ["ssl", "sqlite3", "ctypes", "lzma"])
def test_a_python_without_a_module_that_is_needed_is_not_complete(lacking: str) -> None:
    program = f"import sys; sys.modules[{lacking!r}] = None\n{PROBE}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == "" and lacking in done.stderr


def test_another_implementation_is_not_complete() -> None:
    program = f"import sys; sys.implementation.name = 'pypy'\n{PROBE}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def test_this_python_is_measured() -> None:
    time = cpu_time(sys.executable)
    assert time is not None and 0.0001 < time < 10
