"""The columns of the history, with the key figures of the trials that are installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QFontMetrics

from labconsole.analysis.number_format import NO_FIGURE, format_duration, format_metric
from labconsole.engine.queue import ShownStatus
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Metric, MetricKind
from labconsole.store.records import RunRow
from labconsole_ui.tables.record_table import Field
from labconsole_ui.views.history.run_model import CampaignHead
from labconsole_ui.views.history.undoable_changes import RunChanges
from labconsole_ui.widgets.status_text import local_time, run_status_icon, run_status_text, status_text, utc_time

USUAL_FIGURE = "1,234 ms"
ICON_ROOM = "0000"
TITLE_ROOM = " "
CELL_PADDING = 12


@dataclass(frozen=True)
class TrialColumns:
    """Titles of the trials by kind, and their key figures, which get columns."""

    titles: dict[str, str]
    metrics: tuple[MetricKind, ...]


def trial_columns(plugins: Plugins) -> TrialColumns:
    """The titles and figures of trials, which are imported: not for the window's thread."""
    titles: dict[str, str] = {}
    chosen: dict[str, MetricKind] = {}
    for kind in plugins.kinds():
        trial = plugins.installed(kind)
        titles[kind] = kind if trial is None else trial.title
        for metric in () if trial is None else trial.key_kinds():
            # Trials share a figure by its name; the shortest title says least of one of them.
            chosen[metric.name] = min(chosen.get(metric.name, metric), metric, key=lambda one: len(one.title))
    return TrialColumns(titles, tuple(chosen.values()))


def run_fields(known: TrialColumns, changes: RunChanges, shown: Callable[[RunRow], ShownStatus]) -> list[Field[RunRow]]:
    """The columns; `changes` writes edited notes and tags, `shown` gives the current status of a run."""
    translate = QCoreApplication.translate
    return [
        Field(
            translate("History", "Status"),
            lambda run: run_status_text(run, shown(run)),
            icon=lambda run: run_status_icon(run, shown(run)),
            tooltip=lambda run: " ".join(filter(None, (run.reason, *run.failed_checks))) or status_text(shown(run)),
            tone=lambda run: run_status_icon(run, shown(run))[1],
        ),
        Field(
            translate("History", "Run"),
            lambda run: str(run.id),
            sort=lambda run: run.id,
            right=True,
            icon=lambda run: ("pin", "link") if run.pinned else None,
            tooltip=lambda run: translate("History", "The baseline of its trial") if run.pinned else str(run.id),
        ),
        Field(translate("History", "Scenario"), lambda run: run.scenario, strong=lambda run: True),
        Field(translate("History", "Started"), started_text, sort=lambda run: run.started, tooltip=started_utc),
        Field(
            translate("History", "Duration"),
            lambda run: format_duration(run.duration_s),
            sort=lambda run: run.duration_s,
            right=True,
        ),
        *(_metric_field(kind) for kind in known.metrics),
        Field(translate("History", "Repeat"), lambda run: str(run.repeat), sort=lambda run: run.repeat, right=True),
        Field(translate("History", "Tags"), lambda run: ", ".join(run.tags), edit=changes.set_tags),
        Field(translate("History", "Note"), lambda run: run.note, edit=changes.set_note),
        Field(
            translate("History", "Campaign"),
            lambda run: run.campaign,
            tooltip=lambda run: f"{run.campaign} ({run.profile})",
        ),
        Field(translate("History", "Profile"), lambda run: run.profile),
        Field(translate("History", "Trial"), lambda run: known.titles.get(run.kind, run.kind)),
    ]


def head_fields(fields: Sequence[Field[RunRow]]) -> list[Field[CampaignHead]]:
    """The same columns for a campaign: number of runs, title, start, duration in all."""
    translate = QCoreApplication.translate

    def fold_hint(head: CampaignHead) -> str:
        return translate("History", "Show the runs") if head.folded else translate("History", "Fold the runs away")

    own: dict[str, Field[CampaignHead]] = {
        translate("History", "Status"): Field(
            "",
            lambda head: translate("History", "Runs: {0}").format(len(head.runs)),
            icon=lambda head: ("chevron-right" if head.folded else "chevron-down", "muted"),
            tooltip=fold_hint,
        ),
        translate("History", "Scenario"): Field(
            "", lambda head: head.title, strong=lambda head: True, tooltip=lambda head: f"{head.title} ({head.profile})"
        ),
        translate("History", "Started"): Field("", _first_start),
        translate("History", "Duration"): Field("", _duration_of_all, right=True),
        translate("History", "Profile"): Field("", lambda head: head.profile),
    }
    return [own.get(field.title, Field("", lambda head: "")) for field in fields]


def _first_start(head: CampaignHead) -> str:
    started = [run for run in head.runs if run.started is not None]
    return started_text(min(started, key=lambda run: run.started or run.created)) if started else NO_FIGURE


def _duration_of_all(head: CampaignHead) -> str:
    known = [run.duration_s for run in head.runs if run.duration_s is not None]
    return format_duration(sum(known)) if known else ""


def started_text(run: RunRow) -> str:
    """When the run started, in local time: `2025-05-20 14:03:12`."""
    return local_time(run.started) if run.started else NO_FIGURE


def started_utc(run: RunRow) -> str:
    """When the run started, in UTC."""
    return utc_time(run.started) if run.started else ""


def hidden_at_first() -> tuple[str, ...]:
    """Titles of the columns that are shown only when asked for."""
    return (QCoreApplication.translate("History", "Profile"),)


def column_of(fields: Sequence[Field[RunRow]], title: str) -> int:
    """The index of the column `title`. Raises ValueError."""
    return [field.title for field in fields].index(title)


def column_widths(fields: Sequence[Field[RunRow]], known: TrialColumns, metrics: QFontMetrics) -> list[int]:
    """Width of each column (px) for usual contents: a waiting run has no time and no figures yet."""
    translate = QCoreApplication.translate
    usual = {
        translate("History", "Status"): "Interrupted" + ICON_ROOM,
        translate("History", "Run"): "0000" + ICON_ROOM,
        translate("History", "Scenario"): "Test 4: TLS, signed, encrypted" + ICON_ROOM,
        translate("History", "Started"): "2025-05-20 14:03:12" + TITLE_ROOM,
        translate("History", "Duration"): "2 min 05 s",
        translate("History", "Tags"): "night, reference",
        translate("History", "Note"): "for the report of the year",
        translate("History", "Campaign"): "Demo: Tests 1-4, five rounds",
        translate("History", "Profile"): "swim-within-malaysia",
        translate("History", "Trial"): "AMQP 1.0 (SWIM)",
    }
    usual |= {kind.title: f"123,456 {kind.unit}" for kind in known.metrics if kind.unit.endswith("/s")}
    texts = [max(field.title + TITLE_ROOM, usual.get(field.title, USUAL_FIGURE), key=len) for field in fields]
    return [metrics.horizontalAdvance(text) + CELL_PADDING for text in texts]


def _metric_field(kind: MetricKind) -> Field[RunRow]:
    def metric(run: RunRow) -> Metric | None:
        return run.metrics.get(kind.name)

    def text(run: RunRow) -> str:
        found = metric(run)
        return format_metric(found) if found else ""

    def value(run: RunRow) -> float | None:
        found = metric(run)
        return found.value if found else None

    def not_judged(run: RunRow) -> str:
        found = metric(run)
        return found.not_judged if found else ""

    def hint(run: RunRow) -> str:
        reason = not_judged(run)
        return QCoreApplication.translate("History", "Not judged: {0}.").format(reason) if reason else text(run)

    return Field(
        kind.title,
        text,
        sort=value,
        right=True,
        tone=lambda run: "muted" if not_judged(run) else None,
        tooltip=hint,
        header_tooltip=kind.description,
    )
