"""The table of a run's roles in the live view: their newest values, sorted and filtered."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from labconsole.analysis.number_format import format_figure
from labconsole.model.trial import LiveChannel, LiveKind
from labconsole_ui.tables.record_table import DataTable, Field, RecordModel
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.live.growing_curves import natural
from labconsole_ui.views.live.live_run import LiveRun, rate_unit, rounded_rate
from labconsole_ui.views.live.role_rows import RoleRow, field_key, field_text, role_rows, state_fields
from labconsole_ui.widgets.labels import plain_label

SORT_AFTER_NS = 1_000_000_000
"""Rows are sorted again by values that change after this time, so that a row can be read and clicked."""


class RoleTable(QWidget):
    """The roles of one run; a line above filters them by name."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._channels: Sequence[LiveChannel] = ()
        self._states: list[tuple[str, str]] = []
        self._sorted_ns = 0
        self.filter_edit = QLineEdit(self)
        self.filter_edit.setPlaceholderText(self.tr("Filter roles"))
        self.filter_edit.setAccessibleName(self.tr("Filter roles by name"))
        self.filter_edit.setClearButtonEnabled(True)
        self.filter_edit.setMaximumWidth(260)
        self.filter_edit.textChanged.connect(self._filter)
        self.count_label = plain_label("", self)
        self.count_label.setProperty("muted", True)
        self.model: RecordModel[RoleRow] = RecordModel(role_fields((), ()), theme, self)
        self.table = DataTable(self.tr("Roles"), theme, self)
        self.table.setModel(self.model)
        self.table.setSortingEnabled(True)
        self.table.horizontalHeader().setSortIndicatorClearable(True)
        self.table.sortByColumn(-1, self.table.horizontalHeader().sortIndicatorOrder())
        head = QHBoxLayout()
        head.addWidget(self.filter_edit)
        head.addWidget(self.count_label, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.setSpacing(6)
        column.addLayout(head)
        column.addWidget(self.table, 1)

    def begin(self, channels: Sequence[LiveChannel]) -> None:
        """Start with another run, whose frames have values by role on these `channels`."""
        self._channels, self._states = channels, []
        self.model.set_records([])
        self.model.set_fields(role_fields(channels, ()))
        self.count_label.setText("")

    def show_roles(self, live: LiveRun) -> None:
        """Show the newest values of the run."""
        rows = role_rows(live)
        states = state_fields(rows, self._states)
        refit = states != self._states or len(rows) != self.model.total
        if states != self._states:
            self._states = states
            self.model.set_fields(role_fields(self._channels, states))
        now = live.latest.t_ns if live.latest is not None else 0
        sort = now - self._sorted_ns >= SORT_AFTER_NS
        self._sorted_ns = now if sort else self._sorted_ns
        self.model.update_records(rows, attrgetter("name"), sort=sort)
        self._count()
        if refit:
            self.table.fit_columns(260)

    @property
    def selected(self) -> str:
        """Name of the role whose row is selected, empty without one."""
        rows = self.table.selectionModel().selectedRows()
        return self.model.record(rows[0].row()).name if rows else ""

    def _filter(self, text: str) -> None:
        wanted = text.strip().casefold()
        self.model.set_filter((lambda row: wanted in row.name.casefold()) if wanted else None)
        self._count()

    def _count(self) -> None:
        shown, total = self.model.rowCount(), self.model.total
        text = self.tr("{0} roles") if shown == total else self.tr("{0} of {1} roles")
        self.count_label.setText(text.format(shown, total))


def role_fields(channels: Sequence[LiveChannel], states: Sequence[tuple[str, str]]) -> list[Field[RoleRow]]:
    """The columns: name, counts, rates, gauges, resources of the process, and fields of states."""
    tr = QCoreApplication.translate
    fields = [Field[RoleRow](tr("Roles", "Role"), lambda row: row.name, sort=lambda row: natural(row.name))]
    for channel in channels:
        match channel.kind:
            case LiveKind.GAUGE:
                fields.append(_gauge_field(channel))
            case LiveKind.TOTAL:
                fields += [_count_field(channel), _rate_field(channel)]
    titles = {channel.name: channel.title for channel in channels}
    return [
        *fields,
        _field(tr("Roles", "CPU"), lambda row: row.usage.cpu if row.usage is not None else None, "%"),
        _field(tr("Roles", "Memory"), lambda row: row.usage.rss if row.usage is not None else None, "B"),
        *(_state_field(entry, titles[entry[0]]) for entry in states),
    ]


def _gauge_field(channel: LiveChannel) -> Field[RoleRow]:
    return _field(channel.title, lambda row: row.gauges.get(channel.name), channel.unit)


def _count_field(channel: LiveChannel) -> Field[RoleRow]:
    return _field(channel.title, lambda row: row.counts.get(channel.name), "")


def _rate_field(channel: LiveChannel) -> Field[RoleRow]:
    title = QCoreApplication.translate("Roles", "{0}: rate").format(channel.title)
    return _field(title, lambda row: rounded_rate(row.rates.get(channel.name)), rate_unit(channel.unit))


def _field(title: str, value: Callable[[RoleRow], float | None], unit: str) -> Field[RoleRow]:
    def known(row: RoleRow) -> float | None:
        number = value(row)
        return None if number is None or math.isnan(number) else number

    return Field[RoleRow](title, lambda row: format_figure(value(row), unit), sort=known, right=True)


def _state_field(entry: tuple[str, str], channel_title: str) -> Field[RoleRow]:
    def key(row: RoleRow) -> tuple[int, float, str] | None:
        return field_key(row.fields[entry]) if row.fields.get(entry) is not None else None

    return Field[RoleRow](
        entry[1].replace("_", " ").capitalize(),
        lambda row: field_text(row.fields.get(entry)),
        sort=key,
        tooltip=lambda row: field_text(row.fields.get(entry), None),
        header_tooltip=channel_title,
    )
