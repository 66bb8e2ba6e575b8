"""A small file system of its own for one command, to fill it up."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

_UNSHARE = shutil.which("unshare")
_MOUNT = ["-m", "sh", "-c", 'mount -t tmpfs -o size="$1" tmpfs "$0" && shift && exec "$@"']


def on_small_disk(
    disk: Path, size: str, commands: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run shell commands while `disk` is a file system of `size` ("20m") that no other process sees; skips where one
    may not mount."""
    disk.mkdir()
    if _UNSHARE is None or sys.platform != "linux" or _run([str(disk), "1m", "true"]).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    return _run([str(disk), size, "sh", "-c", commands], environment)


def _run(arguments: list[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    assert _UNSHARE is not None
    command = [_UNSHARE, *_MOUNT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
