"""Files that are expensive to create, created once per test run: all its test processes read the same ones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def copy_database(database: Path, copy: Path) -> Path:
    """Copy a database to which no process writes, with its log; returns `copy`."""
    for suffix in ("", "-wal"):
        if (file := database.with_name(database.name + suffix)).exists():
            shutil.copy(file, copy.with_name(copy.name + suffix))
    return copy


def shared_once(tmp_path_factory: pytest.TempPathFactory, name: str, create: Callable[[Path], None]) -> Path:
    """The folder `name` that `create` has filled, in this process or in another one of the same test run.

    It is read-only: a test that writes works on a copy (`shutil.copytree`). An attempt that fails leaves nothing.
    """
    folder = common_folder(tmp_path_factory) / name
    with FileLock(folder.with_name(f"{name}.lock")):
        if not folder.exists():
            draft = folder.with_name(f"{name}.draft")
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir()
            create(draft)
            draft.rename(folder)
    return folder


def common_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this test run have in common."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "shared"
    folder.mkdir(exist_ok=True)
    return folder
