"""The operator's guide (`docs/guide.md`), read in the window, with its pictures and without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QImage, QTextDocument
from PySide6.QtWidgets import QTextBrowser

import labconsole
from labconsole_ui.theme import Theme

PICTURE_WIDTH = 600


def guide_path() -> Path | None:
    """Where the guide lies, if it came with this installation."""
    path = Path(labconsole.__file__).resolve().parent.parent / "docs" / "guide.md"
    return path if path.is_file() else None


class GuidePage(QTextBrowser):
    """Shows the guide; its links to other pages of the documentation work."""

    def __init__(self, theme: Theme, guide: Path) -> None:
        super().__init__()
        self.setAccessibleName(self.tr("Operator's guide"))
        self.setOpenExternalLinks(True)
        self.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.setSource(QUrl.fromLocalFile(str(guide)))
        self.document().setDocumentMargin(28)
        theme.changed.connect(self.reload)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:  # noqa: N802 - Qt names it
        """Pictures no wider than the page; everything else as ever."""
        if kind == QTextDocument.ResourceType.ImageResource.value:
            picture = QImage(self.source().resolved(QUrl(name)).toLocalFile())
            if picture.width() > PICTURE_WIDTH:
                return picture.scaledToWidth(PICTURE_WIDTH, Qt.TransformationMode.SmoothTransformation)
            return picture
        return super().loadResource(kind, name)
