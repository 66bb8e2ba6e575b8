"""Takes the spool files of a run into the store, while they grow or after a crash; doing it twice changes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

from labconsole.engine.spool import SampleBlock, SpoolError, SpoolReader
from labconsole.store.store import EventRecord, SampleChunk, Store


def spool_directory(database: Path, uuid: str) -> Path:
    """Where the spool files of one run lie: beside the database, so that any console can take them in."""
    return database.with_name(database.name + ".spool") / uuid


class Recorder:
    """Follows all spool files of one run."""

    def __init__(self, store: Store, run_id: int, directory: Path) -> None:
        self._store = store
        self._run_id = run_id
        self._directory = directory
        self._readers: dict[Path, SpoolReader] = {}
        self.damage: list[str] = []

    def poll(self) -> None:
        """Store what was completed since the last call, in one transaction. Raises StoreError."""
        chunks: list[SampleChunk] = []
        events: list[EventRecord] = []
        for path in sorted(self._directory.glob("*.spool")):
            reader = self._readers.setdefault(path, SpoolReader(path))
            try:
                blocks = reader.read_new()
            except SpoolError as error:
                if str(error) not in self.damage:
                    self.damage.append(str(error))
                continue
            for block in blocks:
                if isinstance(block, SampleBlock):
                    chunks.append(SampleChunk(block.role, block.series, block.seq, block.rows, block.columns))
                else:
                    events.append(EventRecord(path.stem, block.seq, block.event))
        if chunks or events:
            self._store.append(self._run_id, chunks, events)

    def discard_spool(self) -> None:
        """Remove the spool files once everything in them is stored."""
        if not self.damage:
            shutil.rmtree(self._directory)
