"""The reference page of a trial: parameters, metrics, samples, live values and commands, from its definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from labconsole.model.series import LiveKind, Series
from labconsole.model.trial import MetricKind, Trial
from labconsole.reference.markdown import code, page, sentence, table
from labconsole.reference.parameters import parameter_tables


def trial_page_name(kind: str) -> str:
    """The page of a trial in the documentation."""
    return f"reference/trial-{kind.replace('.', '-')}.md"


def trial_page(trial: Trial[Any]) -> str:
    """Everything that the trial says of itself."""
    return page(
        f"# {trial.title}",
        f"Kind of trial: {code(trial.kind)}. {sentence(trial.description)}",
        "## Parameters",
        "As keys of `[parameters]` in a profile, and of `labconsole run PROFILE --set KEY=VALUE`.",
        parameter_tables(trial.parameters),
        "## Metrics",
        f"Lists of runs show {', '.join(metric.title.lower() for metric in trial.key_kinds())}.",
        table(("Metric", "Title", "Unit", "Better", "Definition"), map(_metric_row, trial.metrics)),
        *_series(trial),
        *_live(trial),
        *_commands(trial),
    )


def _metric_row(metric: MetricKind) -> tuple[str, ...]:
    judged = " Judged only at the same offered rate." if metric.at_rate else ""
    definition = f"{sentence(metric.description)}{judged}"
    return code(metric.name), metric.title, metric.unit, str(metric.direction), definition


def _series(trial: Trial[Any]) -> Iterator[str]:
    if not trial.series:
        return
    yield "## Samples"
    yield "Series of samples that a run stores, and that an export writes."
    for series in trial.series:
        yield f"### {series.name}"
        yield f"{sentence(series.title)} Origin: {series.origin}."
        yield table(("Column", "Title", "Type", "Unit"), _columns(series))


def _columns(series: Series) -> Iterator[tuple[str, ...]]:
    for column in series.columns:
        yield code(column.name), column.title, code(column.dtype), column.unit


def _live(trial: Trial[Any]) -> Iterator[str]:
    if not trial.live:
        return
    yield "## Live values"
    kinds = {LiveKind.TOTAL: "sum over the roles", LiveKind.GAUGE: "number of each role", LiveKind.STATE: "state"}
    yield table(
        ("Channel", "Title", "Unit", "Values"),
        (
            (code(channel.name), channel.title, channel.unit, kinds[channel.kind] + ", by role" * channel.by_role)
            for channel in trial.live
        ),
    )


def _commands(trial: Trial[Any]) -> Iterator[str]:
    if not trial.commands:
        return
    yield "## Commands into a run"
    for command in trial.commands:
        receivers = f" Sent to one of the roles {', '.join(map(code, command.roles))}." if command.roles else ""
        yield f"### {command.title}"
        yield f"Recorded as {code(command.name)}. {sentence(command.description)}{receivers}"
        yield parameter_tables(command.parameters)
