"""The editor that collects shares from files or typed words: "1 of 2 present: share 1 or 3 is missing"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from labconsole.errors import UserError
from labconsole.model.field_spec import FieldSpec
from labconsole.security.secrets import Secret
from labconsole_keypool.shares.secret_sharing import Share, collection_progress
from labconsole_keypool.shares.share_files import ShareForm, from_text, read_share, to_text
from labconsole_keypool.shares.share_operations import SHARE_KEY
from labconsole_ui.form.editors import Editor
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label


class ShareEditor(Editor):
    """Collects shares and returns them as secrets; the parameter itself (files) stays empty."""

    wide = True

    def __init__(self, spec: FieldSpec, parent: QWidget, theme: Theme) -> None:
        super().__init__(spec, parent)
        self._shares: list[Share] = []
        title = plain_label(self.tr("Shares"), self)
        title.setFont(theme.font(FontRole.STRONG))
        self.state = plain_label("", self)
        self.state.setWordWrap(True)
        self.fault = plain_label("", self)
        self.fault.setProperty("tone", "bad")
        self.fault.setWordWrap(True)
        self.words = QPlainTextEdit(self)
        self.words.setPlaceholderText(self.tr("Type the words of one share, as printed on its sheet"))
        self.words.setFixedHeight(84)
        self.words.setTabChangesFocus(True)
        self.words.textChanged.connect(self._update_words_button)
        self.words_button = QPushButton(self.tr("Add these words"), self)
        self.words_button.clicked.connect(self._add_words)
        self.files_button = QPushButton(self.tr("Add files …"), self)
        self.files_button.clicked.connect(self._choose_files)
        self.forget_button = QPushButton(self.tr("Start over"), self)
        self.forget_button.clicked.connect(self.forget)
        column_widget = QWidget(self)
        column = QVBoxLayout(column_widget)
        column.setContentsMargins(0, 4, 0, 4)
        column.setSpacing(6)
        buttons = QHBoxLayout()
        for button in (self.words_button, self.files_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        buttons.addWidget(self.forget_button)
        for widget in (title, self.state, self.words):
            column.addWidget(widget)
        column.addLayout(buttons)
        column.addWidget(self.fault)
        self.adopt(column_widget, stretch=1)
        column_widget.setFocusProxy(self.words)
        self._show()
        self._update_words_button()

    def value(self) -> list[str]:
        return []

    def set_value(self, value: Any) -> None:
        """Ignore `value`: the operation itself reads files that a profile names."""

    def secrets(self) -> dict[str, Secret] | None:
        """The shares by their keys, once there are enough; None before."""
        if not self._shares or not collection_progress(self._shares).complete:
            return None
        return {
            SHARE_KEY.format(number=number): Secret(to_text(share, ShareForm.FILES))
            for number, share in enumerate(self._shares, 1)
        }

    def add_files(self, paths: list[Path]) -> None:
        """Add the shares of these files, up to the first that is not a share, whose sentence is shown."""
        self._add_shares([lambda path=path: read_share(path) for path in paths])

    def forget(self) -> None:
        """Remove all shares."""
        self._shares.clear()
        self.fault.clear()
        self._show()
        self.edited.emit()

    def _add_words(self) -> None:
        text = self.words.toPlainText()
        if self._add_shares([lambda: from_text(text)]):
            self.words.clear()

    def _choose_files(self) -> None:
        dialog = QFileDialog(self, self.tr("Files of shares"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.filesSelected.connect(lambda names: self.add_files([Path(name) for name in names]))
        dialog.open()

    def _add_shares(self, readings: list[Any]) -> bool:
        """Add shares of one set; returns whether all were valid and new. Those before an invalid one stay."""
        self.fault.clear()
        try:
            for read in readings:
                share = read()
                collection_progress([*self._shares, share])
                self._shares.append(share)
        except UserError as error:
            self.fault.setText(str(error))
        self.fault.setVisible(bool(self.fault.text()))
        self._show()
        self.edited.emit()
        return not self.fault.text()

    def _update_words_button(self) -> None:
        self.words_button.setEnabled(bool(self.words.toPlainText().strip()))

    def _show(self) -> None:
        self.state.setText(f"{collection_progress(self._shares).sentence}.")
        self.fault.setVisible(bool(self.fault.text()))
        self.forget_button.setEnabled(bool(self._shares))
