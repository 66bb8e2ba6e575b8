"""The check list of use cases: a tree by reference point, with a check mark for each case to run and its result."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from PySide6.QtCore import QByteArray, QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QBrush, QColor, QFontMetrics, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTreeWidget, QTreeWidgetItem, QWidget

from labconsole.analysis.number_format import NO_FIGURE
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_tooltip
from labconsole_v2x.panel.use_cases.use_case_monitor import (
    FAILED_WORD,
    NOT_TESTED_WORD,
    PASSED_WORD,
    WAITING,
    CaseResult,
    RunResults,
)
from labconsole_v2x.use_case_reference import NOT_PRINTED, listed
from labconsole_v2x.use_cases.catalogue import CODES, USE_CASES
from labconsole_v2x.use_cases.use_case import ReferencePoint
from labconsole_v2x.use_cases.use_case_role import RUNNING

CASE, TITLE, REQUIRED, SOURCE, RESULT = range(5)
RESULT_ICONS = {
    WAITING: ("waiting", "muted"),
    RUNNING: ("running", "link"),
    PASSED_WORD: ("good", "good"),
    FAILED_WORD: ("error", "bad"),
    NOT_TESTED_WORD: ("help", "muted"),
}
"""Icon of each result, and its colour's meaning."""
_LONGEST = {CASE: "A-SIG-00", REQUIRED: "mandatory", SOURCE: "not printed", RESULT: "99 of 99 passed"}
"""Texts for which columns are wide enough; the title gets what they leave."""
_CELL_EDGES = 16
_MARKS = {CASE: 60, RESULT: 20}
"""Room for indentation, check mark and icon, px."""


class UseCaseList(QTreeWidget):
    """`chosen` carries the code of the current case, "" on a group; `checked_changed` follows a changed check mark."""

    chosen = Signal(str)
    checked_changed = Signal()

    def __init__(self, theme: Theme, source: Mapping[str, str], parent: QWidget) -> None:
        """`source` has what Table 2.17 reports, by code."""
        super().__init__(parent)
        self._theme = theme
        self._source = source
        self._shown = RunResults()
        self._arranging = False
        self._groups: dict[ReferencePoint, QTreeWidgetItem] = {}
        self._cases: dict[str, QTreeWidgetItem] = {}
        self.setAccessibleName(self.tr("Use cases"))
        self.setFont(theme.font(FontRole.TABLE))
        self.setUniformRowHeights(True)
        self.setAlternatingRowColors(True)
        self.setIndentation(16)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setStyleSheet(
            "QTreeView::item { padding: 3px 4px; }"
            "QAbstractScrollArea::corner { border: none; background: transparent; }"
        )
        titles = (self.tr("Case"), self.tr("Title"), self.tr("Required"), self.tr("Source"), self.tr("Result"))
        self.setHeaderLabels(titles)
        self.headerItem().setToolTip(SOURCE, self.tr("What PRESERVE D3.2 reports in Table 2.17, in software"))
        self._fill()
        header = self.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setSectionResizeMode(TITLE, QHeaderView.ResizeMode.Stretch)
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(_CELL_EDGES)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._fit_widths()
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(0)  # a group changes the marks of its cases one by one
        self._later.timeout.connect(self.checked_changed)
        copy = QAction(self.tr("Copy rows"), self)
        copy.setShortcut(QKeySequence.StandardKey.Copy)
        copy.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        copy.triggered.connect(lambda _checked: QGuiApplication.clipboard().setText(self.as_tsv()))
        self.addAction(copy)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.itemChanged.connect(self._item_changed)
        self.currentItemChanged.connect(lambda item, _before: self.chosen.emit(self._code(item)))
        theme.changed.connect(self._paint)
        self.show_results(RunResults())

    def changeEvent(self, event: QEvent) -> None:
        """Columns are as wide as a text of another size needs."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and hasattr(self, "_cases"):
            self._fit_widths()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space changes the check marks of all selected rows, from any column, a group's those of its cases."""
        current = self.currentItem()
        if event.key() != Qt.Key.Key_Space or current is None:
            super().keyPressEvent(event)
            return
        on = current.checkState(CASE) is not Qt.CheckState.Checked
        for item in self.selectedItems() or [current]:
            item.setCheckState(CASE, Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)

    def _fit_widths(self) -> None:
        metrics = QFontMetrics(self._theme.font(FontRole.STRONG))
        for column, text in _LONGEST.items():
            self.setColumnWidth(column, metrics.horizontalAdvance(text) + _CELL_EDGES + _MARKS.get(column, 0))

    def show_results(self, shown: RunResults) -> None:
        """Show the results of a run; the case in progress is scrolled into view where no row is selected."""
        self._shown = shown
        self._paint()
        current = next((code for code, found in shown.results.items() if found.word == RUNNING), "")
        if current and not self.selectedItems():
            self.scrollToItem(self._cases[current])

    def select(self, code: str) -> None:
        """Make a case the current one."""
        self.setCurrentItem(self._cases[code])

    @property
    def checked(self) -> tuple[str, ...]:
        """The codes that have a check mark, in the order in which they are tested."""
        return tuple(code for code in CODES if self._cases[code].checkState(CASE) is Qt.CheckState.Checked)

    def check(self, codes: Collection[str]) -> None:
        """Give these cases a check mark, and no other."""
        self._arranging = True
        for code, item in self._cases.items():
            item.setCheckState(CASE, Qt.CheckState.Checked if code in codes else Qt.CheckState.Unchecked)
        self._arranging = False

    def restore_columns(self, state: QByteArray) -> None:
        """Restore the widths; without stored ones, they stay."""
        self.header().restoreState(state)

    def as_tsv(self, *, everything: bool = False) -> str:
        """Titles and selected (or all) cases, tab-separated, each with its group."""
        chosen = set() if everything else {self._code(item) for item in self.selectedItems()} - {""}
        columns = range(self.columnCount())
        lines = [[self.tr("Reference point"), *(self.headerItem().text(column) for column in columns)]]
        for group, parent in self._groups.items():
            for item in map(parent.child, range(parent.childCount())):
                if not chosen or self._code(item) in chosen:
                    lines.append([group.value, *(item.text(column) for column in columns)])
        return "\n".join("\t".join(line) for line in lines) + "\n"

    def _fill(self) -> None:
        flags = Qt.ItemFlag
        required = {True: self.tr("mandatory"), False: self.tr("optional")}
        for group in ReferencePoint:
            short, _colon, title = group.value.rpartition(": ")
            parent = QTreeWidgetItem(self, [short or NO_FIGURE, title])
            parent.setFlags(flags.ItemIsEnabled | flags.ItemIsUserCheckable | flags.ItemIsAutoTristate)
            self._groups[group] = parent
            for case in listed(group):
                reported = self._source.get(case.code, NOT_PRINTED if case.counted else NO_FIGURE)
                item = QTreeWidgetItem(parent, [case.code, case.title, required[case.mandatory], reported])
                item.setFlags(flags.ItemIsEnabled | flags.ItemIsSelectable | flags.ItemIsUserCheckable)
                item.setCheckState(CASE, Qt.CheckState.Checked)
                item.setToolTip(TITLE, plain_tooltip(case.title))
                self._cases[case.code] = item
            parent.setFlags(parent.flags() | flags.ItemIsSelectable)
        self.expandAll()

    def _paint(self) -> None:
        """Results, icons and colours."""
        self._arranging = True
        strong, results = self._theme.font(FontRole.STRONG), self._shown.results
        for code, item in self._cases.items():
            found = results.get(code, CaseResult(""))
            item.setText(RESULT, found.word or NO_FIGURE)
            self._set_icon(item, found.word)
            item.setToolTip(RESULT, plain_tooltip(found.reason))
            for column in (REQUIRED, SOURCE):
                item.setForeground(column, QBrush(QColor(self._theme.colour("muted"))))
        for group, parent in self._groups.items():
            codes = [code for code, case in USE_CASES.items() if case.reference_point is group]
            failed, passed = (self._shown.count(word, codes) for word in (FAILED_WORD, PASSED_WORD))
            text = self.tr("{0} of {1} passed").format(passed, len(codes))
            parent.setText(RESULT, text if results else "")
            whole = PASSED_WORD if passed == len(codes) else ""
            self._set_icon(parent, FAILED_WORD if failed else whole)
            for column in (CASE, TITLE, RESULT):
                parent.setFont(column, strong)
        self._arranging = False

    def _set_icon(self, item: QTreeWidgetItem, word: str) -> None:
        """The icon and colour of a result, none without one."""
        shown = RESULT_ICONS.get(word)
        if shown is None:
            item.setData(RESULT, Qt.ItemDataRole.DecorationRole, None)
        else:
            item.setIcon(RESULT, self._theme.icon(*shown))
        item.setForeground(RESULT, QBrush(QColor(self._theme.colour(shown[1] if shown else "text"))))

    def _item_changed(self, _item: QTreeWidgetItem, column: int) -> None:
        if column == CASE and not self._arranging:
            self._later.start()

    def _code(self, item: QTreeWidgetItem | None) -> str:
        return "" if item is None or item.parent() is None else item.text(CASE)
