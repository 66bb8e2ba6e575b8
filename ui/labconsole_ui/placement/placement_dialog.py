"""The dialog that places the roles of a trial on hosts, by drag and drop, buttons, menus or a host list file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QSpinBox,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from labconsole.engine.operation_process import OperationEnd, Outcome
from labconsole.model.placement import MOST_LOCAL, HostFacts, Placement
from labconsole.model.plugin import Plugins
from labconsole.model.validation_faults import fault_sentence
from labconsole.profiles.host_list import read_host_list, save_host_list
from labconsole.profiles.profile_file import ProfileError
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.operations.operation_runner import OperationRunner
from labconsole_ui.placement.placement_trees import HostTree, RoleTree
from labconsole_ui.placement.placing import HERE, Placing, Target
from labconsole_ui.placement.request_table import RequestTable
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.hosts.hosts_page import ADDRESS_KEY, ENROL, LIST
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import busy_bar, plain_label, set_tone

_GEOMETRY, _SPLITTER = "placement/geometry", "placement/splitter"
_SIZE = (1080, 680)
_LOCAL_HOSTS = 3
_NOTE_LINES, _NOTE_LENGTH = 4, 500
FILE_FILTER = "*.toml *.start *.txt"


class PlacementDialog(QDialog):
    """`used` carries the `Placement` of the operator. Hosts of a scheduler are read once, and by the button."""

    used = Signal(object)

    def __init__(
        self,
        names: Sequence[str],
        placement: Placement,
        plugins: Plugins,
        theme: Theme,
        state: WindowState,
        parent: QWidget,
    ) -> None:
        """`names` are the roles that a run would start."""
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Place roles on hosts"))
        self.setAcceptDrops(True)
        set_chapter(self, "how-to/run-on-hosts.md")
        self._plugins, self._theme, self._state = plugins, theme, state
        if not placement.roles:
            placement = Placement(scheduler=state.text(ADDRESS_KEY, placement.scheduler))
        self.placing = Placing(names, placement, self)
        self._listing = OperationRunner(self)
        self._listing.ended.connect(self._listed)
        self.roles = RoleTree(theme, self)
        self.hosts = HostTree(theme, self)
        self.requests = RequestTable(self.placing, theme, self)
        self.note = plain_label("", self)
        self.note.setWordWrap(True)
        self.note.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.busy = busy_bar(self.tr("The hosts are asked"), self)
        self.busy.hide()
        self.splitter = QSplitter(Qt.Orientation.Horizontal, self)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(10)
        about = plain_label(
            self.tr(
                "Drag roles onto a host, or onto a tag, whose hosts share them by their cores. Roles that are not "
                "placed run on this computer. Of the requests below, the first that matches a role counts."
            ),
            self,
        )
        about.setWordWrap(True)
        about.setProperty("muted", True)
        for widget in (about, self._source_row(), self.busy):
            column.addWidget(widget)
        column.addWidget(self._trees(), 1)
        column.addWidget(self.note)
        column.addWidget(self.requests)
        column.addLayout(self._foot())
        self._connect()
        self._restore_size()
        self._show()
        if not placement.local and state.text(ADDRESS_KEY):
            self.refresh()

    def refresh(self) -> None:
        """Ask the hosts of the scheduler, unless they are being asked."""
        if self._listing.running:
            return
        if self._takes_address():
            self.busy.show()
            self.refresh_button.setEnabled(False)
            self._listing.start(LIST, {"scheduler": self.placing.placement.scheduler})

    def place_selected(self) -> None:
        """Place the selected roles on the selected hosts, which share them, or on a tag."""
        roles, chosen = self.roles.roles, self.hosts.chosen
        for number, target in enumerate(chosen):
            if not self.placing.place(roles, target, shared=number > 0):
                return

    def use(self) -> None:
        """Close the dialog with this placement, unless it cannot be used."""
        if self.placing.placement.roles and not self._takes_address():
            return
        if fault := self.placing.fault:
            self._say(fault, True)
            return
        if not self.placing.placement.local and self.placing.hosts is not None:
            self._state.set(ADDRESS_KEY, self.placing.placement.scheduler)
        self.used.emit(self.placing.placement)
        self.accept()

    def open_file(self, path: Path) -> None:
        """Edit what a host list file asks for."""
        try:
            placement = read_host_list(path)
        except ProfileError as error:
            self._say(str(error), True)
            return
        if not placement.local and path.suffix.lower() != ".toml":  # a list of hosts names no scheduler
            placement = placement.model_copy(update={"scheduler": self.address.text().strip()})
        self.placing.take(placement, self.tr("Host list {name}").format(name=path.name))

    def save_file(self, path: Path) -> None:
        """Write the placement as a host list file."""
        if not self._takes_address():
            return
        try:
            save_host_list(path, self.placing.placement)
        except ProfileError as error:
            self._say(str(error), True)
        else:
            self._say(self.tr("Saved as {path}.").format(path=path), False)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter in the address reads its hosts, and does not close the dialog."""
        if not (self.address.hasFocus() and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)):
            super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """A host list file can be dropped."""
        if dropped_file(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        if (path := dropped_file(event)) is not None:
            event.acceptProposedAction()
            self.open_file(path)

    def done(self, result: int) -> None:
        """Keep the layout for the next time."""
        self._state.set(_GEOMETRY, self.saveGeometry())
        self._state.set(_SPLITTER, self.splitter.saveState())
        super().done(result)

    def _source_row(self) -> QWidget:
        row = QWidget(self)
        placement = self.placing.placement
        self.of_scheduler = QRadioButton(self.tr("Hosts of the &scheduler"), row)
        self.address = QLineEdit(row)
        self.address.setText(placement.scheduler)
        self.address.setAccessibleName(self.tr("Address of the scheduler"))
        self.refresh_button = self._button(self.tr("&Refresh"), "repeat", self.refresh)
        self.enrol_button = self._button(self.tr("&Enrol a host ..."), "certificate", self._enrol)
        self.of_this_computer = QRadioButton(self.tr("Hosts that the run starts on this &computer:"), row)
        self.local_box = QSpinBox(row)
        self.local_box.setRange(1, MOST_LOCAL)
        self.local_box.setValue(placement.local or _LOCAL_HOSTS)
        self.local_box.setAccessibleName(self.tr("Number of hosts on this computer"))
        (self.of_this_computer if placement.local else self.of_scheduler).setChecked(True)
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(8)
        line.addWidget(self.of_scheduler)
        line.addWidget(self.address, 1)
        for widget in (self.refresh_button, self.enrol_button, self.of_this_computer, self.local_box):
            line.addWidget(widget)
        return row

    def _trees(self) -> QWidget:
        middle = QWidget(self)
        buttons = QVBoxLayout(middle)
        buttons.setContentsMargins(4, 0, 4, 0)
        self.place_button = self._button(self.tr("&Place"), "chevron-right", self.place_selected)
        self.place_button.setToolTip(self.tr("Place the selected roles on the selected hosts, which share them"))
        self.back_button = self._button(self.tr("&Back"), "chevron-left", self._back)
        self.back_button.setToolTip(self.tr("The selected roles stay on this computer"))
        buttons.addStretch(1)
        buttons.addWidget(self.place_button)
        buttons.addWidget(self.back_button)
        buttons.addStretch(1)
        for widget in (self.roles, middle, self.hosts):
            self.splitter.addWidget(widget)
        for index, stretch in enumerate((2, 0, 3)):
            self.splitter.setStretchFactor(index, stretch)
            self.splitter.setCollapsible(index, False)
        return self.splitter

    def _foot(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(8)
        stack = self.placing.stack
        self.undo_button = self._button(self.tr("&Undo"), "undo", stack.undo)
        self.undo_button.setShortcut(QKeySequence(QKeySequence.StandardKey.Undo))
        self.open_button = self._button(self.tr("&Open host list ..."), "open", self._ask_for_file)
        self.save_button = self._button(self.tr("Sa&ve as host list ..."), "save", self._ask_where)
        cancel = self._button(self.tr("Cancel"), "", self.reject)
        self.use_button = self._button(self.tr("Use"), "", self.use)
        self.use_button.setProperty("primary", True)
        self.use_button.setDefault(True)
        for button in (self.undo_button, self.open_button, self.save_button):
            line.addWidget(button)
        line.addStretch(1)
        line.addWidget(cancel)
        line.addWidget(self.use_button)
        return line

    def _button(self, text: str, icon: str, clicked: Any) -> QPushButton:
        button = QPushButton(text, self)
        button.setAutoDefault(False)
        if icon:
            self._theme.bind_icon(button, icon)
        button.clicked.connect(lambda _checked: clicked())
        return button

    def _connect(self) -> None:
        self.placing.changed.connect(self._show)
        self._theme.changed.connect(self._show)
        self.placing.said.connect(self._say)
        self.placing.stack.canUndoChanged.connect(self.undo_button.setEnabled)
        self.undo_button.setEnabled(False)
        self.hosts.placed.connect(lambda roles, target, shared: self._place(roles, target, shared=shared))
        self.hosts.add_action(self.tr("Place the selected roles here"), self.place_selected)
        for tree in (self.roles, self.hosts):
            tree.itemSelectionChanged.connect(self._allow)
        self.roles.returned.connect(self._keep_here)
        self.hosts.returned.connect(self._keep_here)
        self.address.returnPressed.connect(self.refresh)
        self.of_scheduler.toggled.connect(self._choose_source)
        self.local_box.valueChanged.connect(self._choose_source)

    def _choose_source(self) -> None:
        if self.of_scheduler.isChecked():
            self.placing.use_hosts_of(scheduler=self.address.text().strip())
        else:
            self.placing.use_hosts_of(local=self.local_box.value())

    def _takes_address(self) -> bool:
        """Use the scheduler whose address is shown; False: it is none, which is reported."""
        address, parameters = self.address.text().strip(), self._plugins.operation(LIST).parameters
        if self.placing.placement.local:
            return True
        try:
            parameters.model_validate({"scheduler": address})
        except ValidationError as error:
            self._say(fault_sentence(error, parameters), True)
            return False
        if address != self.placing.placement.scheduler:
            self.placing.use_hosts_of(scheduler=address)
        return True

    def _place(self, roles: Sequence[str], target: Target, *, shared: bool = False) -> None:
        if roles:
            self.placing.place(roles, target, shared=shared)

    def _keep_here(self, roles: Sequence[str]) -> None:
        self._place(roles, HERE)

    def _back(self) -> None:
        self._keep_here(self.hosts.roles or self.roles.roles)

    def _show(self) -> None:
        """Show placement and hosts as they are now."""
        placement = self.placing.placement
        for box, checked in ((self.of_scheduler, not placement.local), (self.of_this_computer, bool(placement.local))):
            box.blockSignals(True)
            box.setChecked(checked)
            box.blockSignals(False)
        self.local_box.setEnabled(bool(placement.local))
        for widget in (self.address, self.enrol_button):
            widget.setEnabled(not placement.local)
        self.refresh_button.setEnabled(not placement.local and not self._listing.running)
        if not placement.local and not self._listing.running:
            self.address.setText(placement.scheduler)
        self.roles.show_roles(self.placing)
        self.hosts.show_targets(self.placing)
        self.requests.show_requests()
        self.save_button.setEnabled(bool(placement.roles))
        self._allow()
        if self.placing.hosts is None:
            self._say(self.tr("The hosts are not known yet: refresh, or place roles by a host list file."), False)

    def _allow(self) -> None:
        self.place_button.setEnabled(bool(self.roles.roles and self.hosts.chosen))
        self.back_button.setEnabled(bool(self.roles.roles or self.hosts.roles))

    def _listed(self, end: OperationEnd) -> None:
        self.busy.hide()
        if end.result is None or end.outcome is not Outcome.DONE:
            self.placing.list_hosts(None)
            self._say(end.sentence, True)
            return
        known = {field.name for field in fields(HostFacts)}
        found: list[Mapping[str, Any]] = list(end.result.data["hosts"])
        self.placing.list_hosts([_facts({name: host[name] for name in known}) for host in found])
        if not found:
            self._say(
                self.tr(
                    "No host has joined {scheduler}. Enrol a host, carry its file there, and start: labconsole agent "
                    "FILE --scheduler {scheduler}"
                ).format(scheduler=self.placing.placement.scheduler),
                False,
            )
        else:
            self._say("\n".join(end.result.warnings), True)

    def _enrol(self) -> None:
        operation = self._plugins.operation(ENROL)
        OperationDialog(self, operation, self._theme, operation.parameters().model_dump()).open()

    def _ask_for_file(self) -> None:
        name, _ = QFileDialog.getOpenFileName(
            self, self.tr("Host list"), "", self.tr("Host lists ({known});;All files (*)").format(known=FILE_FILTER)
        )
        if name:
            self.open_file(Path(name))

    def _ask_where(self) -> None:
        name, _ = QFileDialog.getSaveFileName(
            self, self.tr("Save as host list"), "hosts.toml", self.tr("Host lists (*.toml)")
        )
        if name:
            self.save_file(Path(name).with_suffix(".toml"))

    def _say(self, sentence: str, bad: bool) -> None:
        shown = "\n".join(sentence.splitlines()[:_NOTE_LINES])[:_NOTE_LENGTH]
        self.note.setText(sentence if shown == sentence else f"{shown} ...")
        self.note.setToolTip("" if shown == sentence else sentence)
        set_tone(self.note, "bad" if bad else "muted")

    def _restore_size(self) -> None:
        self.resize(*_SIZE)
        self.restoreGeometry(self._state.blob(_GEOMETRY))
        self.splitter.restoreState(self._state.blob(_SPLITTER))


def dropped_file(event: QDropEvent) -> Path | None:
    """The one local file that is dragged; None: it is something else."""
    urls = event.mimeData().urls()
    return Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None


def _facts(data: Mapping[str, Any]) -> HostFacts:
    """The facts of a host from plain JSON, where tuples are lists."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    return HostFacts(**values)
