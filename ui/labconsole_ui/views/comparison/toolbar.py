"""The line above the comparison: grouping, baseline, published figures, export and report."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QLabel, QMenu, QPushButton, QSizePolicy, QWidget

from labconsole.analysis.columns import Column, counterparts
from labconsole.analysis.published_figures import PublishedColumn, PublishedTable
from labconsole.safe_text import shown_lines
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.layouts import FlowLayout


class PublishedMenu(QMenu):
    """`chosen` carries the names of published columns that are to be added."""

    chosen = Signal(list)

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(title, parent)
        self.setToolTipsVisible(True)
        self._below: list[QMenu] = []

    def offer(self, tables: Sequence[PublishedTable], columns: Sequence[Column], present: Collection[str]) -> None:
        """Offer the tables of the compared trials; `present` are the names of columns that are shown already."""
        self.clear()
        for menu in self._below:
            menu.deleteLater()
        self._below = []
        kinds = {kind for column in columns for kind in column.kinds}
        fitting = [table for table in tables if not kinds or not kinds.isdisjoint(table.kinds)]
        matching = {
            table.name: [column for column in table.columns if counterparts(columns, column)] for table in fitting
        }
        same = [table for table in fitting if matching[table.name]]
        others = [table for table in fitting if not matching[table.name]]
        if same:
            self._heading(self.tr("Of the same scenarios"))
        for table in same:
            self._add(table, matching[table.name], present)
        if others:
            self._heading(self.tr("Of other scenarios") if same else self.tr("Published tables"))
        for table in others:
            self._add(table, [], present)
        if not fitting:
            self.addAction(self.tr("There are no published figures of this trial.")).setEnabled(False)

    def _heading(self, text: str) -> None:
        if self.actions():
            self.addSeparator()
        self.addAction(text).setEnabled(False)

    def _add(self, table: PublishedTable, matching: Sequence[PublishedColumn], present: Collection[str]) -> None:
        menu = QMenu(table.title, self)
        menu.setToolTipsVisible(True)
        self._below.append(menu)
        self.addMenu(menu)
        menu.menuAction().setToolTip(table.reference)
        if matching:
            self._choice(menu, self.tr("Those of the same scenarios"), matching, present, table.reference)
        self._choice(menu, self.tr("All columns"), table.columns, present, table.reference)
        menu.addSeparator()
        for column in table.columns:
            self._choice(menu, column.title, (column,), present, column.reference)

    def _choice(
        self, menu: QMenu, text: str, columns: Sequence[PublishedColumn], present: Collection[str], help_text: str
    ) -> None:
        names = [column.name for column in columns if column.name not in present]
        action = menu.addAction(text.replace("&", "&&"))
        action.setToolTip(help_text)
        action.setEnabled(bool(names))
        action.triggered.connect(partial(self.chosen.emit, names))


MIN_TITLE, MAX_TITLE = 14, 24
"""Wide letters that the box of the baseline has room for, by the titles that it offers."""


class ComparisonControls(QWidget):
    """`baseline_chosen` carries a column's index, `grouping_changed` whether repeats are one column."""

    baseline_chosen = Signal(int)
    grouping_changed = Signal(bool)
    export_wanted = Signal()
    report_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.group_box = QCheckBox(self.tr("Mean over &repeats"), self)
        self.group_box.setChecked(True)
        self.group_box.setToolTip(self.tr("Repeats of a scenario as one column, or each run alone"))
        self.group_box.toggled.connect(self.grouping_changed)
        self.baseline_box = QComboBox(self)
        self.baseline_box.setAccessibleName(self.tr("Baseline"))
        self.baseline_box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.baseline_box.currentIndexChanged.connect(self.baseline_chosen)
        label = QLabel(self.tr("&Baseline"), self)
        label.setBuddy(self.baseline_box)
        self.published_button = QPushButton(self.tr("Add &published"), self)
        self.published_button.setToolTip(self.tr("Show figures of the source next to the runs"))
        self.published_menu = PublishedMenu(self.tr("Published figures"), self)
        self.published_button.setMenu(self.published_menu)
        theme.bind_icon(self.published_button, "book")
        self.export_button = QPushButton(self.tr("Export CSV ..."), self)
        self.export_button.clicked.connect(self.export_wanted)
        theme.bind_icon(self.export_button, "export")
        self.report_button = QPushButton(self.tr("Report ..."), self)
        self.report_button.setToolTip(self.tr("A PDF of this comparison, with a preview of its pages"))
        self.report_button.clicked.connect(self.report_wanted)
        theme.bind_icon(self.report_button, "file")
        chosen = QWidget(self)
        pair = QHBoxLayout(chosen)
        pair.setContentsMargins(0, 0, 0, 0)
        pair.setSpacing(8)
        pair.addWidget(label)
        pair.addWidget(self.baseline_box)
        line = FlowLayout(self, spacing=10)
        for widget in (chosen, self.group_box, self.published_button, self.export_button, self.report_button):
            line.addWidget(widget)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def set_columns(self, titles: Sequence[str], baseline: int, *, grouped: bool) -> None:
        """Offer these columns as baselines; without any, only adding is enabled."""
        self.group_box.blockSignals(True)
        self.group_box.setChecked(grouped)
        self.group_box.blockSignals(False)
        self.baseline_box.blockSignals(True)
        self.baseline_box.clear()
        self.baseline_box.addItems([shown_lines(title) for title in titles])
        longest = max(map(len, titles), default=0)
        self.baseline_box.setMinimumContentsLength(min(max(longest, MIN_TITLE), MAX_TITLE))
        self.baseline_box.setCurrentIndex(baseline if titles else -1)
        self.baseline_box.blockSignals(False)
        for widget in (self.baseline_box, self.group_box, self.export_button, self.report_button):
            widget.setEnabled(bool(titles))
