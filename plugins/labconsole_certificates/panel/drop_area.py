"""An area for files and text from other States: dropped, chosen or pasted."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.file_drop_area import FileDropArea

FILES = "PEM, DER, PKCS#12, CMS (*.pem *.der *.csr *.crt *.cer *.crl *.p10 *.p12 *.pfx *.cms *.bundle)"


class DropArea(FileDropArea):
    """`files` carries the paths of dropped or chosen files, `pasted` the bytes of a pasted text."""

    pasted = Signal(bytes)

    def __init__(self, theme: Theme, text: str, parent: QWidget | None = None) -> None:
        super().__init__(theme, text, FILES, parent)
        self.paste_button = QPushButton(self.tr("Paste"), self)
        self.paste_button.clicked.connect(lambda _checked: self.paste())
        self.line.insertWidget(self.line.indexOf(self.choose_button), self.paste_button)
        self.setTabOrder(self.paste_button, self.choose_button)

    def accepts(self, content: QMimeData) -> bool:
        """Files, and text."""
        return super().accepts(content) or content.hasText()

    def take(self, content: QMimeData) -> None:
        """Emit files, or else the text."""
        if any(url.isLocalFile() for url in content.urls()):
            super().take(content)
        elif content.hasText() and content.text().strip():
            self.pasted.emit(content.text().encode())
