"""The command `openssl` of this machine, as a second opinion."""

from __future__ import annotations

import subprocess
from pathlib import Path


class OpensslError(AssertionError):
    """openssl ended with an error; the message is what it said."""


def run_openssl(*arguments: str | Path, data: bytes | None = None) -> str:
    """What `openssl <arguments>` writes, given `data`; output and errors together. Raises OpensslError."""
    done = subprocess.run(
        ["openssl", *map(str, arguments)],
        input=data,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=30,
        check=False,
    )
    said = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise OpensslError(said)
    return said
