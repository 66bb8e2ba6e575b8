"""Tables of records: one model for all tables of the window, sorted and filtered without a proxy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar, Generic, TypeVar

from PySide6.QtCore import QAbstractTableModel, QEvent, QItemSelection, QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QAction, QColor, QFont, QGuiApplication, QIcon, QKeySequence, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTableView,
    QWidget,
)

from labconsole.safe_text import shown_lines
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_tooltip
from labconsole_ui.widgets.status_text import consecutive_ranges

R = TypeVar("R")
Index = QModelIndex | QPersistentModelIndex
MEASURED_ROWS = 25
"""Column widths follow the contents of so many rows: measuring 2,000 takes half a second."""
MIN_CUT_WIDTH = 94
"""No column that is cut to make room becomes narrower than this, px."""


@dataclass(frozen=True)
class Field(Generic[R]):
    """One column of a table of records `R`.

    `sort` gives the key (the text if None; records whose key is None come last), `tone` and `icon` name colours by
    meaning, `edit` is called with a text that was typed into a cell; without it cells cannot be edited.
    """

    title: str
    text: Callable[[R], str]
    sort: Callable[[R], Any] | None = None
    right: bool = False
    tooltip: Callable[[R], str] | None = None
    tone: Callable[[R], str | None] | None = None
    icon: Callable[[R], tuple[str, str] | None] | None = None
    strong: Callable[[R], bool] | None = None
    edit: Callable[[R, str], None] | None = None
    header_tooltip: str = ""

    def key(self, record: R) -> Any:
        """The sort key of a record, None for those that come last."""
        return self.sort(record) if self.sort is not None else self.text(record).casefold()


class RecordModel(QAbstractTableModel, Generic[R]):
    """Records as rows, sorted and filtered here: proxies in Python cost 100 ms at 2,000 records."""

    cell_flags: ClassVar = Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemNeverHasChildren
    """Of each cell: Qt asks for them at each painting, and one `|` in Python takes 2 µs."""

    def __init__(self, fields: Sequence[Field[R]], theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._fields = list(fields)
        self._cell_values = [cell_values_by_role(field, theme) for field in fields]
        self._all: list[R] = []
        self._shown: list[R] = []
        self._accepts: Callable[[R], bool] | None = None
        self._order: tuple[int, bool] | None = None
        theme.changed.connect(self.repaint)

    @property
    def fields(self) -> list[Field[R]]:
        """The columns."""
        return self._fields

    def set_fields(self, fields: Sequence[Field[R]]) -> None:
        """Show other columns."""
        self.beginResetModel()
        self._fields = list(fields)
        self._cell_values = [cell_values_by_role(field, self._theme) for field in fields]
        self._order = None if self._order is None or self._order[0] >= len(fields) else self._order
        self.endResetModel()

    def set_records(self, records: Iterable[R], accepts: Callable[[R], bool] | None = None) -> None:
        """Show these records, or those of them that `accepts`, instead of the ones before."""
        self._all = list(records)
        self._accepts = accepts
        self._rearrange()

    def update_records(self, records: Sequence[R], key: Callable[[R], Hashable], *, sort: bool = True) -> None:
        """Show the newest values of the records, which `key` identifies, so that the selection stays.

        With `sort` they take the places that their values now give them, or those that they have in `records`.
        """
        newest = {key(record): record for record in records}
        if newest.keys() != set(map(key, self._all)):
            self.set_records(records, self._accepts)
            return
        self._all = list(records)
        self._shown = [newest[key(record)] for record in self._shown]
        if sort:
            self._move_rows(self._arranged(), key)
        self.repaint()

    def _move_rows(self, arranged: list[R], key: Callable[[R], Hashable]) -> None:
        places = {key(record): place for place, record in enumerate(arranged)}
        if places.keys() != set(map(key, self._shown)):
            self._rearrange()  # the filter judges the new values differently
            return
        self.layoutAboutToBeChanged.emit()
        before = self.persistentIndexList()
        after = [self.index(places[key(self._shown[index.row()])], index.column()) for index in before]
        self._shown = arranged
        self.changePersistentIndexList(before, after)
        self.layoutChanged.emit()

    def set_filter(self, accepts: Callable[[R], bool] | None) -> None:
        """Show only what `accepts`, or everything with None."""
        self._accepts = accepts
        self._rearrange()

    def record(self, row: int) -> R:
        """The record shown in `row`."""
        return self._shown[row]

    def records(self) -> list[R]:
        """All records in the order in which they are shown."""
        return list(self._shown)

    @property
    def total(self) -> int:
        """Number of records, those that the filter hides included."""
        return len(self._all)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        """Number of records shown."""
        return 0 if parent.isValid() else len(self._shown)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        """Number of columns."""
        return 0 if parent.isValid() else len(self._fields)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles of the columns."""
        if orientation is not Qt.Orientation.Horizontal or section >= len(self._fields):
            return None
        field = self._fields[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return field.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip(field.header_tooltip) or None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(field)
        return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text, tooltip, colour, icon and alignment of a cell."""
        if not index.isValid():
            return None
        answer = self._cell_values[index.column()].get(role)
        return None if answer is None else answer(self._shown[index.row()])

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Cells of editable columns can be edited."""
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        if self._fields[index.column()].edit is not None:
            return self.cell_flags | Qt.ItemFlag.ItemIsEditable
        return self.cell_flags

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        """Hand an edited text to the field's `edit`; the new text shows once the records are set again."""
        if role != Qt.ItemDataRole.EditRole or not index.isValid():
            return False
        field, record = self._fields[index.column()], self.record(index.row())
        if field.edit is None:
            return False
        if str(value) != field.text(record):
            field.edit(record, str(value))
        return True

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; -1 gives the order in which the records came."""
        self._order = (column, order is Qt.SortOrder.DescendingOrder) if 0 <= column < len(self._fields) else None
        self._rearrange()

    def _rearrange(self) -> None:
        self.beginResetModel()
        self._shown = self._arranged()
        self._lay_out()
        self.endResetModel()

    def _arranged(self) -> list[R]:
        """The records to show, in their order."""
        shown = self._all if self._accepts is None else [record for record in self._all if self._accepts(record)]
        if self._order is not None:
            field, descending = self._fields[self._order[0]], self._order[1]
            keyed = [(field.key(record), record) for record in shown]
            known = sorted((entry for entry in keyed if entry[0] is not None), key=itemgetter(0), reverse=descending)
            shown = [record for _, record in known] + [record for key, record in keyed if key is None]
        return list(shown)

    def _lay_out(self) -> None:
        """Called within a reset, when `_shown` is new: subclasses build other lines between records here."""

    def repaint(self) -> None:
        """Let the views read all cells again: a value that is not in the records has changed."""
        if self.rowCount() and self._fields:
            self.dataChanged.emit(self.index(0, 0), self.index(self.rowCount() - 1, len(self._fields) - 1))


class DataTable(QTableView):
    """A table in the window's style; Ctrl+C copies rows with their titles as tab-separated text.

    With `fit_width`, columns too wide together for the table are cut, the widest first, before it scrolls sideways.
    """

    def __init__(self, name: str, theme: Theme, parent: QWidget | None = None, *, fit_width: bool = False) -> None:
        super().__init__(parent)
        self._fit_width = fit_width
        self._contents: list[int] = []
        self._fit_due: int | None = None
        self.setAccessibleName(name)
        self.setFont(theme.font(FontRole.TABLE))
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.setStyleSheet("QTableView::item { padding: 0 4px; }")
        self.verticalHeader().hide()
        self._fit_rows()
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setResizeContentsPrecision(MEASURED_ROWS)
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self.copy_action = QAction(self.tr("Copy rows"), self)
        self.copy_action.setShortcut(QKeySequence.StandardKey.Copy)
        self.copy_action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self.copy_action.triggered.connect(self.copy_rows)
        self.addAction(self.copy_action)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)

    def changeEvent(self, event: QEvent) -> None:
        """Rows are as high as a text of another size needs."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit_rows()

    def _fit_rows(self) -> None:
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + 12)

    def showEvent(self, event: QShowEvent) -> None:
        """Fit the columns to records that were set while the table was hidden."""
        super().showEvent(event)
        if self._fit_due is not None:
            self.fit_columns(self._fit_due)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the new width among the columns, if they are to fit."""
        super().resizeEvent(event)
        if self._fit_width and event.size().width() != event.oldSize().width():
            self._share_width()

    def selectRow(self, row: int) -> None:
        """Select this row alone and make it current. Qt's own takes a held Shift as a range, and selects nothing."""
        chosen = self.selectionModel()
        command = chosen.SelectionFlag.ClearAndSelect | chosen.SelectionFlag.Rows
        chosen.setCurrentIndex(self.model().index(row, 0), command)

    def copy_rows(self) -> None:
        """Copy the selected rows, or all without a selection."""
        QGuiApplication.clipboard().setText(self.as_tsv())

    def as_tsv(self) -> str:
        """Titles and selected (or all) rows of the visible columns, tab-separated."""
        model = self.model()
        header = self.horizontalHeader()
        columns = [header.logicalIndex(place) for place in range(header.count())]
        columns = [column for column in columns if not header.isSectionHidden(column)]
        rows = sorted({index.row() for index in self.selectionModel().selectedRows()}) or range(model.rowCount())
        titles = [str(model.headerData(column, Qt.Orientation.Horizontal) or "") for column in columns]
        lines = [titles] + [[str(model.index(row, column).data() or "") for column in columns] for row in rows]
        return "\n".join("\t".join(_one_line(cell) for cell in line) for line in lines) + "\n"

    def fit_columns(self, widest: int = 320) -> None:
        """Give columns the width of their contents, up to `widest` px; a hidden table does it when shown."""
        self._fit_due = None if self.isVisible() else widest
        if self._fit_due is not None:
            return
        header = self.horizontalHeader()
        header.setStretchLastSection(False)  # what is stretched is not measured
        self.resizeColumnsToContents()
        columns = range(self.model().columnCount())
        self._contents = [0 if header.isSectionHidden(at) else min(widest, self.columnWidth(at)) for at in columns]
        self._share_width()

    def _share_width(self) -> None:
        room = self.viewport().width() if self._fit_width else sum(self._contents)
        for column, width in enumerate(cut_to(self._contents, room)):
            if width:
                self.setColumnWidth(column, width)
        self.horizontalHeader().setStretchLastSection(True)  # set again: fills the remaining width


def cut_to(widths: Sequence[int], room: int) -> list[int]:
    """Column widths that fit into `room` px: the widest are cut to one width, MIN_CUT_WIDTH at least."""
    share = max(widths, default=0)
    left, count = room, len(widths)
    for width in sorted(widths):
        if width * count > left:
            share = max(MIN_CUT_WIDTH, left // count)
            break
        left, count = left - width, count - 1
    return [min(width, share) for width in widths]


def cell_values_by_role(field: Field[R], theme: Theme) -> dict[int, Callable[[R], Any]]:
    """The functions that give the data of a column's cells, by role; most roles have none."""

    def tooltip(record: R) -> str | None:
        return plain_tooltip((field.tooltip or field.text)(record)) or None

    def colour(record: R) -> QColor | None:
        meaning = field.tone(record) if field.tone is not None else None
        return QColor(theme.colour(meaning)) if meaning else None

    def icon(record: R) -> QIcon | None:
        shown = field.icon(record) if field.icon is not None else None
        return theme.icon(*shown) if shown else None

    def font(record: R) -> QFont | None:
        return theme.font(FontRole.STRONG) if field.strong is not None and field.strong(record) else None

    alignment = _alignment(field)
    role = Qt.ItemDataRole
    answers: dict[int, Callable[[R], Any]] = {
        role.DisplayRole: lambda record: shown_lines(field.text(record)),
        role.EditRole: field.text,
        role.TextAlignmentRole: lambda _: alignment,
        role.ToolTipRole: tooltip,
    }
    for asked, about, answer in (
        (role.ForegroundRole, field.tone, colour),
        (role.DecorationRole, field.icon, icon),
        (role.FontRole, field.strong, font),
    ):
        if about is not None:
            answers[asked] = answer
    return answers


def _alignment(field: Field[Any]) -> int:
    side = Qt.AlignmentFlag.AlignRight if field.right else Qt.AlignmentFlag.AlignLeft
    return (side | Qt.AlignmentFlag.AlignVCenter).value


def _one_line(text: str) -> str:
    return " ".join(text.replace("\t", " ").split("\n"))


def selected_rows(table: QTableView) -> list[int]:
    """The numbers of the selected rows, from top to bottom."""
    ranges = table.selectionModel().selection()
    parts = (ranges.at(number) for number in range(ranges.count()))
    return sorted({row for part in parts for row in range(part.top(), part.bottom() + 1)})


def select_rows(table: QTableView, rows: Iterable[int]) -> None:
    """Select these rows, given from top to bottom, in addition to those that are selected."""
    model, chosen = table.model(), QItemSelection()
    last_column = model.columnCount() - 1
    for first, last in consecutive_ranges(rows):
        chosen.select(model.index(first, 0), model.index(last, last_column))
    selection = table.selectionModel()
    selection.select(chosen, selection.SelectionFlag.Select)
