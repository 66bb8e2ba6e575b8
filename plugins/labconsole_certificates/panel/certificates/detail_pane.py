"""The pane next to the tree: details of the selection or an inspected file, and its actions."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QCheckBox, QFrame, QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from labconsole.security.pki.records import CertificateRecord
from labconsole_certificates.describing.comparison import Comparison
from labconsole_certificates.describing.description import Description
from labconsole_certificates.panel.certificates.selection_details import SelectionDetails
from labconsole_certificates.panel.description_view import DescriptionView
from labconsole_certificates.panel.export_bar import ExportBar
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import FlowLayout

_LEAST_WIDTH = 360


class DetailPane(QFrame):
    """Shows a `SelectionDetails`. `import_file` and `closed` are about an inspected file, `compared` pins it."""

    import_file = Signal()
    closed = Signal()
    compared = Signal(bool)
    turned = Signal(int)
    """Carries the step to another object of the file: +1 or -1."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self.setMinimumWidth(_LEAST_WIDTH)
        self._shown: SelectionDetails | None = None
        self.title = plain_label("", self)
        self.title.setFont(theme.font(FontRole.HEADING))
        self.title.setWordWrap(True)
        self.hint = plain_label("", self)
        self.hint.setProperty("muted", True)
        self.hint.setWordWrap(True)
        self.view = DescriptionView(theme, self)
        self.view.setStyleSheet("QTextEdit { border: none; }")
        self._rest = QWidget(self)
        self.export_bar = ExportBar(theme, self)
        self.compare_button = self._button(theme, self.tr("Com&pare"), "compare")
        self.compare_button.setCheckable(True)
        self.compare_button.setToolTip(self.tr("Keep this one, and show the next one that is chosen next to it"))
        self.compare_button.toggled.connect(self.compared)
        self.take_in_button = self._button(theme, self.tr("&Import …"), "import")
        self.take_in_button.setProperty("primary", True)
        theme.bind_icon(self.take_in_button, "import", "on_accent")
        self.take_in_button.clicked.connect(lambda _checked: self.import_file.emit())
        self.before_button, self.after_button = QPushButton("‹", self), QPushButton("›", self)
        for button, step, name in (
            (self.before_button, -1, self.tr("The thing before in the file")),
            (self.after_button, 1, self.tr("The next thing in the file")),
        ):
            button.setAccessibleName(name)
            button.setToolTip(name)
            button.clicked.connect(lambda _checked, step=step: self.turned.emit(step))
        self.close_button = QPushButton(self.tr("Close"), self)
        self.close_button.clicked.connect(lambda _checked: self.closed.emit())
        self.more_menu = QMenu(self)
        self.more_button = QToolButton(self)
        self.more_button.setMenu(self.more_menu)
        self.more_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more_button.setAccessibleName(self.tr("More that can be done with it"))
        self.more_button.setToolTip(self.tr("More that can be done with it"))
        theme.bind_icon(self.more_button, "more")
        self.differences = QCheckBox(self.tr("Only what differs"), self)
        self.differences.toggled.connect(lambda _on: self._show_body())
        self._arrange()
        self.show_nothing("")

    @property
    def shown(self) -> SelectionDetails | None:
        """The details that are shown."""
        return self._shown

    def set_actions(self, actions: Sequence[QAction]) -> None:
        """Actions of the menu for a certificate of the database."""
        self.more_menu.addActions(list(actions))

    def show_nothing(self, hint: str) -> None:
        """Show that nothing is selected; `hint` is what could be."""
        self._shown = None
        self._show_header("", hint)
        self._show_body()
        self.export_bar.show_item(None)
        self._show_buttons(None, file=False)

    def show_object(self, shown: SelectionDetails, *, hint: str = "", pinned: bool = False) -> None:
        """Show an object of the database; `pinned`: the next selection is compared with it."""
        self._shown = shown
        self._show_header("" if isinstance(shown.body, Description) else shown.title, hint)
        self._show_body()
        self.export_bar.show_item(shown.export_item)
        self._show_buttons(shown.record, file=False)
        self.compare_button.blockSignals(True)
        self.compare_button.setChecked(pinned)
        self.compare_button.blockSignals(False)

    def show_file(self, shown: SelectionDetails, hint: str, place: int, count: int, *, can_take_in: bool) -> None:
        """Show object number `place` (from 0) of `count` in an inspected file."""
        self._shown = shown
        self._show_header("", hint)
        self._show_body()
        self.export_bar.show_item(shown.export_item)
        self._show_buttons(None, file=True)
        self.take_in_button.setVisible(can_take_in)
        for button, possible in ((self.before_button, place > 0), (self.after_button, place + 1 < count)):
            button.setVisible(count > 1)
            button.setEnabled(possible)

    def say(self, hint: str) -> None:
        """Show a sentence above the details."""
        self._show_header(self.title.text(), hint)

    def _show_header(self, title: str, hint: str) -> None:
        self.title.setText(title)
        self.title.setVisible(bool(title))
        self.hint.setText(hint)
        self.hint.setVisible(bool(hint))

    def _show_body(self) -> None:
        body = self._shown.body if self._shown is not None else None
        self.differences.setVisible(isinstance(body, Comparison))
        self.view.setVisible(body is not None)
        self._rest.setVisible(body is None)
        if isinstance(body, Comparison):
            self.view.show_comparison(body, only_differences=self.differences.isChecked())
        else:
            self.view.show_description(body)

    def _show_buttons(self, record: CertificateRecord | None, *, file: bool) -> None:
        self.more_button.setVisible(record is not None)
        self.compare_button.setVisible(record is not None or (file and self._has_certificate()))
        for button in (self.take_in_button, self.before_button, self.after_button, self.close_button):
            button.setVisible(file)

    def _has_certificate(self) -> bool:
        return self._shown is not None and self._shown.export_item is not None

    def _button(self, theme: Theme, text: str, icon: str) -> QPushButton:
        button = QPushButton(text, self)
        theme.bind_icon(button, icon)
        return button

    def _arrange(self) -> None:
        buttons = QWidget(self)
        flow = FlowLayout(buttons, spacing=8)
        for widget in (
            self.take_in_button,
            self.before_button,
            self.after_button,
            self.close_button,
            self.export_bar,
            self.compare_button,
            self.more_button,
            self.differences,
        ):
            flow.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 6, 6)
        column.setSpacing(6)
        column.addWidget(self.title)
        column.addWidget(self.hint)
        column.addWidget(buttons)
        column.addWidget(self.view, 1)
        column.addWidget(self._rest, 1)
        self.setFocusProxy(self.view)
        self.view.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
