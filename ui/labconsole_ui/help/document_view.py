"""A page of the documentation: Markdown in parts, with the pictures of the theme and working links."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QImage,
    QImageReader,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QTextDocumentFragment,
    QTextFrameFormat,
    QTextLength,
    QTextOption,
    QTextTable,
)
from PySide6.QtWidgets import QTextBrowser, QWidget

from labconsole.documentation import anchor_of, target_of
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.incremental import EventLoopQueue
from labconsole_ui.theme.colours import Colours
from labconsole_ui.theme.theme import Theme

PICTURE_WIDTH = 600
HEADING_SPACE = 16
"""Above a heading, px."""
LEAST_PART = 1_200
TABLE_WIDTH = 99
"""Of the page, in percent: the borders of a table are not part of its width."""
MOST_ROWS = 8
"""Of a table in a part: the layout of a table takes some milliseconds for each row."""


class DocumentView(QTextBrowser):
    """Shows a page part by part, so that no turn of the event loop takes long.

    `link_clicked` carries the target of a link within the documentation; other links open in the browser.
    """

    link_clicked = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Page of the documentation"))
        self.setOpenLinks(False)
        self.setFrameShape(QTextBrowser.Shape.NoFrame)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self._theme = theme
        self._turns = EventLoopQueue(self)
        self._background = Background(self)
        self._name = ""
        self._text = ""
        self._folder = Path()
        self._anchor = ""
        self.complete = True
        """Whether all parts of the page are shown."""
        self.anchorClicked.connect(self._follow)
        theme.changed.connect(self._show)

    def show_page(self, name: str, text: str, folder: Path, anchor: str = "") -> None:
        """Show a page from its beginning, or from the heading with this anchor; pictures are named from `folder`."""
        self._anchor, self._folder = anchor, folder
        if (name, text) == (self._name, self._text):
            self._scroll_to_anchor()
            return
        self._name, self._text = name, text
        self._show()

    def _show(self) -> None:
        self.clear()
        self.document().setDocumentMargin(28)
        self.complete = False
        self._turns.replace([*(partial(self._append, part) for part in parts_of(self._text)), self._finish])

    def _append(self, text: str) -> None:
        part = QTextDocument()
        part.setMarkdown(text)
        _arrange(part, self._theme.colours)
        document = self.document()
        cursor = QTextCursor(document)
        cursor.movePosition(QTextCursor.MoveOperation.End)
        first = part.firstBlock()
        if document.isEmpty():
            cursor.setBlockFormat(first.blockFormat())
            cursor.setBlockCharFormat(first.charFormat())
        else:
            # A fragment's first block takes the format of the block that it is put into.
            cursor.insertBlock(first.blockFormat(), first.charFormat())
        cursor.insertFragment(QTextDocumentFragment(part))
        if self._anchor:
            self._scroll_to_anchor()

    def _finish(self) -> None:
        self.complete = True

    def _scroll_to_anchor(self) -> None:
        """Scroll to the heading, if its part is shown already; to the top without an anchor."""
        if not self._anchor:
            self.verticalScrollBar().setValue(0)
            return
        block = self._heading(self._anchor)
        if block is not None:
            top = self.document().documentLayout().blockBoundingRect(block).top()
            self.verticalScrollBar().setValue(int(top) - 12)

    def _heading(self, anchor: str) -> QTextBlock | None:
        block = self.document().begin()
        while block.isValid():
            if block.blockFormat().headingLevel() and anchor_of(block.text()) == anchor:
                return block
            block = block.next()
        return None

    def _follow(self, url: QUrl) -> None:
        if url.scheme() in ("http", "https"):
            QDesktopServices.openUrl(url)
        else:
            self.link_clicked.emit(target_of(self._name, url.toString()))

    # Pictures

    def loadResource(self, kind: int, name: QUrl | str) -> Any:  # noqa: N802 - Qt names it
        """Pictures no wider than the page."""
        if kind != QTextDocument.ResourceType.ImageResource.value:
            return super().loadResource(kind, name)
        url = QUrl(name)
        path = self._picture(self._folder / url.toString())
        size = QImageReader(str(path)).size()
        if size.width() > PICTURE_WIDTH:
            size = QSize(PICTURE_WIDTH, size.height() * PICTURE_WIDTH // size.width())
        place = QImage(size, QImage.Format.Format_ARGB32)
        place.fill(Qt.GlobalColor.transparent)

        def show(picture: QImage) -> None:
            self.document().addResource(QTextDocument.ResourceType.ImageResource, url, picture)
            self.viewport().update()

        self._background.submit(partial(_read_picture, path, size), show, lambda _sentence: None)
        return place

    def _picture(self, path: Path) -> Path:
        """The picture that belongs to the theme, if there is one."""
        dark = path.with_name(path.name.replace("-light.", "-dark."))
        return dark if self._theme.dark and dark.is_file() else path


def _arrange(part: QTextDocument, colours: Colours) -> None:
    """Give headings and tables room, and tables the width of the page."""
    block = part.begin()
    while block.isValid():
        level = block.blockFormat().headingLevel()
        if level:
            spaced = block.blockFormat()
            spaced.setTopMargin(HEADING_SPACE if level > 1 else 0)
            spaced.setBottomMargin(HEADING_SPACE / 2)
            QTextCursor(block).setBlockFormat(spaced)
        block = block.next()
    for frame in part.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            framed = frame.format()
            framed.setWidth(QTextLength(QTextLength.Type.PercentageLength, TABLE_WIDTH))
            framed.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
            framed.setBorderBrush(QColor(colours.border))
            framed.setCellPadding(5)
            framed.setTopMargin(HEADING_SPACE / 2)
            framed.setBottomMargin(HEADING_SPACE / 2)
            frame.setFormat(framed)


def _read_picture(path: Path, size: QSize) -> QImage:
    return QImage(str(path)).scaled(size, mode=Qt.TransformationMode.SmoothTransformation)


def parts_of(text: str) -> list[str]:
    """Markdown cut before headings into parts of some length, and long tables into tables with the same headings."""
    parts: list[list[str]] = [[]]
    head: list[str] = []
    rows, listing = 0, False
    for line in text.splitlines(keepends=True):
        listing ^= line.startswith("```")
        rows = rows + 1 if line.startswith("|") and not listing else 0
        head = [*head[: rows - 1], line] if 0 < rows <= 2 else head
        if line.startswith("#") and not listing and sum(map(len, parts[-1])) >= LEAST_PART:
            parts.append([])
        elif rows > 2 and (rows - 2) % MOST_ROWS == 1 and rows > 3:
            parts.append([*head])
        parts[-1].append(line)
    return ["".join(part) for part in parts]
