"""Files of encrypted private keys in the memory of a process, for libraries that read a key from a path only."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from labconsole.security.private_files import write_private


class PrivateFiles:
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
        directory = Path(self._closing.enter_context(tempfile.TemporaryDirectory()))
        write_private(directory / f"key-{number}", text.encode())
        return directory / f"key-{number}"
