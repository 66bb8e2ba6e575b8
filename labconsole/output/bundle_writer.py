"""Writing a bundle: runs with samples, files, provenance and evidence, for import into another database."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

from labconsole import __version__
from labconsole.clock import wall_now
from labconsole.output.bundle_format import (
    FORMAT,
    LARGEST_JSON,
    MANIFEST,
    VERSION,
    Campaign,
    CampaignRow,
    Manifest,
    RunEntry,
    RunRows,
    ScenarioRow,
    artefact_member,
    attachment_member,
    chunk_bytes,
    run_member,
    series_member,
    signature_path,
)
from labconsole.output.export_file import ExportError, complete_file
from labconsole.store.encoding import time_to_text
from labconsole.store.evidence.sealing import digest
from labconsole.store.reader import Reader
from labconsole.store.run_transfer import described_run
from labconsole.store.samples import StoredChunk

Progress = Callable[[float], None]
"""Called with the progress, 0 to 1; an exception that it raises ends the work, with no file left."""


def write_bundle(
    reader: Reader, run_ids: Sequence[int], path: Path, progress: Progress | None = None, *, signed: bool = False
) -> None:
    """Write runs that have ended to the bundle `path`; a file there is replaced, at once and only by a complete one.

    `signed`: it will be signed after. Otherwise the signature of another bundle must not be next to it.
    Raises StoreError for a run that is not there, damaged samples; ExportError for one in progress or changed since it
    was sealed, or a target that cannot be written.
    """
    if not signed and signature_path(path).exists():
        raise ExportError(
            f"{signature_path(path)} is the signature of another bundle: remove it, or choose another name."
        )
    chosen = list(dict.fromkeys(run_ids))
    total = sum(_length(reader, run_id) for run_id in chosen)
    done = 0
    with complete_file(path) as partial, zipfile.ZipFile(partial, "x", zipfile.ZIP_STORED) as bundle:
        manifest = _Manifest()
        for run_id in chosen:
            rows = manifest.add(reader, run_id)
            uuid = rows.run.uuid
            _write_json(bundle, run_member(uuid), rows.model_dump_json())
            for artefact in rows.artefact:
                bundle.writestr(artefact_member(uuid, artefact.name), reader.artefact(run_id, artefact.name))
            samples, attachments = reader.samples(run_id), reader.attachments(run_id)
            members: Iterable[tuple[str, Iterable[StoredChunk]]] = chain(
                (
                    (series_member(uuid, number), samples.chunks(series.name, series.role))
                    for number, series in enumerate(rows.series)
                ),
                (
                    (attachment_member(uuid, number), attachments.chunks(file.role, file.name))
                    for number, file in enumerate(rows.attachment)
                ),
            )
            for name, chunks in members:
                with bundle.open(name, "w", force_zip64=True) as member:
                    for chunk in chunks:
                        member.write(chunk_bytes(chunk))
                        done += 1
                        if progress is not None:
                            progress(done / total)
        _write_json(bundle, MANIFEST, manifest.complete().model_dump_json())


def _length(reader: Reader, run_id: int) -> int:
    """Number of chunks of a run, for the progress."""
    with reader.snapshot() as connection:
        statement = "SELECT coalesce(sum(chunks), 0) FROM {} WHERE run_id = ?"
        return sum(
            int(connection.exec_driver_sql(statement.format(table), (run_id,)).scalar_one())
            for table in ("series", "attachment")
        )


def _write_json(bundle: zipfile.ZipFile, member: str, text: str) -> None:
    data = text.encode()
    if len(data) > LARGEST_JSON:
        raise ExportError(f"{member} would have {len(data):,} bytes, more than a bundle holds: leave the run out.")
    bundle.writestr(member, data)


class _Manifest:
    """The manifest as it grows: each campaign and scenario once."""

    def __init__(self) -> None:
        self._campaigns: dict[int, tuple[CampaignRow, dict[int, ScenarioRow]]] = {}
        self._runs: list[RunEntry] = []

    def add(self, reader: Reader, run_id: int) -> RunRows:
        """Add a run, and return its rows. Raises StoreError and ExportError."""
        row = reader.run(run_id).row
        if not row.status.final:
            raise ExportError(f"Run {run_id} is {row.status}: wait for its end before handing it on.")
        with reader.snapshot() as connection:
            described = described_run(connection, run_id)
            now = digest(connection, run_id).hex()
        if [sealed["digest"] for sealed in described["evidence"]] != [now]:
            raise ExportError(
                f"Run {run_id} is not as it was sealed, and is not exported: `labconsole verify {run_id}` shows more."
            )
        scenario, campaign = described.pop("scenario"), described.pop("campaign")
        _, scenarios = self._campaigns.setdefault(row.campaign_id, (CampaignRow.model_validate(campaign), {}))
        scenarios[scenario["position"]] = ScenarioRow.model_validate(scenario)
        number = list(self._campaigns).index(row.campaign_id)
        self._runs.append(RunEntry(uuid=row.uuid, campaign=number, scenario=scenario["position"]))
        return RunRows.model_validate(described)

    def complete(self) -> Manifest:
        """The manifest of all that was added."""
        campaigns = [
            Campaign(row=row, scenarios=list(scenarios.values())) for row, scenarios in self._campaigns.values()
        ]
        written = time_to_text(wall_now())
        return Manifest(
            format=FORMAT, version=VERSION, console=__version__, written=written, campaigns=campaigns, runs=self._runs
        )
