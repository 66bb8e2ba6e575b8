"""The button of a trial's panel that says where its roles run: by a host list file, or by the dialog."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog, QMenu, QToolButton, QWidget

from labconsole_ui.placement.placement_dialog import FILE_FILTER, dropped_file
from labconsole_ui.theme.theme import Theme


class HostsButton(QToolButton):
    """`file_chosen` carries a host list file, which can be dropped on the button, or None: all roles stay here."""

    file_chosen = Signal(object)

    def __init__(self, theme: Theme, place: Callable[[], object], parent: QWidget) -> None:
        """`place` opens the dialog."""
        super().__init__(parent)
        theme.bind_icon(self, "plugin-console-hosts")
        self.setToolTip(self.tr("Hosts of the roles: choose here, or drop a host list file"))
        self.setAccessibleName(self.tr("Hosts of the roles"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAcceptDrops(True)
        menu = QMenu(self)
        self.place_action = menu.addAction(self.tr("Place roles on hosts ..."), place)
        menu.addAction(self.tr("Take hosts from a file ..."), self._ask)
        menu.addAction(self.tr("All roles on this computer"), lambda: self.file_chosen.emit(None))
        self.setMenu(menu)
        self.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_file(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        if (path := dropped_file(event)) is not None:
            event.acceptProposedAction()
            self.file_chosen.emit(path)

    def _ask(self) -> None:
        name, _ = QFileDialog.getOpenFileName(
            self, self.tr("Host list"), "", self.tr("Host lists ({known});;All files (*)").format(known=FILE_FILTER)
        )
        if name:
            self.file_chosen.emit(Path(name))
