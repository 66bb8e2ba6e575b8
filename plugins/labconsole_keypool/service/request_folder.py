"""Sign requests from a folder of files, and the answers that are written next to them.

The answer to `a.xml` is `a.response.xml`. It gets its name when it is whole and on the disk: a kill leaves no half of
one, and the next run serves the requests that have no answer yet.
"""

from __future__ import annotations

import os
import queue
import threading
from pathlib import Path

from labconsole.errors import UserError
from labconsole_keypool.messages.safe_xml import LARGEST_BYTES

_SUFFIX, _ANSWER, _PART = ".xml", ".response.xml", ".part"


class RequestFolder:
    """The requests of a folder that have no answer yet, by name; numbers begin with 1.

    Raises:
        UserError: there is no such folder, it cannot be read, or no request in it lacks an answer.
    """

    def __init__(self, folder: Path) -> None:
        try:
            names = {path.name for path in folder.iterdir() if path.is_file()}
        except OSError as error:
            raise UserError(f"The folder of sign requests {folder} cannot be read: {error.strerror}.") from error
        asked = sorted(name for name in names if name.endswith(_SUFFIX) and not name.endswith(_ANSWER))
        if not asked:
            raise UserError(f"The folder {folder} has no sign request: put files in it whose names end with .xml.")
        self._files = [folder / name for name in asked if _answer_name(name) not in names]
        if not self._files:
            raise UserError(
                f"Every sign request in {folder} has its answer: remove the answers (*{_ANSWER}), or name another "
                "folder."
            )
        self._written: queue.SimpleQueue[tuple[Path, bytes] | None] = queue.SimpleQueue()
        self._fault: OSError | None = None
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._files)

    def read(self, number: int) -> bytes:
        """The request of that number; empty where its file is gone. One byte more than is served, of a longer one."""
        try:
            with self._files[number - 1].open("rb") as file:
                return file.read(LARGEST_BYTES + 1)
        except OSError:
            return b""

    def answer(self, number: int, answer: bytes) -> None:
        """Queue the answer for the writing thread. Raises UserError: one before could not be written."""
        self._raise_fault()
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, name="answers")
            self._thread.start()
        asked = self._files[number - 1]
        self._written.put((asked.with_name(_answer_name(asked.name)), answer))

    def close(self) -> None:
        """Wait until all answers are written; twice does nothing. Raises UserError: one could not be."""
        if self._thread is not None:
            self._written.put(None)
            self._thread.join()
            self._thread = None
        self._raise_fault()

    def _raise_fault(self) -> None:
        if self._fault is not None:
            named = self._fault.filename or "An answer"
            raise UserError(f"{named} cannot be written: {self._fault.strerror or self._fault}.") from self._fault

    def _write_all(self) -> None:
        while (entry := self._written.get()) is not None:
            if self._fault is None:
                try:
                    _write_whole(*entry)
                except OSError as error:
                    self._fault = error


def _answer_name(asked: str) -> str:
    return asked.removesuffix(_SUFFIX) + _ANSWER


def _write_whole(path: Path, content: bytes) -> None:
    """A part left by a kill is overwritten when its request is served again."""
    part = path.with_name(f".{path.name}{_PART}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
