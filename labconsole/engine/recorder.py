"""Takes the spool files of a run into the store, while they grow or after a crash; doing it twice changes nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from labconsole.engine.spool import RoleBlock, SampleBlock, SpoolReader
from labconsole.errors import UserError
from labconsole.store.errors import StoreError
from labconsole.store.records import StoredFile, StoredRole
from labconsole.store.store import EventRecord, SampleChunk, Store

RESERVE_BYTES = 8 * 1024 * 1024
"""Disk space that a run holds back, so that a full disk leaves room for its last samples and its end."""
_DAMAGED = ".damaged"


def spool_root(database: Path) -> Path:
    """Where the spool directories of a database's runs lie: beside it, so that any console can take them in."""
    return database.with_name(database.name + ".spool")


def spool_directory(database: Path, uuid: str) -> Path:
    """Where the spool files of one run lie."""
    return spool_root(database) / uuid


def leftovers(database: Path) -> list[str]:
    """Uuids of the runs that have spool files."""
    root = spool_root(database)
    return [path.name for path in root.iterdir() if not path.suffix] if root.is_dir() else []


def make_spool(directory: Path) -> None:
    """Make the directory for a run's spool files, with its reserve. Raises UserError when the disk is full."""
    try:
        directory.mkdir(parents=True)
        with _reserve(directory).open("xb") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
            else:
                file.write(bytes(RESERVE_BYTES))
    except OSError as error:
        raise UserError(
            f"The run's files cannot be written to {directory.parent}: {error.strerror}. "
            "Free space on that disk, or choose another database with --db."
        ) from error


def _reserve(directory: Path) -> Path:
    return directory / "reserve"


class Recorder:
    """Follows all spool files of one run."""

    def __init__(self, store: Store, run_id: int, directory: Path) -> None:
        self._store = store
        self._run_id = run_id
        self._directory = directory
        self._readers: dict[Path, SpoolReader] = {}

    @property
    def damage(self) -> list[str]:
        """One sentence for each damaged spool file."""
        return [reader.damage for reader in self._readers.values() if reader.damage is not None]

    def poll(self) -> None:
        """Store what was completed since the last call. Raises StoreError; the next call then begins anew."""
        while self._store_some():
            pass

    def finish(self) -> None:
        """Give the reserve back and store all that is left. Raises StoreError."""
        _reserve(self._directory).unlink(missing_ok=True)
        self.poll()

    def discard_spool(self) -> None:
        """Remove the spool files once everything in them is stored; damaged ones are set aside."""
        if self.damage:
            self._directory.rename(self._directory.with_suffix(_DAMAGED))
            return
        try:
            shutil.rmtree(self._directory)
        except FileNotFoundError:
            return  # another console was faster

    def _store_some(self) -> bool:
        """Store some of what is new in each file, in one transaction; says whether there was anything."""
        chunks: list[SampleChunk] = []
        events: list[EventRecord] = []
        roles: list[StoredRole] = []
        for path in sorted(self._directory.glob("*.spool")):
            reader = self._readers.setdefault(path, SpoolReader(path))
            try:
                blocks = reader.read_new()
            except FileNotFoundError:
                continue  # another console has taken it in, and removed it
            except OSError as error:
                raise StoreError(f"{path} cannot be read ({error.strerror}): check the disk.") from error
            for block in blocks:
                if isinstance(block, SampleBlock):
                    chunks.append(SampleChunk(block.role, block.series, block.seq, block.rows, block.columns))
                elif isinstance(block, RoleBlock):
                    roles.append(_stored_role(block))
                else:
                    events.append(EventRecord(path.stem, block.seq, block.event))
        if not (chunks or events or roles):
            return False
        try:
            self._store.append(self._run_id, chunks, events, roles)
        except StoreError:
            self._readers.clear()  # read it all again: what is stored already is skipped
            raise
        return True


def _stored_role(block: RoleBlock) -> StoredRole:
    files = tuple(StoredFile(**file) for file in block.described["files"])
    return StoredRole(**{**block.described, "files": files})
