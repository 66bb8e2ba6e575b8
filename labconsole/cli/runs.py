"""`labconsole runs`, `show` and `export`: what lies in the database."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from labconsole.analysis.figures import format_number
from labconsole.cli.exit_codes import FINISHED
from labconsole.cli.opening import open_database
from labconsole.cli.run import run_as_json
from labconsole.cli.terminal import output
from labconsole.clock import wall_time
from labconsole.plugin import Plugins
from labconsole.report.csv_export import export_run, flat_provenance
from labconsole.store.records import RunDetail

_KEY_METRICS = ("throughput", "latency_mean", "lost")


def runs(arguments: argparse.Namespace) -> int:
    """List all runs, newest first."""
    reader = open_database(arguments)
    table = Table("Run", "Status", "Profile", "Scenario", "Repeat", "Started (UTC)", "Seconds", *_KEY_METRICS, box=None)
    try:
        for row in reader.runs():
            started = f"{row.started:%Y-%m-%d %H:%M:%S}" if row.started else "–"
            seconds = "–" if row.duration_s is None else f"{row.duration_s:.1f}"
            figures = [
                f"{format_number(row.metrics[name].value)} {row.metrics[name].unit}" if name in row.metrics else "–"
                for name in _KEY_METRICS
            ]
            table.add_row(
                str(row.id), row.status, row.profile, row.scenario, str(row.repeat), started, seconds, *figures
            )
    finally:
        reader.close()
    output().print(table)
    return FINISHED


def show(arguments: argparse.Namespace) -> int:
    """Show everything of one run but its samples."""
    reader = open_database(arguments)
    try:
        detail = reader.run(arguments.run)
    finally:
        reader.close()
    if arguments.json:
        print(json.dumps(_as_json(detail), ensure_ascii=False, default=str))
    else:
        _print(detail)
    return FINISHED


def export(arguments: argparse.Namespace) -> int:
    """Export one run as CSV."""
    reader = open_database(arguments)
    try:
        for path in export_run(reader, arguments.run, arguments.csv, Plugins.discover()):
            print(path)
    finally:
        reader.close()
    return FINISHED


def _as_json(detail: RunDetail) -> dict[str, Any]:
    row = detail.row
    return run_as_json(detail) | {
        "uuid": row.uuid,
        "kind": row.kind,
        "created": row.created,
        "started": row.started,
        "ended": row.ended,
        "seed": row.seed,
        "tags": row.tags,
        "note": row.note,
        "warnings": list(detail.warnings),
        "provenance": dict(detail.provenance),
        "sites": [dict(site) for site in detail.sites],
        "events": [asdict(event) for event in detail.events],
        "series": [asdict(series) for series in detail.series],
    }


def _print(detail: RunDetail) -> None:
    console, row = output(), detail.row
    console.print(f"Run {row.id}: {row.scenario}, repeat {row.repeat}, of {row.campaign}", style="bold")
    console.print(f"{row.kind}, {row.status}{f': {row.reason}' if row.reason else ''}")
    for warning in detail.warnings:
        console.print(f"Note: {warning}")
    table = Table("Metric", "Value", "Unit", "Samples", "Origin", box=None)
    for metric in detail.metrics:
        labels = ", ".join(f"{name} {value}" for name, value in metric.labels.items())
        name = f"{metric.name} ({labels})" if labels else metric.name
        table.add_row(name, format_number(metric.value), metric.unit, f"{metric.samples:,}", metric.origin)
    console.print(table)
    for verdict in detail.verdicts:
        console.print(f"{verdict.result}: {verdict.name}: {verdict.reason}")
    changed = ", ".join(f"{name}={value}" for name, value in row.parameters.items() if value != "")
    console.print(f"Parameters: {changed}")
    if detail.sites:
        console.print(_sites(detail.sites))
    if detail.events:
        console.print(_events(detail))
    provenance = Table("Measured with", "", box=None)
    for name, value in flat_provenance(detail):
        provenance.add_row(name, str(value))
    console.print(provenance)


def _sites(sites: Sequence[Mapping[str, str]]) -> Table:
    """The sites beside each other, with a line for each thing that is said of one."""
    table = Table("Site", *(site.get("name", "") for site in sites), box=None)
    for key in dict.fromkeys(key for site in sites for key in site if key != "name"):
        table.add_row(key.replace("_", " "), *(site.get(key, "–") for site in sites))
    return table


def _events(detail: RunDetail) -> Table:
    table = Table("Time (UTC)", "From", "Level", "Event", box=None)
    offset = detail.provenance.get("wall_offset_ns")
    for event in detail.events:
        time = "–" if offset is None else f"{wall_time(event.t_ns, int(offset)):%H:%M:%S.%f}"[:-3]
        table.add_row(time, event.source, event.level, event.message)
    return table
