"""The filters above the history: words, state, trial, trash."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QPushButton, QWidget

from labconsole.store.records import RunRow, RunStatus
from labconsole_ui.history import query
from labconsole_ui.words import status_word


class HistoryFilters(QWidget):
    """Says by `changed` that other runs are wanted, and which ones by `condition`."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = QLineEdit(self)
        self.search.setPlaceholderText(self.tr("Find runs: words, status:failed, tag:night, kind:amqp, run:12"))
        self.search.setAccessibleName(self.tr("Filter the runs"))
        self.search.setClearButtonEnabled(True)
        self.status_box = QComboBox(self)
        self.status_box.setAccessibleName(self.tr("Status of the runs"))
        self.status_box.addItem(self.tr("All states"), "")
        for status in RunStatus:
            self.status_box.addItem(status_word(status), status.value)
        self.kind_box = QComboBox(self)
        self.kind_box.setAccessibleName(self.tr("Trial of the runs"))
        self.kind_box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.kind_box.setMinimumContentsLength(11)
        self.kind_box.addItem(self.tr("All trials"), "")
        self.trash_button = QPushButton(self.tr("Trash"), self)
        self.trash_button.setCheckable(True)
        self.trash_button.setToolTip(self.tr("Show the runs in the trash"))
        self.search.textChanged.connect(self.changed)
        self.status_box.currentIndexChanged.connect(self.changed)
        self.kind_box.currentIndexChanged.connect(self.changed)
        self.trash_button.toggled.connect(self.changed)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.search, 1)
        self.search.setMinimumWidth(140)
        self.kind_box.setMinimumWidth(110)
        for widget in (self.status_box, self.kind_box, self.trash_button):
            row.addWidget(widget)

    @property
    def trash(self) -> bool:
        """Whether the trash is shown."""
        return self.trash_button.isChecked()

    def set_kinds(self, titles: Mapping[str, str]) -> None:
        """Offer these trials: titles by kind."""
        chosen = self.kind_box.currentData()
        self.kind_box.blockSignals(True)
        self.kind_box.clear()
        self.kind_box.addItem(self.tr("All trials"), "")
        for kind, title in titles.items():
            self.kind_box.addItem(title, kind)
        self.kind_box.setCurrentIndex(max(0, self.kind_box.findData(chosen)))
        self.kind_box.blockSignals(False)

    def clear(self) -> None:
        """Ask for all runs that are not in the trash, or all that are."""
        self.search.clear()
        self.status_box.setCurrentIndex(0)
        self.kind_box.setCurrentIndex(0)

    def condition(self, haystacks: Mapping[int, str]) -> Callable[[RunRow], bool]:
        """Whether a run is wanted; `haystacks` holds `query.searchable` texts by id that are known already."""
        terms = query.parse(self.search.text())
        status, kind, trash = self.status_box.currentData(), self.kind_box.currentData(), self.trash

        def accepted(run: RunRow) -> bool:
            return (
                run.trashed == trash
                and (not status or run.status.value == status)
                and (not kind or run.kind == kind)
                and (not terms or query.accepts(terms, run, haystacks.get(run.id) or query.searchable(run)))
            )

        return accepted
