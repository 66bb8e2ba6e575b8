"""Runs as CSV files (RFC 4180, UTF-8): parameters, sites, provenance, metrics, verdicts, events, samples, artefacts
and attachments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from numpy.typing import NDArray

from labconsole.model.plugin import Plugins
from labconsole.model.series import BYTES, FILE_NAME
from labconsole.output.export_contents import (
    Progress,
    RowCount,
    SampleTable,
    attached_rows,
    ended_runs,
    refuse_other_samples,
    sample_tables,
    shares,
    stored_rows,
)
from labconsole.output.export_file import ExportError, complete_file, fill_table, table_line, write_table
from labconsole.store.attachments import StoredAttachments
from labconsole.store.encoding import time_to_text, to_json
from labconsole.store.reader import Reader
from labconsole.store.records import Evidence, RunDetail, StoredArtefact, StoredAttachment

_METRIC_COLUMNS = (
    *("run", "uuid", "campaign", "profile", "scenario", "kind", "repeat", "status", "started", "ended"),
    *("metric", "value", "unit", "direction", "origin", "labels", "samples"),
)
_VERDICT_COLUMNS = ("kind", "name", "result", "reason", "evidence")
_ARTEFACT_COLUMNS = ("name", "type", "size [B]", "SHA-256")
_ATTACHMENT_COLUMNS = ("file", "role", "name", "type", "size [B]", "SHA-256", "state")
_EVENT_COLUMNS = ("time", "t [ns]", "source", "level", "event", "message", "data")


def export_runs(
    reader: Reader,
    run_ids: Sequence[int],
    directory: Path,
    plugins: Plugins | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Write `metrics.csv` of all these runs to `directory`, and each run to `run-<number>` in it; return the files.

    Raises StoreError and ExportError, before anything is written for a run that does not exist or is in progress.
    """
    details = ended_runs(reader, run_ids)
    files = [export_metrics(reader, run_ids, directory / "metrics.csv")]
    weights = [stored_rows(detail) + _attached_rows(reader.attachments(detail.row.id)) for detail in details]
    for detail, share in shares(details, weights, progress):
        files += _export(reader, detail, directory / f"run-{detail.row.id}", plugins, share)
    return files


def export_run(
    reader: Reader, run_id: int, directory: Path, plugins: Plugins | None = None, progress: Progress | None = None
) -> list[Path]:
    """Write one run to `directory` (made if needed) and return the files.

    `parameters.csv`, `provenance.csv`, `sites.csv` (where the profile named sites: one a row), `metrics.csv`,
    `verdicts.csv` (where the run has any), `events.csv` and, for each series, `samples-<series>.csv` with a row per
    sample of every role; for each table that the run's trial derives from them, if `plugins` know it, another. Where
    there are artefacts, `artefacts.csv` lists them with their SHA-256, and they themselves are in `artefacts`; the same
    for `attachments.csv` and `attachments`, with a folder for each role. Files of the same name are replaced, all when
    the last one is complete. Raises StoreError and ExportError.
    """
    (detail,) = ended_runs(reader, [run_id])
    return _export(reader, detail, directory, plugins, progress)


def _export(
    reader: Reader, detail: RunDetail, directory: Path, plugins: Plugins | None, progress: Progress | None
) -> list[Path]:
    run_id = detail.row.id
    samples, left_out = sample_tables(detail, reader.samples(run_id), plugins)
    artefacts = _artefacts(reader, run_id)
    stored = reader.attachments(run_id)
    attachments = {_attached_file(run_id, kept): kept for kept in stored.all()}
    keys = list(dict.fromkeys(key for site in detail.sites for key in site))
    tables: dict[str, tuple[Sequence[str], Iterable[Sequence[Any]]]] = {
        "parameters.csv": (("parameter", "value"), _flat(detail.row.parameters)),
        "provenance.csv": (("what", "value"), _provenance(detail, reader.evidence(run_id), left_out)),
        **({"sites.csv": (keys, ([site.get(key, "") for key in keys] for site in detail.sites))} if keys else {}),
        "metrics.csv": (_METRIC_COLUMNS, _metrics(detail)),
        **({"verdicts.csv": (_VERDICT_COLUMNS, _verdicts(detail))} if detail.verdicts else {}),
        "events.csv": (_EVENT_COLUMNS, _events(detail)),
        **({"artefacts.csv": (_ARTEFACT_COLUMNS, map(astuple, artefacts))} if artefacts else {}),
        **({"attachments.csv": (_ATTACHMENT_COLUMNS, _attached(attachments))} if attachments else {}),
    }
    count = RowCount(sum(table.rows for table in samples) + _attached_rows(stored), progress)
    refuse_other_samples(directory, samples, ".csv")
    files = []
    with ExitStack() as together:
        for name, (header, rows) in tables.items():
            files.append(directory / name)
            fill_table(together.enter_context(complete_file(files[-1])), header, rows)
        for table in samples:
            files.append(directory / f"{table.stem}.csv")
            _fill_samples(together.enter_context(complete_file(files[-1])), table, count)
        for artefact in artefacts:
            files.append(directory / "artefacts" / artefact.name)
            together.enter_context(complete_file(files[-1])).write_bytes(reader.artefact(run_id, artefact.name))
        for place, kept in attachments.items():
            files.append(directory / place)
            content = stored.content(kept.role, kept.name)
            _fill_attachment(together.enter_context(complete_file(files[-1])), content, count)
    return files


def export_metrics(reader: Reader, run_ids: Iterable[int], path: Path) -> Path:
    """Write one row per run and metric to `path`. Raises StoreError and ExportError."""
    rows = (row for run_id in run_ids for row in _metrics(reader.run(run_id)))
    return write_table(path, _METRIC_COLUMNS, rows)


def flat_provenance(detail: RunDetail) -> Iterator[tuple[str, Any]]:
    """Provenance and warnings of a run, as (dotted name, value) pairs."""
    yield from _flat({"run": detail.row.uuid, "warnings": list(detail.warnings), **detail.surroundings})


def _provenance(detail: RunDetail, evidence: Evidence | None, left_out: str) -> Iterator[tuple[str, Any]]:
    yield "status", str(detail.row.status)
    yield "reason", detail.row.reason
    if evidence is not None:
        yield "evidence", evidence.digest
    if left_out:
        yield "left out", left_out
    yield from flat_provenance(detail)


def _metrics(detail: RunDetail) -> Iterator[Sequence[Any]]:
    row = detail.row
    times = (_time(row.started), _time(row.ended))
    of_run = (row.id, row.uuid, row.campaign, row.profile, row.scenario, row.kind, row.repeat, str(row.status), *times)
    for metric in detail.metrics:
        labels = ";".join(f"{name}={value}" for name, value in sorted(metric.labels.items()))
        figures = (metric.value, metric.unit, str(metric.direction), str(metric.origin), labels, metric.samples)
        yield *of_run, metric.name, *figures


def _verdicts(detail: RunDetail) -> Iterator[Sequence[Any]]:
    for verdict in detail.verdicts:
        evidence = to_json(verdict.evidence) if verdict.evidence else ""
        yield str(verdict.kind), verdict.name, verdict.result, verdict.reason, evidence


def _events(detail: RunDetail) -> Iterator[Sequence[Any]]:
    """Events with their wall time, as far as the run knows the offset of its clock to it."""
    for event in detail.events:
        data = to_json(event.data) if event.data else ""
        yield (
            _time(detail.wall_time(event)),
            event.t_ns,
            event.source,
            str(event.level),
            event.name,
            event.message,
            data,
        )


def _time(moment: datetime | None) -> str:
    return time_to_text(moment) if moment else ""


def _artefacts(reader: Reader, run_id: int) -> list[StoredArtefact]:
    """Those of a run. Raises ExportError for a name that no run of this console gives, and that may lead elsewhere."""
    artefacts = reader.artefacts(run_id)
    for artefact in artefacts:
        if not FILE_NAME.fullmatch(artefact.name):
            raise ExportError(f"Run {run_id} has an artefact {artefact.name!r}, which cannot be the name of a file.")
    return artefacts


def _attached_file(run_id: int, attachment: StoredAttachment) -> str:
    """The path of an attachment, below the run's directory. Raises ExportError as `_artefacts`."""
    if not FILE_NAME.fullmatch(attachment.name):
        raise ExportError(f"Run {run_id} has an attachment {attachment.name!r}, which cannot be the name of a file.")
    role = quote(attachment.role, safe=" ")
    folder = role if role.strip(". ") else role.replace(".", "%2E").replace(" ", "%20")
    return f"attachments/{folder}/{attachment.name}"


def _attached_rows(attachments: StoredAttachments) -> int:
    return sum(attached_rows(kept.size) for kept in attachments.all())


def _attached(attachments: Mapping[str, StoredAttachment]) -> Iterator[Sequence[Any]]:
    for place, kept in attachments.items():
        state = "cut" if kept.sha256 is None else "complete"
        yield place, kept.role, kept.name, kept.media_type, kept.size, kept.sha256 or "", state


def _fill_attachment(path: Path, content: Iterator[bytes], count: RowCount) -> None:
    """Write an attachment, part by part. Raises OSError and StoreError."""
    written = 0
    with path.open("xb") as file:
        for part in content:
            file.write(part)
            count.add(attached_rows(written + len(part)) - attached_rows(written))
            written += len(part)


def _fill_samples(path: Path, table: SampleTable, count: RowCount) -> None:
    """Write a table of samples, part by part; its cells are numbers or hexadecimal, which need no quoting. Raises
    OSError."""
    names = [name for name, _, _ in table.columns]
    header = [f"{name} [{unit}]" if unit else name for name, _, unit in table.columns]
    line = ",".join(["%s"] * len(names))
    with path.open("x", encoding="utf-8", newline="") as file:
        file.write(table_line(["role", *header] if table.by_role else header))
        for role, part in table.parts():
            start = table_line([role, ""]).removesuffix("\r\n") if table.by_role else ""
            cells = zip(*(_cells(part[name], dtype) for name, dtype, _ in table.columns), strict=True)
            file.writelines([f"{start}{line % row}\r\n" for row in cells])
            count.add(len(part[names[0]]))


def _cells(values: NDArray[Any], dtype: str) -> list[Any]:
    """The values of a column as they are written: numbers, and bytes in hexadecimal."""
    return [value.hex() for value in values] if dtype == BYTES else values.tolist()


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Nested parameters as dotted names with plain values; lists as JSON."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, bool) or value is None or isinstance(value, list | tuple):
        yield name, to_json(value)
    else:
        yield name, value
