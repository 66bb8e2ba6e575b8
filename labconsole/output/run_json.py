"""A whole run as one JSON object, but for the rows of its samples.

`format` is 1; it changes when a key is taken away or means something else, not when one comes in addition.

| keys | what |
| --- | --- |
| `run`, `uuid` | number in this database, and the same in every database |
| `kind`, `campaign`, `profile`, `scenario`, `repeat`, `position`, `parameters`, `thresholds`, `seed` | what was run |
| `placement` | hosts that the roles ask for: `scheduler`, `local`, `roles`; `{}` where all stay on this computer |
| `status`, `reason`, `created`, `started`, `ended`, `duration_s` | how it went; times are ISO 8601, UTC |
| `tags`, `note`, `warnings` | what was added by hand, and what a reader of the figures must know |
| `definitions` | version of the trial's metric definitions by which the figures were evaluated |
| `metrics` | name -> `value`, `unit`, `direction`, `origin`, `samples`, `not_judged` (why); of clocks: `uncertainty` |
| `labelled_metrics` | the same with `name` and `labels`, in a list |
| `verdicts` | `name`, `kind` (integrity, finding, preflight), `result` (pass, fail ...), `reason`, `evidence` |
| `sites`, `provenance` | the profile's resource table; what it was measured with |
| `roles` | started roles: `name`, `host`, `clock_domain`, `files` (`key`, `name`, `size` in bytes, `sha256`) |
| `events` | `time`, `t_ns` (clock of the run), `source`, `level`, `name`, `message`, `data` |
| `series` | `name`, `role`, `title`, `origin`, `rows`, `columns` with `name`, `dtype` (numpy, or `bytes`), `unit` |
| `artefacts` | `name`, `media_type`, `size` (bytes), `sha256` |
| `attachments` | `role`, `name`, `media_type`, `size` (bytes), `complete`, `sha256` (null where it was cut) |
| `evidence` | `digest` (SHA-256 over the run) and when it was `sealed`; null before the run has ended |
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from labconsole.model.metrics import Metric
from labconsole.model.series import Event
from labconsole.output.export_contents import ended_runs
from labconsole.output.export_file import ExportError, complete_file
from labconsole.store.encoding import time_to_text
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, StoredSeries

FORMAT = 1


def export_json(reader: Reader, run_ids: Sequence[int], target: Path) -> list[Path]:
    """Write runs to `target` and return the files: one run to a file whose name ends with `.json`, otherwise each to
    `run-<number>.json` in a directory (made if needed). Raises StoreError and ExportError, with nothing written.
    """
    ended_runs(reader, run_ids)
    if target.suffix.lower() != ".json":
        files = [target / f"run-{run_id}.json" for run_id in run_ids]
    elif len(run_ids) == 1:
        files = [target]
    else:
        raise ExportError(f"{target} can hold one run, not {len(run_ids)}: name a directory instead.")
    with ExitStack() as together:
        for run_id, file in zip(run_ids, files, strict=True):
            text = json.dumps(run_as_json(reader, run_id), ensure_ascii=False, allow_nan=False, indent=2)
            together.enter_context(complete_file(file)).write_text(f"{text}\n", encoding="utf-8", newline="\n")
    return files


def run_as_json(reader: Reader, run_id: int) -> dict[str, Any]:
    """Everything of one run, as the module's head says. Raises StoreError if there is no such run."""
    detail = reader.run(run_id)
    row, evidence = detail.row, reader.evidence(run_id)
    return {
        "format": FORMAT,
        **summary(detail),
        "uuid": row.uuid,
        "kind": row.kind,
        "campaign": row.campaign,
        "position": row.position,
        "definitions": row.definitions,
        "thresholds": {name: dict(bounds) for name, bounds in detail.thresholds.items()},
        "seed": row.seed,
        "created": time_to_text(row.created),
        "started": _time(row.started),
        "ended": _time(row.ended),
        "duration_s": row.duration_s,
        "tags": list(row.tags),
        "note": row.note,
        "warnings": list(detail.warnings),
        "sites": [dict(site) for site in detail.sites],
        "provenance": dict(detail.provenance),
        "roles": [asdict(role) for role in detail.roles],
        "events": [_event(event, detail.wall_time(event)) for event in detail.events],
        "series": [_series(series) for series in detail.series],
        "artefacts": [
            {"name": kept.name, "media_type": kept.media_type, "size": kept.size, "sha256": kept.sha256}
            for kept in reader.artefacts(run_id)
        ],
        "attachments": [
            {**asdict(kept), "complete": kept.sha256 is not None} for kept in reader.attachments(run_id).all()
        ],
        "evidence": {"digest": evidence.digest, "sealed": time_to_text(evidence.sealed)} if evidence else None,
    }


def summary(detail: RunDetail) -> dict[str, Any]:
    """What was run and what came out: what `labconsole run --json` prints of a run."""
    row = detail.row
    return {
        "run": row.id,
        "status": str(row.status),
        "reason": row.reason,
        "profile": row.profile,
        "scenario": row.scenario,
        "repeat": row.repeat,
        "parameters": dict(row.parameters),
        "placement": dict(row.placement),
        "metrics": {metric.name: _metric(metric) for metric in detail.metrics if not metric.labels},
        "labelled_metrics": [
            {"name": metric.name, "labels": dict(metric.labels), **_metric(metric)}
            for metric in detail.metrics
            if metric.labels
        ],
        "verdicts": [
            {
                "name": verdict.name,
                "kind": str(verdict.kind),
                "result": verdict.result,
                "reason": verdict.reason,
                "evidence": dict(verdict.evidence),
            }
            for verdict in detail.verdicts
        ],
    }


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "value": metric.value,
        "unit": metric.unit,
        "direction": str(metric.direction),
        "origin": str(metric.origin),
        "samples": metric.samples,
        "not_judged": metric.not_judged,
        **({"uncertainty": metric.uncertainty} if metric.uncertainty else {}),
    }


def _event(event: Event, moment: datetime | None) -> dict[str, Any]:
    return {
        "time": _time(moment),
        "t_ns": event.t_ns,
        "source": event.source,
        "level": str(event.level),
        "name": event.name,
        "message": event.message,
        "data": dict(event.data),
    }


def _series(series: StoredSeries) -> dict[str, Any]:
    columns = [{"name": name, "dtype": dtype, "unit": unit} for name, dtype, unit in series.columns]
    return {
        "name": series.name,
        "role": series.role,
        "title": series.title,
        "origin": series.origin,
        "rows": series.rows,
        "columns": columns,
    }


def _time(moment: datetime | None) -> str | None:
    return time_to_text(moment) if moment else None
