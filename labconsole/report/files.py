"""Files that are complete or not there: a temporary name first, the final one at the end."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from labconsole.trial import TrialError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class ExportError(TrialError):
    """A file cannot be written; nothing half-written is left under its name."""


@contextmanager
def complete_file(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` (whose directory is made if needed); it is renamed when the block is left.

    Until then `path` is the old file, or none; if the block raises, it stays so, and the temporary file and directories
    made for it are gone. On one `contextlib.ExitStack` several files become complete together.
    Raises ExportError for what the operating system refuses.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    made: list[Path] = []
    try:
        made = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        with partial.open("r+b") as file:
            os.fsync(file.fileno())  # a disk may find out only now that it is full
        partial.replace(path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
            for folder in made:
                folder.rmdir()
        if isinstance(error, OSError):
            raise _explained(path, error) from error
        raise


def _explained(path: Path, error: OSError) -> ExportError:
    if error.errno in _FULL:
        return ExportError(f"{path} cannot be written, the disk is full: free some space or choose another one.")
    return ExportError(f"{path} cannot be written ({error.strerror or error}): choose another directory.")
