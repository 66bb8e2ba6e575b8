"""Only one start at a time sets up a checkout: an operating system lock that ends with its process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from processes import SetupError

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # behind the end: a locked byte cannot be read by others
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock on the existing file at `path`.

    Raises:
        SetupError: another process holds it.
    """
    with path.open("rb") as file:
        try:
            _take(file.fileno())
        except OSError as error:
            raise SetupError(
                "another start is setting this checkout up: wait until it is done, then start again."
            ) from error
        yield
