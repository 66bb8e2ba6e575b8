"""Reads the certificate database in the background: at once when it has changed, and regularly as time passes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from labconsole.clock import wall_now
from labconsole.security.certificate_status import all_statuses
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.schema import FILE_NAME
from labconsole.store.errors import MissingDatabaseError
from labconsole_certificates.panel.tab import DatabaseReading
from labconsole_ui.runtime.background import Background

POLL_MS = 700
AGE_S = 600
"""Longest age of a snapshot: certificates expire without a change of the database."""

Stamp = tuple[tuple[int, int], ...]
"""Size and time of change of the database's files."""


@dataclass(frozen=True)
class _Reading:
    stamp: Stamp
    reading: DatabaseReading | None


class SnapshotWatch(QObject):
    """`seen` carries a `DatabaseReading`, or None where there is no database yet; `failed` why it cannot be read."""

    seen = Signal(object)
    failed = Signal(str)

    def __init__(self, directory: Path, parent: QObject) -> None:
        super().__init__(parent)
        self._directory = directory
        self._background = Background(self)
        self._stamp: Stamp | None = None
        self._at: float = 0.0
        self._trouble = ""
        self._busy = False
        self._wanted = True
        self._timer = QTimer(self)
        self._timer.setInterval(POLL_MS)
        self._timer.timeout.connect(self.poll)

    def set_active(self, active: bool) -> None:
        """Watch, or pause while the page is hidden."""
        if active:
            self._timer.start()
            self.poll()
        else:
            self._timer.stop()

    def read_again(self) -> None:
        """Read at once, or once more when the current reading is done."""
        self._wanted = True
        self.poll()

    def poll(self) -> None:
        """Read if the files have changed or the last reading is old; nothing while a reading is in progress."""
        if self._busy:
            return
        self._busy = True
        known = None if self._wanted or wall_now().timestamp() - self._at > AGE_S else self._stamp
        self._wanted = False
        self._background.submit(partial(_read, self._directory, known), self._read, self._unread)

    def _read(self, reading: _Reading | None) -> None:
        self._busy = False
        self._trouble = ""
        if reading is not None:
            self._stamp, self._at = reading.stamp, wall_now().timestamp()
            self.seen.emit(reading.reading)
        if self._wanted:
            self.poll()

    def _unread(self, sentence: str) -> None:
        """Report the failure once; the next poll tries again."""
        self._busy = False
        self._stamp = None
        if sentence != self._trouble:
            self._trouble = sentence
            self.failed.emit(sentence)


def _read(directory: Path, known: Stamp | None) -> _Reading | None:
    """The content of the database; None if it is unchanged since `known`. The stamp is never newer than the content."""
    stamp = _stamp(directory)
    if known == stamp:
        return None
    try:
        with PkiReader.open(directory) as reader:
            snapshot = reader.snapshot()
    except MissingDatabaseError:
        return _Reading(stamp, None)
    at = wall_now()
    return _Reading(stamp, DatabaseReading(snapshot, all_statuses(snapshot, at), at))


def _stamp(directory: Path) -> Stamp:
    found = []
    file = directory / FILE_NAME
    for path in (file, file.with_name(f"{file.name}-wal")):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        found.append((status.st_size, status.st_mtime_ns))
    return tuple(found)
