"""Import of a bundle: all of it is checked before anything is written, and then written in one transaction.

A bundle comes from outside: none of its names becomes a path, no member is unpacked to disk, and its rows are
checked against `labconsole.output.bundle_format` before the database sees them.
"""

from __future__ import annotations

import hashlib
import json
import stat
import struct
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from labconsole.errors import BadInput, UserError
from labconsole.output.bundle_format import (
    LARGEST_JSON,
    MANIFEST,
    AttachmentRow,
    BundleError,
    Manifest,
    RunEntry,
    RunRows,
    artefact_member,
    attachment_member,
    check_decoding,
    chunk_size,
    chunks_of_attachment,
    chunks_of_series,
    has_chunks,
    parsed_manifest,
    parsed_rows,
    run_member,
    series_member,
    signature_path,
    unpacked,
)
from labconsole.output.bundle_writer import Progress
from labconsole.store.evidence.sealing import digest
from labconsole.store.run_database import scratch_database
from labconsole.store.run_store import ARTEFACT_LIMIT, Store
from labconsole.store.run_transfer import (
    insert_attachment_chunks,
    insert_chunks,
    insert_run,
    known_uuids,
    place_campaign,
)
from labconsole.store.samples import StoredChunk

if TYPE_CHECKING:
    from labconsole.security.pki.signing_identities import Signer

_Read = Callable[[int], bytes]
"""Returns the next so many bytes of a member, or all that are left for -1. Raises BundleError."""

_ZIP_FAULTS = (
    zipfile.BadZipFile,  # not a zip file, or a member whose header or checksum is wrong
    RuntimeError,  # an encrypted member; NotImplementedError: a kind of zip file that zipfile does not know
    EOFError,  # a member that ends too early
    ValueError,  # a name that is not UTF-8, an offset before the beginning of the file
    OverflowError,  # an offset beyond the end of any file
    struct.error,  # a field that is cut off
)
"""The errors of zipfile for a malformed file."""


@dataclass(frozen=True)
class ImportResult:
    """The result of an import: numbers of the new runs, and uuids of those that the database had already."""

    imported: tuple[int, ...]
    skipped: tuple[str, ...]
    signer: Signer | None = None
    """Who signed the bundle, trusted or not; None where no signature is next to it."""


def import_bundle(
    database: Path, file: Path, progress: Progress | None = None, *, signed_only: bool = False
) -> ImportResult:
    """Import the runs of the bundle `file` into `database` (created if missing), without those it has already.

    They keep uuid and digest, and get numbers of their own. Campaigns that are the same in every respect become one.
    `progress` as in `write_bundle`. A bundle that is not as it was signed (`labconsole.agreements.signed_bundles`) is
    refused; with `signed_only` also one without the signature of a State that is trusted here.
    Raises BundleError and StoreError, with nothing written.
    """
    if database.exists() and file.exists() and file.samefile(database):
        raise BundleError(f"{file} is the database itself: name a bundle.")
    try:
        if file.exists() and not file.is_file():
            raise BundleError("It is a pipe, a device or a directory: name a regular file.")
        with _zip_faults():
            bundle, size = zipfile.ZipFile(file), file.stat().st_size
        with bundle:
            signer = _signer(file, signed_only=signed_only)
            contents = _Contents(bundle, size, progress or (lambda share: None))
            contents.check()
            with Store.open(database) as store, store.writer.transaction(durable=True) as connection:
                result, uuids = contents.write_into(connection)
                if signer is not None:
                    _keep_statement(file, uuids)
                return replace(result, signer=signer)
    except BundleError as error:
        raise BundleError(f"{file} was not imported, and nothing was changed. {error}") from error


def parameter_values(file: Path, name: str) -> frozenset[str]:
    """The values of one parameter in the scenarios of the bundle `file`, as text; of one without it, "".

    Nothing else of the bundle is checked. Raises BundleError: it cannot be read.
    """
    with _zip_faults():
        bundle, size = zipfile.ZipFile(file), file.stat().st_size
    with bundle:
        manifest = _Contents(bundle, size, lambda share: None).manifest
    scenarios = (scenario for campaign in manifest.campaigns for scenario in campaign.scenarios)
    return frozenset(str(json.loads(scenario.parameters).get(name, "")) for scenario in scenarios)


def _signer(file: Path, *, signed_only: bool) -> Signer | None:
    """Who signed the bundle, if a signature is next to it. Raises BundleError: changed since, or not trusted."""
    if not signature_path(file).exists():
        if signed_only:
            raise BundleError(f"There is no signature {signature_path(file).name} next to it: ask for both files.")
        return None
    from labconsole.agreements.signed_bundles import statement_of  # it needs the certificate layer

    try:
        signer = statement_of(file).signer
    except BadInput as error:
        raise BundleError(str(error)) from error
    if signed_only and not signer.trusted:
        raise BundleError(signer.sentence)
    return signer


def _keep_statement(file: Path, uuids: Sequence[str]) -> None:
    """Keep the statement next to the bundle for these runs. Raises BundleError."""
    from labconsole.agreements.signed_bundles import keep_statement

    try:
        keep_statement(file, uuids)
    except UserError as error:
        raise BundleError(str(error)) from error


@contextmanager
def _zip_faults() -> Iterator[None]:
    """Turn errors of zipfile into BundleError; use it only around calls of zipfile."""
    try:
        yield
    except OSError as error:
        raise BundleError(f"It cannot be read ({error.strerror or error}): check the file.") from error
    except _ZIP_FAULTS as error:
        raise BundleError(f"It is damaged or no bundle of the lab console ({error}).") from error


class _Contents:
    """The members of a bundle, read as they are declared."""

    def __init__(self, bundle: zipfile.ZipFile, size: int, progress: Progress) -> None:
        """`size` is that of the file in bytes. Raises BundleError."""
        self._bundle = bundle
        self._progress = progress
        self._members = _plain_members(bundle, size)
        self._total = 2 * sum(size for name, size in self._members.items() if has_chunks(name))
        self._read = 0
        self.manifest = parsed_manifest(self._content(MANIFEST, LARGEST_JSON))

    def check(self) -> None:
        """Raise BundleError unless all contents are as declared and sealed."""
        manifest, expected = self.manifest, {MANIFEST}
        if len({entry.uuid for entry in manifest.runs}) != len(manifest.runs):
            raise BundleError("It holds a run twice.")
        for campaign in manifest.campaigns:
            if len({scenario.position for scenario in campaign.scenarios}) != len(campaign.scenarios):
                raise BundleError("It holds a scenario twice.")
        for entry in manifest.runs:
            _campaign_has_scenario(manifest, entry)
            expected |= self._check_run(entry.uuid, self._rows(entry.uuid))
        if foreign := self._members.keys() - expected:
            raise BundleError(f"It holds what does not belong into a bundle: {sorted(foreign)[0]!r}.")
        with scratch_database() as connection:
            self._take(connection, manifest.runs, self._take_rows)

    def write_into(self, connection: Connection) -> tuple[ImportResult, list[str]]:
        """Insert the runs that the database does not have; also returns their uuids.

        Raises StoreError and as `check` does.
        """
        runs = self.manifest.runs
        skipped = known_uuids(connection, [entry.uuid for entry in runs])
        new = [entry for entry in runs if entry.uuid not in skipped]
        imported = self._take(connection, new, self._take_run)
        result = ImportResult(tuple(imported), tuple(entry.uuid for entry in runs if entry.uuid in skipped))
        return result, [entry.uuid for entry in new]

    def _take(
        self, connection: Connection, runs: Sequence[RunEntry], take: Callable[[Connection, int, RunRows], int]
    ) -> list[int]:
        """Insert these runs, each by `take`, which gets the id of its scenario and its rows; returns what that does."""
        taken = []
        try:
            for number, campaign in enumerate(self.manifest.campaigns):
                entries = [entry for entry in runs if entry.campaign == number]
                if not entries:
                    continue
                repeats = [(entry.scenario, self._rows(entry.uuid).run.repeat) for entry in entries]
                used = {entry.scenario for entry in entries}
                scenarios = {row.position: row.model_dump() for row in campaign.scenarios if row.position in used}
                placed = place_campaign(connection, campaign.row.model_dump(), scenarios, repeats)
                taken += [take(connection, placed[entry.scenario], self._rows(entry.uuid)) for entry in entries]
        except IntegrityError as error:
            raise BundleError(f"It contradicts itself: {error.orig}.") from error
        return taken

    def _take_rows(self, connection: Connection, scenario_id: int, rows: RunRows) -> int:
        """Insert a run but its samples, if its digest is the sealed one."""
        uuid = rows.run.uuid

        def content(name: str) -> bytes:
            return self._content(artefact_member(uuid, name), ARTEFACT_LIMIT)

        run_id = insert_run(connection, scenario_id, rows.model_dump(), content)
        if digest(connection, run_id).hex() != rows.evidence[0].digest:
            raise BundleError(f"Run {uuid} in it is not as it was sealed.")
        return run_id

    def _take_run(self, connection: Connection, scenario_id: int, rows: RunRows) -> int:
        run_id, uuid = self._take_rows(connection, scenario_id, rows), rows.run.uuid
        for number, series in enumerate(rows.series):
            with self._opened(series_member(uuid, number)) as read:
                chunks = self._with_progress(chunks_of_series(read, uuid, series))
                insert_chunks(connection, run_id, series.name, series.role, chunks)
        for number, file in enumerate(rows.attachment):
            with self._opened(attachment_member(uuid, number)) as read:
                chunks = self._with_progress(chunks_of_attachment(read, uuid, file))
                insert_attachment_chunks(connection, run_id, file.role, file.name, chunks)
        return run_id

    def _check_run(self, uuid: str, rows: RunRows) -> set[str]:
        """Check samples and files of a run; returns the names of its members."""
        if rows.run.uuid != uuid:
            raise BundleError(f"The rows of run {uuid} are those of another.")
        members = {run_member(uuid)}
        for artefact in rows.artefact:
            member = artefact_member(uuid, artefact.name)
            if hashlib.sha256(self._content(member, ARTEFACT_LIMIT)).hexdigest() != artefact.sha256:
                raise BundleError(f"Artefact {artefact.name} of run {uuid} does not fit its hash.")
            members.add(member)
        for number, series in enumerate(rows.series):
            with self._opened(series_member(uuid, number)) as read:
                for chunk in self._with_progress(chunks_of_series(read, uuid, series)):
                    check_decoding(chunk, series)
            members.add(series_member(uuid, number))
        for number, file in enumerate(rows.attachment):
            with self._opened(attachment_member(uuid, number)) as read:
                _check_attachment(self._with_progress(chunks_of_attachment(read, uuid, file)), uuid, file)
            members.add(attachment_member(uuid, number))
        return members

    def _with_progress(self, chunks: Iterator[StoredChunk]) -> Iterator[StoredChunk]:
        for chunk in chunks:
            self._read += chunk_size(chunk)
            self._progress(self._read / self._total)
            yield chunk

    def _rows(self, uuid: str) -> RunRows:
        return parsed_rows(self._content(run_member(uuid), LARGEST_JSON))

    def _content(self, member: str, limit: int) -> bytes:
        with self._opened(member) as read:
            if self._members[member] > limit:
                raise BundleError(f"{member} has {self._members[member]:,} bytes, more than the {limit:,} allowed.")
            return read(-1)

    @contextmanager
    def _opened(self, member: str) -> Iterator[_Read]:
        if member not in self._members:
            raise BundleError(f"{member} is missing in it: it is damaged or no bundle of the lab console.")
        with _zip_faults():
            stream = self._bundle.open(member)

        def read(size: int) -> bytes:
            with _zip_faults():
                return stream.read(size)

        with stream:
            yield read


def _check_attachment(chunks: Iterator[StoredChunk], uuid: str, file: AttachmentRow) -> None:
    """Raise BundleError unless these chunks hold the bytes whose hash is declared."""
    sha256 = hashlib.sha256()
    for chunk in chunks:
        sha256.update(unpacked(chunk, file))
    if file.sha256 not in (None, sha256.hexdigest()):
        raise BundleError(f"Attachment {file.name} from {file.role} of run {uuid} does not fit its hash.")


def _plain_members(bundle: zipfile.ZipFile, size: int) -> dict[str, int]:
    """Name and size of each member: plain files, stored as they are, each once, not larger than the file together."""
    members = bundle.infolist()
    names = Counter(member.filename for member in members)
    for member in members:
        mode = member.external_attr >> 16
        if member.is_dir() or (stat.S_IFMT(mode) and not stat.S_ISREG(mode)):
            raise BundleError(f"{member.filename!r} in it is not a plain file.")
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise BundleError(f"{member.filename!r} in it is compressed, which nothing in a bundle is.")
        if names[member.filename] > 1:
            raise BundleError(f"{member.filename!r} is in it more than once.")
    if sum(member.file_size for member in members) > size:
        raise BundleError("It declares more than it has.")
    return {member.filename: member.file_size for member in members}


def _campaign_has_scenario(manifest: Manifest, entry: RunEntry) -> None:
    known = entry.campaign < len(manifest.campaigns) and entry.scenario in {
        scenario.position for scenario in manifest.campaigns[entry.campaign].scenarios
    }
    if not known:
        raise BundleError(f"The scenario of run {entry.uuid} is missing in it.")
