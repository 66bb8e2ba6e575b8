"""The menu of formats in which runs leave the database."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from labconsole_ui.theme.theme import Theme


class ExportFormat(StrEnum):
    """What runs can be written as."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    BUNDLE = "bundle"


class ExportMenu(QMenu):
    """`wanted` carries the chosen `ExportFormat`. Parquet needs an extra of the installation, and says so."""

    wanted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setTitle(self.tr("Export"))
        self.setToolTipsVisible(True)
        theme.bind_icon(self, "export")
        titles = {
            ExportFormat.CSV: self.tr("CSV: a file for each table ..."),
            ExportFormat.JSON: self.tr("JSON: a file for each run ..."),
            ExportFormat.PARQUET: self.tr("Parquet: the samples ..."),
            ExportFormat.BUNDLE: self.tr("Bundle for another console (.lcz) ..."),
        }
        self.by_format: dict[ExportFormat, QAction] = {}
        for chosen, title in titles.items():
            action = self.by_format[chosen] = self.addAction(title)
            action.triggered.connect(lambda _checked=False, chosen=chosen: self.wanted.emit(chosen))
        if find_spec("pyarrow") is None:
            parquet = self.by_format[ExportFormat.PARQUET]
            parquet.setEnabled(False)
            parquet.setText(self.tr("Parquet (needs pyarrow, which is not installed)"))
            parquet.setToolTip(self.tr("Install the extra: pip install 'labconsole[parquet]'"))
