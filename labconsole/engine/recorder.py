"""Copies the spool files of a run into the store, while they grow or after a crash; repeating it changes nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path

from labconsole.analysis.number_format import format_figure
from labconsole.engine.spool import AttachmentBlock, Block, RoleBlock, SampleBlock, SpoolReader
from labconsole.errors import UserError
from labconsole.store.attachments import AttachmentPiece
from labconsole.store.errors import StoreError
from labconsole.store.records import StoredFile, StoredRole
from labconsole.store.run_store import EventRecord, SampleChunk, Store

RESERVE_BYTES = 8 * 1024 * 1024
"""Disk space that a run reserves, so that a full disk leaves room for its last samples and its end."""
_RESERVE_FOR_END = 1024 * 1024
"""The part of it that is kept for the end, where more samples are left than the rest has room for."""
BATCH_BYTES = 8 * 1024 * 1024
"""How much of the spool is stored in one transaction at least, if there is so much."""
_DAMAGED = ".damaged"
COLLECTING = ".collecting"
"""Suffix of a directory in which samples of a run are collected from hosts after its end."""


def spool_root(database: Path) -> Path:
    """The folder of the spool directories of a database: next to it, so that any console can recover its runs."""
    return database.with_name(database.name + ".spool")


def spool_directory(database: Path, uuid: str) -> Path:
    """The directory of the spool files of one run."""
    return spool_root(database) / uuid


def leftovers(database: Path) -> list[str]:
    """Uuids of the runs that have spool files."""
    root = spool_root(database)
    return [path.name for path in root.iterdir() if not path.suffix] if root.is_dir() else []


def make_spool(directory: Path, needed: int = 0) -> None:
    """Make the directory for a run's spool files, with its reserve.

    Raises UserError when the disk is full, or has less room than the `needed` bytes.
    """
    try:
        directory.mkdir(parents=True)
        free = shutil.disk_usage(directory).free
        if free < needed:
            raise UserError(
                f"The run needs up to {format_figure(needed, 'B')} on the disk of its database, and "
                f"{format_figure(free, 'B')} are free: free space there, choose another database with --db, or make "
                "the run shorter."
            )
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

    def __init__(
        self, store: Store, run_id: int, directory: Path, corrected: Callable[[Block], Block] = lambda block: block
    ) -> None:
        """`corrected` returns a block as it is stored."""
        self._corrected = corrected
        self._store = store
        self._run_id = run_id
        self._directory = directory
        self._readers: dict[Path, SpoolReader] = {}
        self._kept = False

    @property
    def damage(self) -> list[str]:
        """One sentence for each damaged spool file."""
        return [reader.damage for reader in self._readers.values() if reader.damage is not None]

    def poll(self) -> None:
        """Store what was completed since the last call. Raises StoreError; the next call then begins again."""
        while self._store_some():
            pass

    def finish(self) -> None:
        """Store all that is left, with most of the reserve. Raises StoreError; `release_reserve` then gives room for
        the end."""
        with suppress(FileNotFoundError):
            os.truncate(_reserve(self._directory), _RESERVE_FOR_END)
        self.poll()
        self.release_reserve()

    def release_reserve(self) -> None:
        """Give all of the reserve back to the disk."""
        _reserve(self._directory).unlink(missing_ok=True)

    def keep_spool(self) -> None:
        """Something else in its directory is damaged: let `discard_spool` set it aside."""
        self._kept = True

    def discard_spool(self) -> None:
        """Remove the spool files once everything in them is stored; damaged ones are set aside."""
        if self.damage or self._kept:
            names = (f"{_DAMAGED}{number or ''}" for number in count())
            self._directory.rename(next(one for one in map(self._directory.with_suffix, names) if not one.exists()))
            return
        try:
            shutil.rmtree(self._directory)
        except FileNotFoundError:
            return  # another console was faster

    def _store_some(self) -> bool:
        """Store some of what is new in each file, in few transactions; returns whether there was any."""
        new: list[tuple[str, Block]] = []
        size, found = 0, False
        for path in sorted(self._directory.glob("*.spool")):
            reader = self._readers.setdefault(path, SpoolReader(path))
            before = reader.position
            try:
                new += [(path.stem, self._corrected(block)) for block in reader.read_new()]
            except FileNotFoundError:
                continue  # another console has stored and removed it
            except OSError as error:
                raise StoreError(f"{path} cannot be read ({error.strerror}): check the disk.") from error
            found = found or bool(new)
            size += reader.position - before
            if size >= BATCH_BYTES:
                self._append(new)
                new, size = [], 0
        if new:
            self._append(new)
        return found

    def _append(self, new: Iterable[tuple[str, Block]]) -> None:
        """Store these blocks, each with the name of its file, in one transaction."""
        chunks: list[SampleChunk] = []
        events: list[EventRecord] = []
        roles: list[StoredRole] = []
        pieces: list[AttachmentPiece] = []
        for name, block in new:
            if isinstance(block, SampleBlock):
                chunks.append(SampleChunk(block.role, block.series, block.seq, block.rows, block.columns))
            elif isinstance(block, RoleBlock):
                roles.append(_stored_role(block))
            elif isinstance(block, AttachmentBlock):
                about = (block.role, block.name, block.media_type)
                pieces.append(AttachmentPiece(*about, block.seq, block.content, block.sha256))
            else:
                events.append(EventRecord(name, block.seq, block.event))
        try:
            self._store.append(self._run_id, chunks, events, roles, pieces)
        except StoreError:
            self._readers.clear()  # read it all again: what is stored already is skipped
            raise


def _stored_role(block: RoleBlock) -> StoredRole:
    files = tuple(StoredFile(**file) for file in block.described["files"])
    return StoredRole(**{**block.described, "files": files})
