"""Runs as CSV files (RFC 4180, UTF-8): parameters, sites, provenance, metrics, events, and samples of each series."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from labconsole.clock import wall_time
from labconsole.plugin import Plugins
from labconsole.report.files import ExportError
from labconsole.report.tables import write_table
from labconsole.store.encoding import time_to_text, to_json
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, StoredSeries
from labconsole.store.samples import StoredSamples
from labconsole.trial import DerivedTable

_METRIC_COLUMNS = (
    *("run", "uuid", "campaign", "profile", "scenario", "kind", "repeat", "status", "started", "ended"),
    *("metric", "value", "unit", "direction", "origin", "labels", "samples"),
)
_ROWS_AT_ONCE = 10_000
_EVENT_COLUMNS = ("time", "t [ns]", "source", "level", "event", "message", "data")


def export_run(reader: Reader, run_id: int, directory: Path, plugins: Plugins | None = None) -> list[Path]:
    """Write one run to `directory` (made if needed) and return the files.

    `parameters.csv`, `provenance.csv`, `sites.csv` (where the profile named sites: one a row), `metrics.csv`,
    `events.csv` and, for each series, `samples-<series>.csv` with a row per sample of every role; for each table that
    the run's trial derives from them, if `plugins` know it, another. Files of the same name are replaced, each at once.
    Raises StoreError and ExportError.
    """
    detail = reader.run(run_id)
    keys = list(dict.fromkeys(key for site in detail.sites for key in site))
    sites = ([site.get(key, "") for key in keys] for site in detail.sites)
    files = [
        write_table(directory / "parameters.csv", ("parameter", "value"), _flat(detail.row.parameters)),
        write_table(directory / "provenance.csv", ("what", "value"), flat_provenance(detail)),
        *([write_table(directory / "sites.csv", keys, sites)] if keys else []),
        export_metrics(reader, [run_id], directory / "metrics.csv"),
        write_table(directory / "events.csv", _EVENT_COLUMNS, _events(detail)),
    ]
    samples = reader.samples(run_id)
    for name in dict.fromkeys(series.name for series in detail.series):
        of_name = [series for series in detail.series if series.name == name]
        header = ["role", *(f"{column} [{unit}]" if unit else column for column, _, unit in of_name[0].columns)]
        files.append(write_table(_samples_file(directory, name), header, _samples(samples, of_name)))
    for table in _derived(detail, samples, plugins):
        header = [f"{column.name} [{column.unit}]" if column.unit else column.name for column in table.series.columns]
        files.append(write_table(_samples_file(directory, table.series.name), header, _table_rows(table)))
    return files


def _samples_file(directory: Path, series: str) -> Path:
    return directory / f"samples-{quote(series, safe=' ')}.csv"


def export_metrics(reader: Reader, run_ids: Iterable[int], path: Path) -> Path:
    """Write one row per run and metric to `path`. Raises StoreError and ExportError."""
    rows = (row for run_id in run_ids for row in _metrics(reader.run(run_id)))
    return write_table(path, _METRIC_COLUMNS, rows)


def flat_provenance(detail: RunDetail) -> Iterator[tuple[str, Any]]:
    """What a run was measured with, and what a reader of its figures must know, as (dotted name, value) pairs."""
    yield from _flat({"run": detail.row.uuid, "warnings": list(detail.warnings), **detail.provenance})


def _metrics(detail: RunDetail) -> Iterator[Sequence[Any]]:
    row = detail.row
    times = [time_to_text(moment) if moment else "" for moment in (row.started, row.ended)]
    of_run = (row.id, row.uuid, row.campaign, row.profile, row.scenario, row.kind, row.repeat, str(row.status), *times)
    for metric in detail.metrics:
        labels = ";".join(f"{name}={value}" for name, value in sorted(metric.labels.items()))
        figures = (metric.value, metric.unit, str(metric.direction), str(metric.origin), labels, metric.samples)
        yield *of_run, metric.name, *figures


def _events(detail: RunDetail) -> Iterator[Sequence[Any]]:
    """Events with their wall time, as far as the run knows the offset of its clock to it."""
    offset = detail.provenance.get("wall_offset_ns")
    for event in detail.events:
        wall = "" if offset is None else time_to_text(wall_time(event.t_ns, int(offset)))
        data = to_json(event.data) if event.data else ""
        yield wall, event.t_ns, event.source, str(event.level), event.name, event.message, data


def _samples(samples: StoredSamples, of_name: Sequence[StoredSeries]) -> Iterator[Sequence[Any]]:
    for series in of_name:
        for part in samples.parts(series.name, series.role):
            columns = [part[name].tolist() for name, _, _ in series.columns]
            yield from zip(repeat(series.role), *columns, strict=False)


def _derived(detail: RunDetail, samples: StoredSamples, plugins: Plugins | None) -> tuple[DerivedTable, ...]:
    """What the run's trial derives from its samples; nothing if that is not installed here. Raises ExportError."""
    row = detail.row
    if plugins is None or row.kind not in plugins.kinds():
        return ()
    trial = plugins.trial(row.kind)
    try:
        parameters = trial.parameters.model_validate(dict(row.parameters))
    except ValidationError as error:
        raise ExportError(
            f"Run {row.id} is exported but for what its trial derives from the samples: its parameters do not fit the "
            f"installed version of {row.kind} ({error.error_count()} differences)."
        ) from error
    return trial.derived(parameters, samples, detail.events)


def _table_rows(table: DerivedTable) -> Iterator[Sequence[Any]]:
    columns = [table.columns[column.name] for column in table.series.columns]
    for first in range(0, len(columns[0]), _ROWS_AT_ONCE):
        yield from zip(*(column[first : first + _ROWS_AT_ONCE].tolist() for column in columns), strict=True)


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Nested parameters as dotted names with plain values; lists as JSON."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, bool) or value is None or isinstance(value, list | tuple):
        yield name, to_json(value)
    else:
        yield name, value
