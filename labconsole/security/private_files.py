"""Files that only their owner may read: written whole or not at all, refused when others can read them."""

from __future__ import annotations

import os
import stat
import sys
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from labconsole.errors import UserError

PRIVATE_KEY_MARK = b"PRIVATE KEY-----"
"""What is in every PEM file with a private key, encrypted or not (RFC 7468)."""


def write_private(path: Path, data: bytes) -> None:
    """Write `data` to `path` with mode 0600, on disk before it appears under its name.

    Raises:
        OSError: the file cannot be written.
    """
    partial = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def read_private(path: Path, what: str) -> bytes:
    """Read the file `path`, called `what` in messages; on POSIX it must be readable by its owner alone.

    Raises:
        UserError: missing, unreadable, or open to others.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if os.name == "posix" and mode & 0o077:
                raise UserError(
                    f"The {what} {path} can be read by others (mode {mode:04o}): make it yours alone with chmod 600."
                )
            return file.read()
    except FileNotFoundError as error:
        raise UserError(f"The {what} {path} does not exist: check the path.") from error
    except OSError as error:
        raise UserError(f"The {what} {path} cannot be read ({error.strerror}): check the path.") from error


def contains_private_key(path: Path) -> bool:
    """Whether `path` is a PEM file with a private key in it; False where it cannot be read."""
    try:
        return path.is_file() and PRIVATE_KEY_MARK in path.read_bytes()
    except OSError:
        return False


class MemoryFiles:
    """Texts as files that only this user reads; nothing of them is on a disk where the system has files in memory.

    Elsewhere than on Linux they are in a directory of their own until `close`: what they hold is encrypted.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        """`texts` by key, as `paths` has them."""
        self._closing = ExitStack()
        self.paths: dict[str, Path] = {
            key: self._path(number, text) for number, (key, text) in enumerate(texts.items())
        }

    def close(self) -> None:
        """Remove the files."""
        self._closing.close()

    def _path(self, number: int, text: str) -> Path:
        if sys.platform == "linux":
            descriptor = os.memfd_create(f"key-{number}")
            self._closing.callback(os.close, descriptor)
            os.fchmod(descriptor, 0o600)
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(text.encode())
            return Path(f"/proc/self/fd/{descriptor}")
        import tempfile  # late: a role's process on Linux does not need it

        directory = Path(self._closing.enter_context(tempfile.TemporaryDirectory()))
        write_private(directory / f"key-{number}", text.encode())
        return directory / f"key-{number}"
