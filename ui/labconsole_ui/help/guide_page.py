"""The operator's guide (`docs/guide.md`), read in the window, with its pictures and without a network."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QSize, Qt, QUrl
from PySide6.QtGui import QImage, QImageReader, QTextCursor, QTextDocument, QTextDocumentFragment
from PySide6.QtWidgets import QTextBrowser

import labconsole
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.incremental import EventLoopQueue
from labconsole_ui.theme.theme import Theme

PICTURE_WIDTH = 600
MIN_CHAPTER = 2_000


def guide_path() -> Path | None:
    """Where the guide lies, if it came with this installation."""
    path = Path(labconsole.__file__).resolve().parent.parent / "docs" / "guide.md"
    return path if path.is_file() else None


class GuidePage(QTextBrowser):
    """Shows the guide, chapter by chapter so that the window goes on; its links to other pages work."""

    def __init__(self, theme: Theme, guide: Path) -> None:
        super().__init__()
        self.setAccessibleName(self.tr("Operator's guide"))
        self.setOpenExternalLinks(True)
        self.setFrameShape(QTextBrowser.Shape.NoFrame)
        self._turns = EventLoopQueue(self)
        self._background = Background(self)
        self._guide = guide
        self._turns.add(self._open)
        theme.changed.connect(self.reload)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:  # noqa: N802 - Qt names it
        """Pictures no wider than the page; of a page of text its first chapter, to which the others are appended."""
        if kind == QTextDocument.ResourceType.ImageResource.value:
            return self._place_of_picture(QUrl(name))
        loaded = super().loadResource(kind, name)
        if kind != QTextDocument.ResourceType.MarkdownResource.value or not isinstance(loaded, QByteArray):
            return loaded
        first, *others = chapters(bytes(loaded.data()).decode())
        self._turns.replace([partial(self._append, text) for text in others])
        return first

    def _place_of_picture(self, url: QUrl) -> QImage:
        """An empty picture of the right size; what belongs there is read and scaled in the background."""
        path = self.source().resolved(url).toLocalFile()
        size = QImageReader(path).size()
        if size.width() > PICTURE_WIDTH:
            size = QSize(PICTURE_WIDTH, size.height() * PICTURE_WIDTH // size.width())
        place = QImage(size, QImage.Format.Format_ARGB32)
        place.fill(Qt.GlobalColor.transparent)

        def show(picture: QImage) -> None:
            self.document().addResource(QTextDocument.ResourceType.ImageResource, url, picture)
            self.viewport().update()

        self._background.submit(partial(_read_picture, path, size), show, lambda _sentence: None)
        return place

    def _open(self) -> None:
        self.setSource(QUrl.fromLocalFile(str(self._guide)))
        self.document().setDocumentMargin(28)

    def _append(self, text: str) -> None:
        chapter = QTextDocument()
        chapter.setMarkdown(text)
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        # A fragment's first block takes the format of the block that it is put into.
        cursor.insertBlock(chapter.firstBlock().blockFormat(), chapter.firstBlock().charFormat())
        cursor.insertFragment(QTextDocumentFragment(chapter))


def _read_picture(path: str, size: QSize) -> QImage:
    return QImage(path).scaled(size, mode=Qt.TransformationMode.SmoothTransformation)


def chapters(text: str) -> list[str]:
    """A page of Markdown cut before headings, into parts of at least `MIN_CHAPTER` characters but for the last."""
    parts: list[list[str]] = [[]]
    listing = False
    for line in text.splitlines(keepends=True):
        listing ^= line.startswith("```")
        if line.startswith("#") and not listing and sum(map(len, parts[-1])) >= MIN_CHAPTER:
            parts.append([])
        parts[-1].append(line)
    return ["".join(part) for part in parts]
