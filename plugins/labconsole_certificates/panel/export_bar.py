"""Exports for other States: copied as PEM, saved in one of several formats, dragged as a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QMimeData, QPoint, Qt, QTemporaryDir, QUrl, Signal
from PySide6.QtGui import QDrag, QGuiApplication, QMouseEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QHBoxLayout, QLabel, QPushButton, QWidget

from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.labels import plain_tooltip

_UNSAFE = re.compile(r"[^\w.@-]+")


@dataclass(frozen=True)
class ExportItem:
    """A public object to export. `name` is that of its file without an ending.

    `forms` are its contents by ending (`pem`, `der`): the first one is copied, if it is text, and dragged.
    """

    name: str
    what: str
    """A short label: `request of State A`."""
    forms: dict[str, bytes] = field(default_factory=dict)

    def file_name(self, ending: str) -> str:
        """A name that every file system accepts, in any script."""
        return f"{_UNSAFE.sub('-', self.name).strip('-.') or 'certificate'}.{ending}"


class ExportBar(QWidget):
    """Buttons for one `ExportItem`, and a handle to drag it. `exported` is emitted after an export, with its way.

    `failed` carries a sentence where it could not be written.
    """

    exported = Signal(str)
    failed = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._export_item = ExportItem("", "")
        self.handle = _DragHandle(theme, self._drag, self)
        self.copy_button = QPushButton(self.tr("Copy"), self)
        self.copy_button.clicked.connect(lambda _checked: self.copy())
        theme.bind_icon(self.copy_button, "copy")
        self.save_button = QPushButton(self.tr("Save as …"), self)
        self.save_button.clicked.connect(lambda _checked: self._choose())
        theme.bind_icon(self.save_button, "save")
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(8)
        for widget in (self.copy_button, self.save_button, self.handle):
            line.addWidget(widget)
        self._files = QTemporaryDir()
        self.show_item(None)

    def show_item(self, export_item: ExportItem | None) -> None:
        """Offer this object from now on; None hides everything."""
        self._export_item = export_item or ExportItem("", "")
        self.setVisible(export_item is not None)
        self.copy_button.setToolTip(
            plain_tooltip(self.tr("Copy the {what} as PEM").format(what=self._export_item.what))
        )
        self.save_button.setToolTip(
            plain_tooltip(self.tr("Save the {what} as a file").format(what=self._export_item.what))
        )
        self.handle.setToolTip(
            plain_tooltip(self.tr("Drag the {what} out as a file").format(what=self._export_item.what))
        )
        self.copy_button.setVisible("pem" in self._export_item.forms)

    def copy(self) -> None:
        """Copy it as PEM."""
        QGuiApplication.clipboard().setText(self._export_item.forms["pem"].decode("ascii"))
        self.exported.emit(self.tr("The {what} was copied as PEM.").format(what=self._export_item.what))

    def save(self, path: Path) -> None:
        """Save it in the format of the path's ending (the longest, as in `.chain.pem`), else in the first."""
        forms = self._export_item.forms
        named = [ending for ending in sorted(forms, key=len) if path.name.lower().endswith(f".{ending}")]
        content = forms[named[-1]] if named else next(iter(forms.values()))
        try:
            path.write_bytes(content)
        except OSError as error:
            self.failed.emit(
                self.tr("{path} cannot be written: {why}. Choose another place.").format(path=path, why=error.strerror)
            )
            return
        self.exported.emit(self.tr("The {what} was saved as {path}.").format(what=self._export_item.what, path=path))

    def mime_data(self) -> QMimeData:
        """The dragged data: a file, and its text if it is PEM."""
        ending, content = next(iter(self._export_item.forms.items()))
        path = Path(self._files.filePath(self._export_item.file_name(ending)))
        path.write_bytes(content)
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path))])
        if "pem" in self._export_item.forms:
            data.setText(self._export_item.forms["pem"].decode("ascii"))
        return data

    def _choose(self) -> None:
        export_item = self._export_item
        kinds = ";;".join(f"{ending.upper()} (*.{ending})" for ending in export_item.forms)
        first = Path.home() / export_item.file_name(next(iter(export_item.forms)))
        name, kind = QFileDialog.getSaveFileName(self, self.tr("Save as"), str(first), kinds)
        if name:
            self.save(self._ended(Path(name), kind.partition(" ")[0].lower()))

    def _ended(self, path: Path, ending: str) -> Path:
        """`path` with the ending of the chosen kind, unless the operator typed another one."""
        if path.name.lower().endswith(f".{ending}"):
            return path
        proposed = path.suffix == "" or path.suffix.removeprefix(".").lower() in self._export_item.forms
        return path.with_suffix(f".{ending}") if proposed else path

    def _drag(self) -> None:
        if drag_mime_data(self, self.mime_data()):
            self.exported.emit(self.tr("The {what} was dragged out.").format(what=self._export_item.what))


def drag_mime_data(source: QWidget, data: QMimeData) -> bool:
    """Let the operator drag `data` out; returns whether a drop target accepted it."""
    drag = QDrag(source)
    drag.setMimeData(data)
    return drag.exec(Qt.DropAction.CopyAction) != Qt.DropAction.IgnoreAction


class _DragHandle(QLabel):
    """Starts a drag once the pointer has moved far enough with the button down."""

    def __init__(self, theme: Theme, drag: Callable[[], None], parent: QWidget) -> None:
        super().__init__(parent)
        self._theme, self._start_drag = theme, drag
        self._pressed: QPoint | None = None
        self.setCursor(Qt.CursorShape.OpenHandCursor)
        self.setContentsMargins(4, 0, 4, 0)
        self.setAccessibleName(self.tr("Drag out as a file"))
        theme.changed.connect(self._paint)
        self._paint()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._pressed = event.position().toPoint()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._pressed = None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        far = QApplication.startDragDistance()
        if self._pressed is not None and (event.position().toPoint() - self._pressed).manhattanLength() >= far:
            self._pressed = None
            self._start_drag()

    def _paint(self) -> None:
        self.setPixmap(self._theme.pixmap("file", 20, "link"))
