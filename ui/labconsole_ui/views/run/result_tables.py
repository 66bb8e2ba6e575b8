"""Rows and columns of the tables of a run view: metrics, parameters, verdicts, events, provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.caveats import too_few
from labconsole.analysis.comparison_notes import UNCERTAINTY
from labconsole.analysis.number_format import format_metric
from labconsole.analysis.parameter_texts import ParameterValue
from labconsole.model.trial import Direction, Event, Level, Metric, MetricKind, Trial, Verdict
from labconsole_ui.tables.record_table import Field

translate = QCoreApplication.translate

VERDICT_ICONS = {
    "pass": ("good", "good"),
    "fail": ("error", "bad"),
    "warning": ("warning", "warning"),
    "not applicable": ("info", "muted"),
}
LEVEL_ICONS = {Level.INFO: ("info", "muted"), Level.WARNING: ("warning", "warning"), Level.ERROR: ("error", "bad")}


@dataclass(frozen=True)
class MetricRow:
    """A figure with its description."""

    metric: Metric
    kind: MetricKind

    @property
    def title(self) -> str:
        """The metric's title and labels."""
        labels = ", ".join(f"{name} {value}" for name, value in self.metric.labels.items())
        return f"{self.kind.title} ({labels})" if labels else self.kind.title

    @property
    def not_judged(self) -> str:
        """Why the figure is not judged; empty where it may be."""
        few = "" if self.kind.quantile is None else too_few(self.metric.samples, self.kind.quantile)
        return self.metric.not_judged or few

    @property
    def better(self) -> str:
        """The better direction, as the trial declares it now, also for older runs."""
        return direction_text(self.kind.direction)


def metric_rows(metrics: tuple[Metric, ...], trial: Trial[Any] | None) -> list[MetricRow]:
    """Metrics with the trial's descriptions; one that it does not describe has its name as title."""
    known = {kind.name: kind for kind in trial.metrics} if trial is not None else {}
    return [
        MetricRow(
            metric,
            known.get(metric.name)
            or MetricKind(metric.name, metric.name.replace("_", " "), metric.unit, metric.direction, ""),
        )
        for metric in metrics
    ]


def direction_text(direction: Direction) -> str:
    """The better direction, as an arrow with a word."""
    return {
        Direction.HIGHER: translate("RunView", "↑ higher is better"),
        Direction.LOWER: translate("RunView", "↓ lower is better"),
        Direction.NEUTRAL: "",
    }[direction]


def metric_fields() -> list[Field[MetricRow]]:
    """The columns of the metrics table."""
    return [
        Field(translate("RunView", "Metric"), lambda row: row.title, tooltip=_definition),
        Field(
            translate("RunView", "Value"),
            lambda row: format_metric(row.metric),
            sort=lambda row: row.metric.value,
            right=True,
            tone=lambda row: "muted" if row.not_judged else None,
            tooltip=lambda row: "\n".join(filter(None, (_exact(row.metric), _why(row)))),
            strong=lambda row: not row.not_judged,
        ),
        Field(
            translate("RunView", "Samples"),
            lambda row: f"{row.metric.samples:,}" if row.metric.samples else "",
            sort=lambda row: row.metric.samples,
            right=True,
            tone=lambda row: "muted" if row.not_judged else None,
            tooltip=lambda row: _why(row) or (f"{row.metric.samples:,}" if row.metric.samples else ""),
        ),
        Field(translate("RunView", "Origin"), lambda row: row.metric.origin.value),
        Field(
            translate("RunView", "Better"),
            lambda row: translate("RunView", "not judged") if row.not_judged else row.better[:1],
            tone=lambda row: "muted" if row.not_judged else None,
            tooltip=lambda row: _why(row) or row.better,
        ),
    ]


def _definition(row: MetricRow) -> str:
    return row.kind.description or row.title


def _exact(metric: Metric) -> str:
    """The figure with all of its digits; where it has an uncertainty, what that is."""
    value = f"{metric.value!r} {metric.unit}".strip()
    return f"{value} ± {metric.uncertainty!r} {metric.unit}\n{UNCERTAINTY}" if metric.uncertainty else value


def _why(row: MetricRow) -> str:
    """Why the figure is not judged, as a sentence; empty where it may be."""
    return translate("RunView", "Not judged: {0}.").format(row.not_judged) if row.not_judged else ""


def parameter_fields() -> list[Field[ParameterValue]]:
    """The columns of the parameters table."""
    return [
        Field(
            translate("RunView", "Parameter"),
            lambda value: value.title,
            tooltip=lambda value: value.description or value.name,
        ),
        Field(
            translate("RunView", "Value"),
            lambda value: f"{value.text} {value.unit}".strip() if value.text != "–" else value.text,
            strong=lambda value: value.changed,
        ),
        Field(
            translate("RunView", "Default"),
            lambda value: translate("RunView", "changed") if value.changed else "",
            tone=lambda value: "link",
            tooltip=lambda value: translate("RunView", "Differs from the trial's default") if value.changed else "",
        ),
    ]


def verdict_fields() -> list[Field[Verdict]]:
    """The columns of the verdicts table."""
    words = {
        "pass": translate("RunView", "Pass"),
        "fail": translate("RunView", "Fail"),
        "unknown": translate("RunView", "Unknown"),
        "warning": translate("RunView", "Warning"),
        "not applicable": translate("RunView", "n/a"),
    }
    return [
        Field(
            translate("RunView", "Verdict"),
            lambda verdict: words.get(verdict.result, verdict.result),
            icon=lambda verdict: VERDICT_ICONS.get(verdict.result, ("help", "muted")),
            tone=lambda verdict: VERDICT_ICONS.get(verdict.result, ("help", "muted"))[1],
        ),
        Field(translate("RunView", "Name"), lambda verdict: verdict.name),
        Field(
            translate("RunView", "Reason"),
            lambda verdict: verdict.reason,
            tooltip=lambda verdict: "\n".join([verdict.reason, *_lines(verdict.evidence)]),
        ),
    ]


def event_fields(begin_ns: int) -> list[Field[Event]]:
    """The columns of the events table; times are since `begin_ns`."""
    levels = {
        Level.INFO: translate("RunView", "Info"),
        Level.WARNING: translate("RunView", "Warning"),
        Level.ERROR: translate("RunView", "Error"),
    }
    return [
        Field(
            translate("RunView", "Since T0"),
            lambda event: f"{(event.t_ns - begin_ns) / 1e9:+,.3f} s",
            sort=lambda event: event.t_ns,
            right=True,
        ),
        Field(
            translate("RunView", "Level"),
            lambda event: levels[event.level],
            icon=lambda event: LEVEL_ICONS[event.level],
            tone=lambda event: LEVEL_ICONS[event.level][1],
        ),
        Field(translate("RunView", "Source"), lambda event: event.source),
        Field(
            translate("RunView", "Message"),
            lambda event: event.message,
            tooltip=lambda event: "\n".join([event.message, *_lines(event.data)]),
        ),
    ]


def provenance_fields() -> list[Field[tuple[str, str]]]:
    """The columns of the provenance table."""
    return [
        Field(translate("RunView", "What"), lambda entry: entry[0]),
        Field(translate("RunView", "Value"), lambda entry: entry[1]),
    ]


def provenance_rows(provenance: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Provenance flattened to (name, text) pairs; nested names are dotted."""
    rows: list[tuple[str, str]] = []
    for name, value in provenance.items():
        if isinstance(value, Mapping):
            rows += provenance_rows(value, f"{prefix}{name}.")
        else:
            rows.append((f"{prefix}{name}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    return rows


def _lines(values: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {value}" for name, value in values.items()]
