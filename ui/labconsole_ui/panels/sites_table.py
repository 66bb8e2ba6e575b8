"""The source's resource table of a profile: who takes part, with which endpoint, server and infrastructure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QLabel,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from labconsole_ui.theme.theme import FontRole, Theme


class SitesTable(QFrame):
    """One column for each site, as the source prints it; rows that no site fills are left out."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._titles = {
            "endpoint": self.tr("Endpoint"),
            "host_name": self.tr("Host name"),
            "tls_port": self.tr("TLS port"),
            "plain_port": self.tr("Plain port"),
            "server": self.tr("Server"),
            "infrastructure": self.tr("Infrastructure"),
            "remarks": self.tr("Remarks"),
        }
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 14, 18, 16)
        heading = QLabel(self.tr("Sites"))
        heading.setFont(theme.font(FontRole.HEADING))
        column.addWidget(heading)
        self.table = QTableWidget()
        self.table.setAccessibleName(self.tr("Sites"))
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.table.setTabKeyNavigation(False)
        self.table.setWordWrap(True)
        self.table.setShowGrid(False)
        self.table.setAlternatingRowColors(True)
        self.table.setFrameShape(QFrame.Shape.NoFrame)
        self.table.setProperty("plain", True)
        self.table.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.table.horizontalHeader().setHighlightSections(False)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        column.addWidget(self.table)
        self._shown: list[Mapping[str, str]] = []
        self.hide()

    def show_sites(self, sites: Sequence[Mapping[str, str]]) -> None:
        """Show these sites, or nothing without any."""
        self.setVisible(bool(sites))
        if list(sites) == self._shown:
            return
        self._shown = list(sites)
        keys = [key for key in self._titles if any(site.get(key) for site in sites)]
        self.table.setColumnCount(len(sites))
        self.table.setRowCount(len(keys))
        self.table.setHorizontalHeaderLabels([site.get("name", "") for site in sites])
        self.table.setVerticalHeaderLabels([self._titles[key] for key in keys])
        for column, site in enumerate(sites):
            for row, key in enumerate(keys):
                self.table.setItem(row, column, QTableWidgetItem(site.get(key, "—")))
        self.table.resizeRowsToContents()
        height = self.table.horizontalHeader().sizeHint().height() + self.table.verticalHeader().length() + 4
        self.table.setFixedHeight(height)
