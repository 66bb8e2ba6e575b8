"""Texts that several views share: status of runs, durations, times, rates."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.number_format import format_number
from labconsole.engine.queue import Activity, QueueItem, QueueState, ShownStatus
from labconsole.processes import Console
from labconsole.store.records import RunRow, RunStatus


def status_text(status: ShownStatus) -> str:
    """The status as one word."""
    tr = QCoreApplication.translate
    words: dict[ShownStatus, str] = {
        RunStatus.QUEUED: tr("Status", "Waiting"),
        RunStatus.RUNNING: tr("Status", "Running"),
        RunStatus.FINISHED: tr("Status", "Finished"),
        RunStatus.FAILED: tr("Status", "Failed"),
        RunStatus.CANCELLED: tr("Status", "Cancelled"),
        RunStatus.INTERRUPTED: tr("Status", "Interrupted"),
        Activity.CANCELLING: tr("Status", "Cancelling"),
        Activity.RECOVERING: tr("Status", "Recovering"),
    }
    return words[status]


STATUS_ICONS: dict[ShownStatus, tuple[str, str]] = {
    RunStatus.QUEUED: ("waiting", "muted"),
    RunStatus.RUNNING: ("running", "link"),
    RunStatus.FINISHED: ("good", "good"),
    RunStatus.FAILED: ("error", "bad"),
    RunStatus.CANCELLED: ("cancelled", "muted"),
    RunStatus.INTERRUPTED: ("warning", "warning"),
    Activity.CANCELLING: ("cancelled", "muted"),
    Activity.RECOVERING: ("running", "warning"),
}
"""Icon and the colour's meaning of each status."""


def run_status_text(run: RunRow, status: ShownStatus) -> str:
    """The `status` of a run as views show it: a finished run with incomplete data is named so."""
    checked = status is RunStatus.FINISHED and run.failed_checks
    return QCoreApplication.translate("Status", "Check failed") if checked else status_text(status)


def run_status_icon(run: RunRow, status: ShownStatus) -> tuple[str, str]:
    """Icon and the colour's meaning of a run with that `status`."""
    return ("warning", "bad") if status is RunStatus.FINISHED and run.failed_checks else STATUS_ICONS[status]


def queue_item_title(item: QueueItem) -> str:
    """A queue item in words: `Test 1, repeat 2 of 5`."""
    if item.repeats <= 1:
        return item.scenario
    text = QCoreApplication.translate("Queue", "{scenario}, repeat {repeat} of {repeats}")
    return text.format(scenario=item.scenario, repeat=item.repeat, repeats=item.repeats)


def console_name(console: Console) -> str:
    """Another console by process and host: `process 4711 on lab-pc`."""
    text = QCoreApplication.translate("Queue", "process {pid} on {host}")
    return text.format(pid=console.pid, host=console.host)


def progress_fraction(item: QueueItem) -> float | None:
    """The part of the item that is done, 0-1, or None if unknown."""
    if item.state is QueueState.DONE:
        return 1.0 if item.status is RunStatus.FINISHED else None
    if item.state is QueueState.WAITING:
        return 0.0
    return min(item.done / item.total, 1.0) if item.total else None


def duration(seconds: float | None) -> str:
    """`8 s`, `2 min 05 s`, `1 h 03 min`, or an empty text."""
    if seconds is None:
        return ""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def local_time(moment: datetime) -> str:
    """When something happened, in local time: `2025-05-20 14:03:12`."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"


def utc_time(moment: datetime) -> str:
    """When something happened, in UTC: `2025-05-20 12:03:12 UTC`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def rate_text(rate: float | None) -> str:
    """A rate of counts, `121,065/s`, or an empty text."""
    return f"{format_number(round(rate, 0 if rate >= 100 else 1))}/s" if rate else ""


def consecutive_ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each range of consecutive numbers."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def number_ranges(numbers: Iterable[int]) -> str:
    """Numbers in short: `1-4`, `1-3, 7`."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in consecutive_ranges(numbers))
