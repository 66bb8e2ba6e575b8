"""`labconsole runs` and `show`: the runs of the database."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence

from rich.table import Table

from labconsole.analysis.change import origin_words
from labconsole.analysis.comparison_notes import MARK, UNCERTAINTY
from labconsole.analysis.number_format import format_metric, row_scale
from labconsole.analysis.verdict_lines import preflight_lines
from labconsole.cli.database import open_database
from labconsole.cli.exit_codes import FINISHED
from labconsole.cli.terminal import output
from labconsole.clock import wall_time
from labconsole.model.metrics import Metric
from labconsole.model.plugin import Plugins
from labconsole.output.csv_export import flat_provenance
from labconsole.output.run_json import run_as_json
from labconsole.store.records import Evidence, RunDetail, RunRow, RunStatus, StoredArtefact, StoredAttachment


def runs(arguments: argparse.Namespace) -> int:
    """List all runs, newest first, with the key metrics of their trials."""
    marked = False
    with open_database(arguments.db) as reader:
        rows = reader.runs()
        names = _key_metrics(rows)
        table = Table("Run", "Status", "Profile", "Scenario", "Repeat", "Started (UTC)", "Seconds", *names, box=None)
        for row in rows:
            started = f"{row.started:%Y-%m-%d %H:%M:%S}" if row.started else "–"
            seconds = "–" if row.duration_s is None else f"{row.duration_s:.1f}"
            figures = [_figure(row.metrics.get(name)) for name in names]
            marked = marked or any(figure.endswith(MARK) for figure in figures)
            table.add_row(
                str(row.id), _status(row), row.profile, row.scenario, str(row.repeat), started, seconds, *figures
            )
    output().print(table)
    if marked:
        output().print(f"{MARK} not judged: `labconsole show RUN` gives the reason.")
    return FINISHED


def _key_metrics(rows: Sequence[RunRow]) -> list[str]:
    """Names of the metrics that the trials of these runs call their key metrics, of those that any run has."""
    plugins = Plugins.discover()
    trials = [plugins.installed(kind) for kind in dict.fromkeys(row.kind for row in rows)]
    names = dict.fromkeys(kind.name for trial in trials if trial is not None for kind in trial.key_kinds())
    return [name for name in names if any(name in row.metrics for row in rows)]


def _figure(metric: Metric | None) -> str:
    """A figure with its unit, and a mark where it is not judged."""
    if metric is None:
        return "–"
    return f"{format_metric(metric)}{f' {MARK}' if metric.not_judged else ''}"


def _status(row: RunRow) -> str:
    """The status; a run that did not finish has failed checks of its data for that reason alone."""
    return f"{row.status}, check failed" if row.failed_checks and row.status is RunStatus.FINISHED else row.status


def show(arguments: argparse.Namespace) -> int:
    """Show everything of one run but its samples."""
    with open_database(arguments.db) as reader:
        if arguments.json:
            print(json.dumps(run_as_json(reader, arguments.run), ensure_ascii=False))
        else:
            _print(
                reader.run(arguments.run),
                reader.evidence(arguments.run),
                reader.artefacts(arguments.run),
                reader.attachments(arguments.run).all(),
            )
    return FINISHED


def _print(
    detail: RunDetail,
    evidence: Evidence | None,
    artefacts: Sequence[StoredArtefact],
    attachments: Sequence[StoredAttachment],
) -> None:
    console, row = output(), detail.row
    console.print(f"Run {row.id}: {row.scenario}, repeat {row.repeat}, of {row.campaign}", style="bold")
    console.print(f"{row.kind}, {_status(row)}{f': {row.reason}' if row.reason else ''}")
    for warning in detail.warnings:
        console.print(f"Note: {warning}")
    table = Table("Metric", "Value", "Unit", "Samples", "Origin", box=None)
    for metric in detail.metrics:
        labels = ", ".join(f"{name} {value}" for name, value in metric.labels.items())
        name = f"{metric.name} ({labels})" if labels else metric.name
        scale = row_scale((metric.value,), metric.unit)
        table.add_row(
            name, scale.number(metric.value, metric.uncertainty), scale.unit, f"{metric.samples:,}", metric.origin
        )
    console.print(table)
    if any(metric.uncertainty for metric in detail.metrics):
        console.print(UNCERTAINTY)
    for reason in dict.fromkeys(metric.not_judged for metric in detail.metrics if metric.not_judged):
        names = ", ".join(dict.fromkeys(metric.name for metric in detail.metrics if metric.not_judged == reason))
        console.print(f"Not judged: {names}: {reason}.")
    lines = preflight_lines(detail.verdicts)
    for verdict in (lines.summary, *lines.open, *lines.folded, *lines.others):
        if verdict is not None:
            console.print(f"{verdict.result}: {verdict.name}: {verdict.reason}")
    changed = ", ".join(f"{name}={value}" for name, value in row.parameters.items() if value != "")
    console.print(f"Parameters: {changed}")
    if row.hosts:
        console.print(f"Hosts: {row.hosts}")
    if detail.sites:
        console.print(_sites(detail.sites))
    if detail.events:
        console.print(_events(detail))
    for kept in artefacts:
        console.print(f"Artefact: {kept.name}, {kept.media_type}, {kept.size:,} B")
    for attached in attachments:
        state = "complete" if attached.sha256 else "cut before its end"
        console.print(
            f"Attachment: {attached.name} from {attached.role}, {attached.media_type}, {attached.size:,} B, {state}"
        )
    if evidence is not None:
        console.print(f"Evidence: {evidence.digest}, sealed {evidence.sealed:%Y-%m-%d %H:%M:%S} UTC", soft_wrap=True)
    origin = origin_words(metric.origin for metric in detail.metrics)
    provenance = Table(f"{origin.capitalize()} with", "", box=None)
    for name, value in flat_provenance(detail):
        provenance.add_row(name, str(value))
    console.print(provenance)


def _sites(sites: Sequence[Mapping[str, str]]) -> Table:
    """The sites as columns, with a row for each of their fields."""
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
