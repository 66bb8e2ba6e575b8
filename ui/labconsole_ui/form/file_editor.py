"""A file or folder parameter: typed, browsed for, or dropped onto the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QComboBox, QFileDialog, QLineEdit, QPushButton, QWidget

from labconsole.model.field_spec import FieldKind, FieldSpec
from labconsole_ui.form.editors import Editor, WheelIgnoringComboBox


class FileEditor(Editor):
    """A path; the file itself is read by the trial, not by the window."""

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        super().__init__(spec, parent)
        self.line = _DropLine(self)
        self.line.setClearButtonEnabled(True)
        empty_is_fine = spec.optional or spec.default == ""
        if spec.kind is FieldKind.FOLDER:
            hint = self.tr("Choose a folder or drop it here")
        elif spec.kind is FieldKind.NEW_FILE:
            hint = spec.empty or self.tr("Name of a new file")
        elif empty_is_fine:
            hint = self.tr("Not set — choose a file or drop it")
        else:
            hint = self.tr("Choose a file or drop it here")
        self.line.setPlaceholderText(hint)
        self.line.textChanged.connect(lambda _text: self.edited.emit())
        self.adopt(self.line, stretch=1)
        self.browse_button = QPushButton(self.tr("Browse…"), self)
        self.browse_button.setAccessibleName(self.tr("Browse for: {title}").format(title=spec.title))
        if spec.kind is FieldKind.SECRET_FILE:
            self.browse_button.setToolTip(self.tr("The file must be readable by you alone (mode 0600)."))
        self.browse_button.clicked.connect(self._browse)
        self.inner.addWidget(self.browse_button)

    def value(self) -> Any:
        text = self.line.text().strip()
        return None if self.spec.optional and not text else text

    def set_value(self, value: Any) -> None:
        self.line.setText("" if value is None else str(value))

    def _browse(self) -> None:
        start = Path(self.line.text()).expanduser().parent if self.line.text() else Path.home()
        if self.spec.kind is FieldKind.FOLDER:
            chosen = QFileDialog.getExistingDirectory(self, self.spec.title, str(start))
        elif self.spec.kind is FieldKind.NEW_FILE:
            # Qt would ask whether to overwrite a file, and none is overwritten.
            kept = QFileDialog.Option.DontConfirmOverwrite
            chosen, _ = QFileDialog.getSaveFileName(self, self.spec.title, str(start), options=kept)
        else:
            chosen, _ = QFileDialog.getOpenFileName(self, self.spec.title, str(start))
        if chosen:
            self.line.setText(chosen)


class OpenChoiceEditor(Editor):
    """One of the suggested values, or a file: picked from the list, browsed for, or dropped."""

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        super().__init__(spec, parent)
        self.combo = WheelIgnoringComboBox(self)
        self.combo.setEditable(True)
        self.combo.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.line = _DropLine(self.combo)
        self.combo.setLineEdit(self.line)
        for value, label in spec.choices:
            self.combo.addItem(label, value)
        self.line.textChanged.connect(lambda _text: self.edited.emit())
        self.adopt(self.combo, stretch=1)
        self.line.setAccessibleName(spec.title)
        self.browse_button = QPushButton(self.tr("Browse…"), self)
        self.browse_button.setAccessibleName(self.tr("Browse for: {title}").format(title=spec.title))
        self.browse_button.clicked.connect(self._browse)
        self.inner.addWidget(self.browse_button)

    def value(self) -> Any:
        text = self.line.text().strip()
        return next((value for value, label in self.spec.choices if label == text), text)

    def set_value(self, value: Any) -> None:
        self.line.setText(next((label for choice, label in self.spec.choices if choice == value), str(value or "")))

    def _browse(self) -> None:
        chosen, _ = QFileDialog.getOpenFileName(self, self.spec.title, str(Path.home()))
        if chosen:
            self.line.setText(chosen)


class _DropLine(QLineEdit):
    """A line that accepts a dropped local file as its path."""

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()
        else:
            super().dragEnterEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:
        files = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
        if files:
            self.setText(files[0])
            event.acceptProposedAction()
        else:
            super().dropEvent(event)
