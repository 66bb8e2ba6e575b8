"""Parts of a report around the figures: parameters, runs, verdicts, sites, environment, notes, evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from labconsole.analysis.comparison import Comparison, RunGroup
from labconsole.analysis.number_format import NO_FIGURE, format_duration, format_figure
from labconsole.analysis.parameter_texts import (
    ParameterValue,
    describe_hosts,
    describe_parameters,
    in_effect,
    value_text,
)
from labconsole.analysis.published_figures import PublishedColumn
from labconsole.analysis.verdict_lines import VerdictCell, preflight_folded
from labconsole.model.parameters import Parameters
from labconsole.model.series import Event
from labconsole.output.report.document import Align, Block, Fact, Facts, Head, Heading, Paragraph, Table, TextCell, Tone
from labconsole.output.report.report_data import ReportData
from labconsole.output.report.result_tables import column_head, parameter_tables, parts
from labconsole.store.records import RunRow, RunStatus

EVIDENCE = (
    "Everything that the database holds of a run (parameters, seed, provenance, events, figures, verdicts, and the "
    "hash chain over its samples) was sealed with one SHA-256 digest. It is printed here so that any later change "
    "shows: “labconsole verify RUN” computes it again from the database and compares."
)
NOT_AS_SEALED = "not as it was sealed"
_TITLES = {
    "console": "Lab console",
    "revision": "Revision of the console",
    "python": "Python",
    "implementation": "Python implementation",
    "host": "Computer",
    "os": "Operating system",
    "kernel": "Kernel",
    "machine": "Architecture",
    "cpu": "CPU",
    "cores": "Logical cores",
    "memory_bytes": "Memory",
    "load_average_before": "Load average before the run (1, 5, 15 min)",
    "clock": "Clock",
    "clock_source": "Clock source of the kernel",
    "live_view_hz": "Refresh rate of the live view, Hz",
    "live_view_hz_later": "Refresh rate of the live view later, Hz",
    "openssl.python": "OpenSSL (Python: TLS)",
    "openssl.cryptography": "OpenSSL (cryptography: signing, encrypting)",
}
_OF_ONE_RUN = ("seed", "wall_offset_ns")
"""Provenance that differs in every run: the seed is in the list of runs."""
_NEGOTIATED = {"container": "Peer (AMQP container)", "product": "Broker", "version": "Version of the broker"}
_NEGOTIATED |= {"tls": "TLS version, as negotiated", "cipher": "Cipher suite, as negotiated"}
"""Data of events on the other end, by their keys."""
_MOST_VALUES = 3
_VERDICTS = "Verdicts, drawn from recorded evidence"


def parameter_blocks(material: ReportData) -> Iterator[Block]:
    """Tables of parameters that differ, that are not the default, and the others, compactly."""
    yield from parameter_tables(material.measured)
    groups, several = material.groups, len(material.measured.columns) > 1
    differing = {line.name for line in material.measured.parameters if line.differs} if several else set()
    model = material.trial.parameters if material.trial is not None else None
    same = [
        value
        for value in describe_parameters(groups[0].parameters, model)
        if value.name not in differing and _plays_a_part(value.name, groups, model)
    ]
    if groups[0].hosts and "hosts" not in differing:
        same.append(describe_hosts(groups[0].hosts))
    changed = [value for value in same if value.changed]
    if changed:
        yield Heading("Changed from their defaults" if len(groups) == 1 else "The same in all, changed from defaults")
        yield Facts(tuple(Fact(value.title, _with_unit(value), Tone.STRONG) for value in changed))
    others = [value for value in same if not value.changed]
    if others:
        yield Heading("At their defaults" if model is not None else "Parameters, as stored")
        facts = tuple(Fact(value.title, _with_unit(value)) for value in others if value.text != NO_FIGURE)
        yield Facts(facts, compact=True)
        unset = [value.title for value in others if value.text == NO_FIGURE]
        if unset:
            yield Paragraph(f"Not set: {', '.join(unset)}.", Tone.MUTED)


def _plays_a_part(name: str, groups: Sequence[RunGroup], model: type[Parameters] | None) -> bool:
    """Whether a parameter has an effect in one of the scenarios."""
    top = name.partition(".")[0]
    return model is None or any(in_effect(top, group.parameters, model) for group in groups)


def run_list(rows: Sequence[RunRow]) -> Table:
    """Every run with its status, start, duration and seed; the reason why it did not finish is under its status."""
    heads = (
        Head("Run", "", Align.LEFT, 0.5),
        Head("Scenario", "", Align.LEFT, 1.8),
        Head("Repeat", "", Align.RIGHT, 0.7),
        Head("Status", "", Align.LEFT, 1.35),
        Head("Started", "UTC", Align.LEFT, 2.2),
        Head("Duration", "", Align.RIGHT, 1.25),
        Head("Seed", "", Align.RIGHT, 1.3),
    )
    return Table("The runs of this report", heads, tuple(map(_run_cells, rows)))


def verdict_tables(material: ReportData) -> list[Table]:
    """What passed and failed: of a single run with the reasons, otherwise counted over the repeats of each column; next
    to them what is published."""
    published = any(
        isinstance(column, PublishedColumn) and column.verdicts for column in material.with_published.columns
    )
    comparison = material.with_published if published else material.measured
    if not comparison.verdicts:
        return []
    if len(material.rows) == 1:
        return [_verdicts_of_run(comparison)]
    tables, lines = [], preflight_folded(comparison.verdicts)
    for part in parts(comparison):
        indices = [index for index in part if any(line.cells[index].result for line in lines)]
        rows = tuple(
            (TextCell(line.name, Tone.STRONG), *(_verdict_cell(line.cells[index]) for index in indices))
            for line in lines
            if any(line.cells[index].result for index in indices)
        )
        heads = (
            Head("Verdict", "", Align.LEFT, 1.5),
            *(column_head(comparison, index, Align.LEFT) for index in indices),
        )
        tables.append(Table(_VERDICTS, heads, rows, _sources(comparison, indices), inline=True))
    return tables


def site_table(material: ReportData) -> Table | None:
    """The sites of the profile, a column each; None where it names none."""
    sites = list({repr(site): site for detail in material.details for site in detail.sites}.values())
    if not sites:
        return None
    keys = dict.fromkeys(key for site in sites for key in site if key != "name")
    rows = tuple(
        (TextCell(key.replace("_", " ").capitalize(), Tone.MUTED), *(TextCell(_text(site.get(key))) for site in sites))
        for key in keys
    )
    heads = (Head("Site", "", Align.LEFT, 0.7), *(Head(_text(site.get("name")), "", Align.LEFT) for site in sites))
    return Table("Sites, as the profile names them", heads, rows)


def environment(material: ReportData) -> Facts:
    """The environment of the runs; where they differ, each value with its runs."""
    by_name: dict[str, dict[str, list[int]]] = {}
    for detail in material.details:
        for name, value in (*_environment(detail.provenance), *dict.fromkeys(_negotiated(detail.events))):
            by_name.setdefault(name, {}).setdefault(value, []).append(detail.row.id)
    everything = len(material.rows)
    facts = tuple(Fact(name, _over_runs(values, everything)) for name, values in by_name.items())
    return Facts(facts, compact=True)


def notes(rows: Sequence[RunRow]) -> Iterator[Block]:
    """Notes and tags that the operator put on the runs."""
    for row in rows:
        if row.note or row.tags:
            tags = f" [{', '.join(row.tags)}]" if row.tags else ""
            yield Heading(f"Run {row.id}: {row.scenario}{tags}")
        if row.note:
            yield Paragraph(row.note)


def evidence_table(material: ReportData) -> Table:
    """The digest of each run in full, with the run's id everywhere (UUID), when it was sealed, and if it is changed."""
    rows = []
    for row in material.rows:
        sealed = material.evidence[row.id]
        rows.append(
            (
                TextCell(str(row.id)),
                TextCell(sealed.digest if sealed else "not sealed", Tone.CODE, ((row.uuid, Tone.CODE),)),
                TextCell(
                    f"{sealed.sealed:%Y-%m-%d %H:%M:%S}" if sealed else NO_FIGURE,
                    details=((NOT_AS_SEALED, Tone.BAD),) if row.id in material.changed else (),
                ),
            )
        )
    heads = (
        Head("Run", "", Align.LEFT, 0.5),
        Head("SHA-256 digest", "UUID of the run", Align.LEFT, 4.0),
        Head("Sealed", "UTC", Align.LEFT, 1.5),
    )
    return Table("Evidence digests", heads, tuple(rows))


def run_span(run_ids: Sequence[int]) -> str:
    """Numbers of runs in words: `run 7`, `runs 1–5, 9`."""
    spans: list[list[int]] = []
    for run_id in sorted(run_ids):
        if spans and run_id == spans[-1][1] + 1:
            spans[-1][1] = run_id
        else:
            spans.append([run_id, run_id])
    texts = [str(first) if first == last else f"{first}–{last}" for first, last in spans]
    return f"{'run' if len(run_ids) == 1 else 'runs'} {', '.join(texts)}"


def _with_unit(value: ParameterValue) -> str:
    return f"{value.text} {value.unit}".strip() if value.text != NO_FIGURE else value.text


def _run_cells(row: RunRow) -> tuple[TextCell, ...]:
    finished = row.status is RunStatus.FINISHED
    reason = ((row.reason, Tone.MUTED),) if row.reason and not finished else ()
    return (
        TextCell(str(row.id), Tone.STRONG),
        TextCell(row.scenario),
        TextCell(str(row.repeat)),
        TextCell(row.status.value, Tone.PLAIN if finished else Tone.BAD, reason),
        TextCell(f"{row.started:%Y-%m-%d %H:%M:%S}" if row.started else NO_FIGURE),
        TextCell(format_duration(row.duration_s)),
        TextCell(str(row.seed)),
    )


def _verdicts_of_run(comparison: Comparison) -> Table:
    """The verdicts of the only run with their reasons, and what is published in columns of their own."""
    run = next(index for index, column in enumerate(comparison.columns) if isinstance(column, RunGroup))
    others = [
        index
        for index in range(len(comparison.columns))
        if index != run and any(line.cells[index].result for line in comparison.verdicts)
    ]
    rows = tuple(
        (
            TextCell(line.name, Tone.STRONG),
            result_cell(line.cells[run].result, line.cells[run].text),
            TextCell(line.cells[run].reason),
            *(_verdict_cell(line.cells[index]) for index in others),
        )
        for line in comparison.verdicts
    )
    heads = (
        Head("Verdict", "", Align.LEFT, 1.5),
        Head("Result", "", Align.LEFT, 0.6),
        Head("Reason", "", Align.LEFT, 2.4),
        *(column_head(comparison, index, Align.LEFT) for index in others),
    )
    return Table(_VERDICTS, heads, rows, _sources(comparison, others))


def _sources(comparison: Comparison, indices: Sequence[int]) -> tuple[str, ...]:
    """The places of the published columns in their source."""
    columns = [comparison.columns[index] for index in indices]
    return tuple(f"{one.title}: {one.reference}." for one in columns if isinstance(one, PublishedColumn))


def _verdict_cell(cell: VerdictCell) -> TextCell:
    """How many of a column's runs passed, and why the first of the others did not; or what is published."""
    reason = ((cell.reason, Tone.MUTED),) if cell.reason and cell.result != "pass" else ()
    agrees = {None: (), True: (("as ours", Tone.MUTED),), False: (("not as ours", Tone.MUTED),)}[cell.agrees]
    return result_cell(cell.result, cell.text, (*reason, *agrees))


def result_cell(result: str, text: str, details: tuple[tuple[str, Tone], ...] = ()) -> TextCell:
    """A cell of `text` that is marked as bad if one result is, and as good if all are."""
    if result == "fail":
        return TextCell(f"✗ {text}", Tone.BAD, details)
    if result == "pass":
        return TextCell(f"✓ {text}", Tone.GOOD, details)
    if result == "warning":
        return TextCell(f"! {text}", Tone.STRONG, details)
    return TextCell(text, Tone.MUTED, details)


def _environment(provenance: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    order = list(_TITLES)
    for key in sorted(provenance, key=lambda key: order.index(key) if key in order else len(order)):
        value = provenance[key]
        if key in _OF_ONE_RUN:
            continue
        if key == "packages" and isinstance(value, Mapping):
            yield "Packages", ", ".join(f"{name} {version}" for name, version in value.items())
        elif key == "hosts" and isinstance(value, Mapping):
            for name, host in value.items():
                yield f"Host {name}", _host(host)
        elif isinstance(value, Mapping):
            for inner, text in value.items():
                dotted = f"{key}.{inner}"
                yield _TITLES.get(dotted, dotted.replace("_", " ")), _text(text)
        else:
            text = format_figure(value, "B") if key == "memory_bytes" else _text(value)
            yield _TITLES.get(key, key.replace("_", " ")), text


def _host(found: Mapping[str, Any]) -> str:
    """Another host with roles of a run, in a line."""
    load = ", ".join(f"{load:g}" for load in found["load_average_before"])
    return "; ".join(
        (
            f"console {found['console']} ({found['revision']}), Python {found['python']}",
            f"{found['os']}, kernel {found['kernel']}",
            f"{found['cpu']}, {found['cores']} cores, {format_figure(found['memory_bytes'], 'B')}",
            f"load before {load}",
            f"clock {found['clock_domain']}, {found['clock_source']}",
        )
    )


def _negotiated(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    for event in events:
        for key, title in _NEGOTIATED.items():
            if event.data.get(key):
                yield title, _text(event.data[key])


def _over_runs(values: Mapping[str, Sequence[int]], everything: int) -> str:
    """The value, or each with its runs; of many, the first few."""
    if len(values) == 1 and len(next(iter(values.values()))) == everything:
        return next(iter(values))
    shown = [f"{value} ({run_span(sorted(set(runs)))})" for value, runs in list(values.items())[:_MOST_VALUES]]
    left = len(values) - len(shown)
    return "; ".join(shown) + (f"; and {left} other values" if left > 0 else "")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(f"{item:g}" if isinstance(item, float) else _text(item) for item in value)
    return value if isinstance(value, str) else value_text(value)
