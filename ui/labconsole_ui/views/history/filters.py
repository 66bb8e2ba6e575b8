"""The filters above the history: words, trash, and a panel for state, trial, profile and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from labconsole.clock import wall_now
from labconsole.safe_text import shown_lines
from labconsole.store.records import RunRow, RunStatus
from labconsole_ui.views.history import filter_query
from labconsole_ui.widgets.status_text import status_text

MIN_SEARCH_WIDTH = 140
BOX_WIDTH = 210


class HistoryFilters(QWidget):
    """The filters; `changed` is emitted when other runs are wanted, those that meet `condition`."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.search = QLineEdit(self)
        self.search.setPlaceholderText(self.tr("Find runs: words, tag:night, after:2026-11-01, run:12"))
        self.search.setToolTip(
            self.tr(
                "Words are looked for everywhere. For one field: status:failed tag:night kind:amqp profile:demo "
                "scenario:tls note:report run:12. For days: after:2026-11-01 before:2026-12 on:2026-11-05."
            )
        )
        self.search.setAccessibleName(self.tr("Filter the runs"))
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(MIN_SEARCH_WIDTH)
        self.panel = FilterPanel(self)
        self.panel_button = QPushButton(self.tr("Filter"), self)
        self.panel_button.setToolTip(self.tr("Show only runs of a state, trial, profile or time"))
        self.panel_button.clicked.connect(self._open_panel)
        self.trash_button = QPushButton(self.tr("Trash"), self)
        self.trash_button.setCheckable(True)
        self.trash_button.setToolTip(self.tr("Show the runs in the trash"))
        self.search.textChanged.connect(self.changed)
        self.panel.changed.connect(self._panel_changed)
        self.trash_button.toggled.connect(self.changed)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.search, 1)
        row.addWidget(self.panel_button)
        row.addWidget(self.trash_button)

    @property
    def trash(self) -> bool:
        """Whether the trash is shown."""
        return self.trash_button.isChecked()

    def clear(self) -> None:
        """Ask for all runs that are not in the trash, or all that are."""
        self.search.clear()
        self.panel.clear()

    def condition(self, haystacks: Mapping[int, str]) -> Callable[[RunRow], bool]:
        """Whether a run is wanted; `haystacks` holds `query.searchable` texts by id that are known already."""
        terms, trash, chosen = filter_query.parse(self.search.text()), self.trash, self.panel.condition()

        def accepted(run: RunRow) -> bool:
            return (
                run.trashed == trash
                and chosen(run)
                and (
                    not terms or filter_query.accepts(terms, run, haystacks.get(run.id) or filter_query.searchable(run))
                )
            )

        return accepted

    def _open_panel(self) -> None:
        corner = self.panel_button.mapToGlobal(QPoint(0, self.panel_button.height() + 2))
        self.panel.adjustSize()
        room = self.screen().availableGeometry()
        if corner.y() + self.panel.height() > room.bottom():
            corner.setY(self.panel_button.mapToGlobal(QPoint(0, 0)).y() - self.panel.height() - 2)
        corner.setX(min(corner.x(), room.right() - self.panel.width()))
        self.panel.move(corner)
        self.panel.show()
        self.panel.status_box.setFocus(Qt.FocusReason.PopupFocusReason)

    def _panel_changed(self) -> None:
        active = self.panel.active
        self.panel_button.setText(self.tr("Filter ({0})").format(active) if active else self.tr("Filter"))
        self.changed.emit()


class FilterPanel(QFrame):
    """Choices of state, trial, profile and time, over the window while they are made."""

    changed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setProperty("card", True)
        self.status_box = self._box(self.tr("Status of the runs"))
        self.kind_box = self._box(self.tr("Trial of the runs"))
        self.profile_box = self._box(self.tr("Profile of the runs"))
        self.time_box = self._box(self.tr("When the runs started"))
        _offer(self.status_box, self.tr("All states"), {status.value: status_text(status) for status in RunStatus})
        self.set_kinds({})
        self.set_profiles(())
        self.time_box.addItem(self.tr("Any time"), 0)
        self.time_box.addItem(self.tr("Today"), 1)
        self.time_box.addItem(self.tr("Last 7 days"), 7)
        self.time_box.addItem(self.tr("Last 30 days"), 30)
        self.clear_button = QPushButton(self.tr("Clear"))
        self.clear_button.clicked.connect(self.clear)
        form = QFormLayout(self)
        form.setContentsMargins(16, 14, 16, 14)
        form.setSpacing(8)
        form.addRow(self.tr("&Status"), self.status_box)
        form.addRow(self.tr("&Trial"), self.kind_box)
        form.addRow(self.tr("&Profile"), self.profile_box)
        form.addRow(self.tr("St&arted"), self.time_box)
        form.addRow("", self.clear_button)

    @property
    def active(self) -> int:
        """Number of choices that exclude runs."""
        return sum(box.currentIndex() > 0 for box in self._boxes)

    @property
    def _boxes(self) -> tuple[QComboBox, ...]:
        return self.status_box, self.kind_box, self.profile_box, self.time_box

    def set_kinds(self, titles: Mapping[str, str]) -> None:
        """Offer these trials: titles by kind."""
        _offer(self.kind_box, self.tr("All trials"), titles)

    def set_profiles(self, names: Iterable[str]) -> None:
        """Offer these profiles."""
        _offer(self.profile_box, self.tr("All profiles"), {name: name for name in sorted(set(names))})

    def clear(self) -> None:
        """Clear all choices."""
        for box in self._boxes:
            box.setCurrentIndex(0)

    def condition(self) -> Callable[[RunRow], bool]:
        """Whether a run is as chosen."""
        status, kind, profile, days = (box.currentData() for box in self._boxes)
        since = (wall_now().astimezone().date() - timedelta(days=days - 1)).isoformat() if days else ""

        def accepted(run: RunRow) -> bool:
            return (
                (not status or run.status.value == status)
                and (not kind or run.kind == kind)
                and (not profile or run.profile == profile)
                and (not since or filter_query.day(run) >= since)
            )

        return accepted

    def _box(self, name: str) -> QComboBox:
        box = QComboBox(self)
        box.setAccessibleName(name)
        box.setMinimumWidth(BOX_WIDTH)
        box.currentIndexChanged.connect(self.changed)
        return box


def _offer(box: QComboBox, everything: str, titles: Mapping[str, str]) -> None:
    """Fill `box` with `titles` by their data, below "all"; the choice stays if it is still offered."""
    if ["", *titles] == [box.itemData(index) for index in range(box.count())]:
        return
    chosen = box.currentData()
    box.blockSignals(True)
    box.clear()
    box.addItem(everything, "")
    for data, title in titles.items():
        box.addItem(shown_lines(title), data)
    box.setCurrentIndex(max(0, box.findData(chosen)))
    box.blockSignals(False)


class EmptyHistory(QWidget):
    """A sentence, and a button that clears the filter."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.label = QLabel(self)
        self.label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.label.setProperty("muted", True)
        self.clear_button = QPushButton(self.tr("Clear the filter"), self)
        middle = QVBoxLayout(self)
        middle.addStretch(1)
        middle.addWidget(self.label)
        middle.addWidget(self.clear_button, 0, Qt.AlignmentFlag.AlignCenter)
        middle.addStretch(1)

    def update_state(self, *, read: bool, total: int, trash: bool) -> None:
        """Show why the list is empty: `total` runs exist without the filter, once they are `read`."""
        if trash and not total:
            text = self.tr("The trash is empty.")
        elif total:
            text = self.tr("No run fits the filter.")
        elif not read:
            text = self.tr("Reading the runs ...")
        else:
            text = self.tr("No runs yet. Start the demo from the first page, or a trial of your own.")
        self.label.setText(text)
        self.clear_button.setVisible(total > 0)
