"""The requests of a placement as a table, the first match first; cores and interface are edited in it."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from labconsole.safe_text import shown_lines
from labconsole_ui.placement.placing import Placing
from labconsole_ui.theme.theme import FontRole, Theme

_CORES, _INTERFACE = 2, 3
_HEIGHT = 150


class RequestTable(QTableWidget):
    """A line for each request: roles, where they run, cores and interface, and for how many roles it counts."""

    def __init__(self, placing: Placing, theme: Theme, parent: QWidget) -> None:
        super().__init__(0, 5, parent)
        self._placing = placing
        self.setAccessibleName(self.tr("Requests of the roles"))
        self.setHorizontalHeaderLabels(
            [
                self.tr("Roles"),
                self.tr("Run on"),
                self.tr("Cores, at least"),
                self.tr("Interface"),
                self.tr("Counts for"),
            ]
        )
        self.setFont(theme.font(FontRole.TABLE))
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setFixedHeight(_HEIGHT)
        self.itemChanged.connect(self._edited)

    def show_requests(self) -> None:
        """Show the requests as they are now."""
        with QSignalBlocker(self):
            self.setRowCount(0)
            for row, request in enumerate(self._placing.placement.roles):
                self.insertRow(row)
                place = " or ".join(request.hosts) or (
                    self.tr("tag {tag}").format(tag=request.tag) if request.tag else self.tr("any host")
                )
                count = len(self._placing.roles_of(request))
                cells = (
                    request.role,
                    place,
                    str(request.cores or ""),
                    request.interface,
                    self.tr("roles: {count}").format(count=count) if count else self.tr("no role of this trial"),
                )
                for column, text in enumerate(cells):
                    item = QTableWidgetItem(shown_lines(text))
                    if column in (_CORES, _INTERFACE):
                        item.setToolTip(self.tr("Double-click or F2: change it. Empty: any."))
                    else:
                        item.setToolTip(shown_lines(text))
                        item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
                    self.setItem(row, column, item)

    def _edited(self, item: QTableWidgetItem) -> None:
        """Ask for other cores, or another interface."""
        text = item.text().strip()
        if item.column() == _CORES:
            self._placing.require(item.row(), cores=text or 0)
        elif item.column() == _INTERFACE:
            self._placing.require(item.row(), interface=text)
