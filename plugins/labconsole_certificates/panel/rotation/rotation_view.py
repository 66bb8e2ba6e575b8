"""The rotation tab: certificates that expire within 90, 30 or 7 days, and the plan of each rotation, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QSplitter, QVBoxLayout, QWidget

from labconsole.model.operation import Operation
from labconsole.security.certificate_status import NOTICES
from labconsole.security.pki.records import RotationRecord, State
from labconsole_certificates.panel.form_editors import fixed
from labconsole_certificates.panel.rotation.plan_card import PlanCard
from labconsole_certificates.panel.rotation.rotation_rows import RotatingRow, fields, rows_of, under_way
from labconsole_certificates.panel.tab import DatabaseReading, Tab, TabServices, TabWork
from labconsole_certificates.rotation.plan import RotationPlan, RotationStep, RotationStepKind
from labconsole_certificates.rotation.rotation_operations import AdoptSuccessor, CancelRotation, ConfirmRotation
from labconsole_ui.tables.record_table import DataTable, RecordModel


class RotationView(Tab):
    """The tab; each step is an action of the console, so that a running trial can be rotated, too."""

    key: ClassVar[str] = "rotation"
    chapter: ClassVar[str] = "how-to/rotate-a-certificate.md"
    icon: ClassVar[str] = "rotation"

    def __init__(self, services: TabServices, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self._tab_work = TabWork(services, self)
        self._rows: tuple[RotatingRow, ...] = ()
        self._days: int | None = None
        self._chosen: int | None = None
        self._wanted: int | None = None
        theme = services.page.theme
        self.filters: dict[int | None, QPushButton] = {}
        self._group = QButtonGroup(self)
        line = QHBoxLayout()
        line.setSpacing(6)
        for days in (None, *reversed(NOTICES)):
            button = QPushButton(self)
            button.setCheckable(True)
            button.setChecked(days is None)
            button.clicked.connect(lambda _checked, days=days: self._filter(days))
            self._group.addButton(button)
            self.filters[days] = button
            line.addWidget(button)
        line.addStretch(1)
        self.model = RecordModel(fields(), theme, self)
        self.table = DataTable(self.tr("What can be rotated"), theme, self, fit_width=True)
        self.table.setModel(self.model)
        self.table.setSelectionMode(DataTable.SelectionMode.SingleSelection)
        self.table.selectionModel().currentRowChanged.connect(self._row_chosen)
        self.card = PlanCard(theme, self)
        self.card.begin_wanted.connect(self._begin)
        self.card.step_wanted.connect(self._step)
        self.card.confirm_wanted.connect(self._confirm)
        self.card.cancel_wanted.connect(self._cancel)
        splitter = QSplitter(Qt.Orientation.Horizontal, self)
        splitter.setChildrenCollapsible(False)
        splitter.setHandleWidth(12)
        splitter.addWidget(self.table)
        splitter.addWidget(self.card)
        splitter.setStretchFactor(0, 2)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([680, 360])
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 12)
        column.setSpacing(8)
        column.addLayout(line)
        column.addWidget(splitter, 1)
        self._name_filters()

    def refresh(self, reading: DatabaseReading) -> None:
        """Show expiring certificates and plans as they are now."""
        self._tab_work.submit(partial(rows_of, reading.snapshot, reading.at), self._show)

    def take(self, paths: Sequence[Path]) -> None:
        """Ignored: no file belongs here."""

    def choose(self, certificate: int) -> None:
        """Choose the certificate of this id, as soon as it is in the table."""
        self._wanted = certificate
        self.filters[None].setChecked(True)
        self._filter(None)

    def _show(self, rows: tuple[RotatingRow, ...]) -> None:
        self._rows = rows
        self._name_filters()
        self._fill()

    def _fill(self) -> None:
        days = self._days
        shown = [row for row in self._rows if days is None or (row.notice is not None and row.notice <= days)]
        self.model.set_records(shown)
        self.table.fit_columns()
        ids = [row.record.id for row in self.model.records()]
        if self._wanted in ids:
            self._chosen, self._wanted = self._wanted, None
        if self._chosen not in ids:
            busy = [row.record.id for row in shown if under_way(row)]
            self._chosen = next(iter(busy or ids), None)
        if self._chosen is None:
            self.card.show_row(None, self._empty_text())
            return
        place = ids.index(self._chosen)
        self.table.selectRow(place)
        self.card.show_row(self.model.record(place))

    def _empty_text(self) -> str:
        """The hint for an empty list."""
        if self._rows:
            return self.tr("Nothing runs out within {days} days.").format(days=self._days)
        return self.tr("No certificate has its key here yet: create your CA in the tab “Certificates” first.")

    def _name_filters(self) -> None:
        for days, button in self.filters.items():
            if days is None:
                button.setText(self.tr("All ({count})").format(count=len(self._rows)))
            else:
                count = sum(row.notice is not None and row.notice <= days for row in self._rows)
                button.setText(self.tr("Within {days} days ({count})").format(days=days, count=count))

    def _filter(self, days: int | None) -> None:
        self._days = days
        self._fill()

    def _row_chosen(self, current: QModelIndex, _before: QModelIndex) -> None:
        if current.isValid():
            row = self.model.record(current.row())
            self._chosen = row.record.id
            self.card.show_row(row)

    def _begin(self, row: RotatingRow) -> None:
        sha256 = row.record.sha256
        self.services.open_action(
            "certificates.rotation-begin", {"certificate": sha256}, {"certificate": fixed(sha256, row.name)}
        )

    def _step(self, plan: RotationPlan, step: RotationStep) -> None:
        rotation = plan.rotation
        match step.kind:
            case RotationStepKind.PREPARE:
                self._open("certificates.rotation-prepare", rotation, step)
            case RotationStepKind.SWITCH:
                self._open("certificates.rotation-switch", rotation, step)
            case RotationStepKind.FINISH:
                self._open("certificates.rotation-finish", rotation, step)
            case RotationStepKind.ADOPT:
                self._perform(AdoptSuccessor(), rotation)
            case RotationStepKind.CONFIRM:
                pass  # peers confirm one by one

    def _open(self, action: str, rotation: RotationRecord, step: RotationStep) -> None:
        name = next((row.name for row in self._rows if row.record.id == rotation.certificate), step.title)
        self.services.open_action(action, {"rotation": rotation.id}, {"rotation": fixed(rotation.id, name)})

    def _confirm(self, plan: RotationPlan, peer: State) -> None:
        self._perform(ConfirmRotation(), plan.rotation, peer=peer.name)

    def _cancel(self, plan: RotationPlan) -> None:
        self._perform(CancelRotation(), plan.rotation)

    def _perform(self, step: Operation[Any], rotation: RotationRecord, **values: str) -> None:
        self._tab_work.perform(step, {"rotation": rotation.id, **values}, lambda _plan: None)
