"""The source's resource table of a profile: sites with endpoints, servers and infrastructure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHeaderView, QLabel, QVBoxLayout, QWidget

from labconsole_ui.tables.record_table import DataTable, Field, RecordModel
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
        self._model: RecordModel[str] = RecordModel([], theme, self)
        self.table = DataTable(self.tr("Sites"), theme, self)
        self.table.setModel(self._model)
        self.table.setWordWrap(True)
        self.table.setFrameShape(QFrame.Shape.NoFrame)
        self.table.setProperty("plain", True)
        self.table.setStyleSheet("")  # the paddings of plain tables
        self.table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        column.addWidget(self.table)
        self._shown: list[Mapping[str, str]] = []
        self.hide()

    def show_sites(self, sites: Sequence[Mapping[str, str]]) -> None:
        """Show these sites; the table is hidden without any."""
        self.setVisible(bool(sites))
        if list(sites) == self._shown:
            return
        self._shown = list(sites)
        self._model.set_fields(
            [Field("", lambda key: self._titles[key], strong=lambda _key: True)]
            + [Field(site.get("name", ""), partial(_value, site)) for site in sites]
        )
        self.table.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        self._model.set_records(key for key in self._titles if any(site.get(key) for site in sites))
        self.table.resizeRowsToContents()
        height = self.table.horizontalHeader().sizeHint().height() + self.table.verticalHeader().length() + 4
        self.table.setFixedHeight(height)


def _value(site: Mapping[str, str], key: str) -> str:
    return site.get(key, "—")
