"""The files that travel with a run: each is copied once under its hash when the run first names it."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from labconsole.errors import UserError
from labconsole.security.private_files import PRIVATE_KEY_MARK

_READ_SIZE = 1024 * 1024


@dataclass(frozen=True)
class RunFile:
    """A file as it was when its run first named it.

    Attributes:
        named: Its path as the trial gave it.
        copy: Where its content is kept as long as the run is in progress; the name is its hash.
        size: Bytes.
        sha256: Of its content, hexadecimal.
    """

    named: Path
    copy: Path
    size: int
    sha256: str


class RunFiles:
    """The files of one run, in a directory of its spool. A file that is edited later stays as it was."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._kept: dict[Path, RunFile] = {}

    def keep(self, named: Path) -> RunFile:
        """Copy the file `named` unless the run has it already.

        Raises UserError: it cannot be read or copied, is not a regular file, or holds a private key in PEM, which is to
        stay where it is.
        """
        place = named.absolute()
        if place not in self._kept:
            self._kept[place] = self._copied(named)
        return self._kept[place]

    def _copied(self, named: Path) -> RunFile:
        partial = self._directory / "partial"
        try:
            size, sha256 = _copy(named, partial)
            copy = self._directory / sha256
            partial.replace(copy)
        finally:
            partial.unlink(missing_ok=True)
        return RunFile(named, copy, size, sha256)


def _copy(named: Path, target: Path) -> tuple[int, str]:
    """Copy a file to `target` (0600); returns size in bytes and SHA-256. Raises UserError as `RunFiles.keep`."""
    try:
        if not stat.S_ISREG(named.stat().st_mode):  # opening a pipe would wait for its other end
            raise UserError(f"{named} is not a regular file: name a file.")
        source = named.open("rb", buffering=0)
    except OSError as error:
        raise UserError(f"The file {named} cannot be read ({error.strerror}): check its name.") from error
    found, size, before = hashlib.sha256(), 0, b""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        target.parent.mkdir(exist_ok=True)
        with source, os.fdopen(os.open(target, flags, 0o600), "wb") as copy:
            while data := source.read(_READ_SIZE):
                seam = before + data
                if PRIVATE_KEY_MARK in seam:
                    raise UserError(
                        f"{named} holds a private key, and the files of a role travel with the run: name a file "
                        "without the key."
                    )
                before = seam[-len(PRIVATE_KEY_MARK) :]
                found.update(data)
                size += copy.write(data)
    except OSError as error:
        raise UserError(
            f"The file {named} cannot be copied to {target.parent} ({error.strerror}): check that disk, or choose "
            "another database with --db."
        ) from error
    return size, found.hexdigest()
