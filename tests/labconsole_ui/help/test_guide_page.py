"""The guide in the window: read chapter by chapter, and the same as if it were read at once."""

from __future__ import annotations

from PySide6.QtCore import QUrl
from PySide6.QtGui import QImage, QTextDocument
from pytestqt.qtbot import QtBot

from labconsole_ui.help.guide_page import PICTURE_WIDTH, GuidePage, chapters, guide_path
from labconsole_ui.theme.theme import Theme

MOST_CHARACTERS = 12_000
"""Of a chapter: one is read and laid out in a turn of the event loop."""


def blocks(document: QTextDocument) -> list[tuple[str, int]]:
    """The text and the level as a heading of each block."""
    found = [document.findBlockByNumber(number) for number in range(document.blockCount())]
    return [(block.text(), block.blockFormat().headingLevel()) for block in found]


def test_the_guide_is_opened_in_chapters_and_is_whole_then(qtbot: QtBot, theme: Theme) -> None:
    path = guide_path()
    assert path is not None
    text = path.read_text(encoding="utf-8")
    parts = chapters(text)
    assert "".join(parts) == text
    assert len(parts) >= 15 and max(map(len, parts)) <= MOST_CHARACTERS
    whole = QTextDocument()
    whole.setMarkdown(text)
    page = GuidePage(theme, path)
    qtbot.addWidget(page)
    page.show()
    assert page.toPlainText() == "", "it opens as an empty frame"
    qtbot.waitUntil(lambda: page.document().blockCount() == whole.blockCount())
    assert blocks(page.document()) == blocks(whole)


def test_a_hash_in_a_listing_does_not_begin_a_chapter() -> None:
    listing = "```\n# a remark\n```\n"
    assert chapters("# One\n" + listing * 300 + "# Two\n") == ["# One\n" + listing * 300, "# Two\n"]


def test_pictures_are_read_in_the_background_at_their_size(qtbot: QtBot, theme: Theme) -> None:
    path = guide_path()
    assert path is not None
    page = GuidePage(theme, path)
    qtbot.addWidget(page)
    page.resize(900, 700)
    page.show()
    name = QUrl("images/start-light.png")
    address = QUrl.fromLocalFile(str(path.parent / name.toString()))
    place = page.loadResource(QTextDocument.ResourceType.ImageResource.value, address)
    assert isinstance(place, QImage)
    assert place.width() == PICTURE_WIDTH and place.pixelColor(5, 5).alpha() == 0, "nothing was read yet"

    def picture() -> QImage:
        found = page.document().resource(QTextDocument.ResourceType.ImageResource.value, name)
        assert isinstance(found, QImage)
        return found

    qtbot.waitUntil(lambda: "The first five minutes" in page.toPlainText())
    qtbot.waitUntil(lambda: picture().pixelColor(5, 5).alpha() == 255)
    assert picture().size() == place.size()
