"""A small file system of its own for one command, to fill it up."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_TIMEOUT_S = 170
_UNSHARE = shutil.which("unshare")
_MOUNT = ["-m", "sh", "-c", 'mount -t tmpfs -o size="$1" tmpfs "$0" && shift && exec "$@"']


def on_small_disk(
    disk: Path, size: str, command: Sequence[object], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a command while `disk` is a file system of `size` ("20m") that no other process sees; skips where one may not
    mount."""
    return _run([*small_disk(disk, size), *map(str, command)], environment)


def small_disk(disk: Path, size: str) -> tuple[str, ...]:
    """The command that starts another one, for which alone `disk` is a file system of `size`; skips as above."""
    disk.mkdir(parents=True)
    if _UNSHARE is None or not may_mount():
        pytest.skip("needs the right to mount a tmpfs")
    return _UNSHARE, *_MOUNT, str(disk), size


@cache
def may_mount() -> bool:
    """Whether this process may mount a file system in a namespace of its own."""
    if _UNSHARE is None or sys.platform != "linux":
        return False
    with TemporaryDirectory() as folder:
        return not _run([_UNSHARE, *_MOUNT, folder, "1m", "true"]).returncode


def _run(command: list[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, env=environment)
