"""The documentation in the window: pages in parts, links, search, the way back, and the chapter that F1 opens."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage, QTextDocument
from PySide6.QtWidgets import QTabBar, QTreeWidget, QTreeWidgetItem
from pytestqt.qtbot import QtBot

from labconsole.clock import wall_now
from labconsole.documentation import Documentation
from labconsole.model.plugin import Plugin, Plugins
from labconsole.processes import Owner
from labconsole_ui.help.document_view import MOST_ROWS, PICTURE_WIDTH, DocumentView, parts_of
from labconsole_ui.help.guide_page import GuidePage
from labconsole_ui.runtime.page_targets import GUIDE, HELP, START
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.menus import bring_forward
from labconsole_ui.theme.theme import Theme, ThemeMode
from tests.helpers.pages import opened
from tests.helpers.post_trial import PostTrial
from tests.labconsole_ui.campaigns import campaign

ROOT = Path(__file__).parents[3]
MOST_CHARACTERS = 4_500
"""Of a part: one is read and laid out in a turn of the event loop."""
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture(scope="module")
def documentation() -> Documentation:
    return Documentation()


@pytest.fixture
def guide(qtbot: QtBot, theme: Theme, documentation: Documentation) -> GuidePage:
    def generated(name: str) -> str:
        return {"generated.md": "# Generated\n\nfrom a definition"}[name]

    page = GuidePage(theme, documentation, generated)
    qtbot.addWidget(page)
    page.resize(1100, 700)
    page.show()
    qtbot.waitUntil(lambda: page.view.complete and page.contents.topLevelItemCount() > 0)
    return page


def blocks(document: QTextDocument) -> list[tuple[str, int]]:
    """The text and the level as a heading of each block."""
    found = [document.findBlockByNumber(number) for number in range(document.blockCount())]
    return [(block.text(), block.blockFormat().headingLevel()) for block in found]


def item_of(tree: QTreeWidget, text: str) -> QTreeWidgetItem:
    flags = Qt.MatchFlag.MatchContains | Qt.MatchFlag.MatchRecursive
    return next(item for item in tree.findItems("", flags) if item.text(0).startswith(text))


def click(qtbot: QtBot, tree: QTreeWidget, item: QTreeWidgetItem) -> None:
    if item.parent() is not None:
        item.parent().setExpanded(True)
    tree.scrollToItem(item)
    qtbot.mouseClick(tree.viewport(), LEFT, pos=tree.visualItemRect(item).center())


def place_of_link(view: DocumentView, target: str) -> QPoint:
    """A point of the viewport where the pointer is over the link."""
    viewport = view.viewport()
    for y in range(0, viewport.height(), 6):
        for x in range(0, viewport.width(), 10):
            if view.anchorAt(QPoint(x, y)) == target:
                return QPoint(x, y)
    raise AssertionError(f"no link to {target} can be seen")


def can_be_seen(view: DocumentView, heading: str) -> bool:
    """Whether all of the page is there, and the heading is in the viewport."""
    document, top = view.document(), view.verticalScrollBar().value()
    for number in range(document.blockCount()):
        block = document.findBlockByNumber(number)
        if block.blockFormat().headingLevel() and block.text() == heading:
            return view.complete and 0 <= document.documentLayout().blockBoundingRect(block).top() - top < view.height()
    return False


# Parts


@pytest.mark.parametrize("name", ["explanation/certificates.md", "explanation/statistics.md"])
def test_a_page_opens_in_parts_and_is_whole_then(
    qtbot: QtBot, theme: Theme, documentation: Documentation, name: str
) -> None:
    page = documentation.page(name)
    assert page is not None
    assert "".join(parts_of(page.text)) == page.text
    assert len(parts_of(page.text)) >= 3
    whole = QTextDocument()
    whole.setMarkdown(page.text)
    view = DocumentView(theme)
    qtbot.addWidget(view)
    view.show()
    view.show_page(page.name, page.text, page.path.parent)
    assert view.toPlainText() == "" and not view.complete, "it opens as an empty frame"
    qtbot.waitUntil(lambda: view.complete)
    assert blocks(view.document()) == blocks(whole)


def test_parts_of_all_pages_are_small(documentation: Documentation) -> None:
    for page in documentation.pages:
        parts = parts_of(page.text)
        assert max(map(len, parts)) <= MOST_CHARACTERS, page.name
        rows = [len(re.findall(r"^\|", table, re.MULTILINE)) for part in parts for table in part.split("\n\n")]
        assert max(rows) <= MOST_ROWS + 2, page.name


def test_a_long_table_is_cut_into_tables_with_its_headings() -> None:
    head, rows = "| A |\n| --- |\n", [f"| {number} |\n" for number in range(2 * MOST_ROWS + 1)]
    first, second, third = parts_of("# One\n\n" + head + "".join(rows) + "\nafter\n")
    assert first == "# One\n\n" + head + "".join(rows[:MOST_ROWS])
    assert second == head + "".join(rows[MOST_ROWS : 2 * MOST_ROWS])
    assert third == head + rows[-1] + "\nafter\n"


def test_a_hash_in_a_listing_does_not_begin_a_part() -> None:
    listing = "```\n# a remark\n| no table |\n```\n"
    assert parts_of("# One\n" + listing * 300 + "# Two\n") == ["# One\n" + listing * 300, "# Two\n"]


# Pictures


def test_pictures_are_read_in_the_background_at_their_size_and_in_the_theme(
    qtbot: QtBot, guide: GuidePage, theme: Theme
) -> None:
    name = "../images/start-light.png"

    def picture() -> QImage:
        found = guide.view.document().resource(QTextDocument.ResourceType.ImageResource.value, name)
        return found if isinstance(found, QImage) else QImage()

    def ground() -> int:
        """The median lightness of the picture; -1 while it is transparent."""
        shown = picture()
        grid = [shown.pixelColor(x, y) for x in range(5, shown.width(), 50) for y in range(5, shown.height(), 50)]
        solid = grid and all(colour.alpha() == 255 for colour in grid)
        return sorted(colour.lightness() for colour in grid)[len(grid) // 2] if solid else -1

    guide.open("tutorials/demo.md")
    place = guide.view.loadResource(QTextDocument.ResourceType.ImageResource.value, name)
    assert isinstance(place, QImage)
    assert place.width() == PICTURE_WIDTH and place.pixelColor(5, 5).alpha() == 0, "nothing was read yet"
    qtbot.waitUntil(lambda: ground() > 200)
    assert picture().size() == place.size()
    try:
        theme.set_mode(ThemeMode.DARK)
        qtbot.waitUntil(lambda: 0 <= ground() < 60)
    finally:
        theme.set_mode(ThemeMode.LIGHT)


# Contents, links, search


def test_contents_have_all_pages_and_open_them(qtbot: QtBot, guide: GuidePage, documentation: Documentation) -> None:
    assert guide.target == "index.md"
    for page in documentation.pages:
        assert item_of(guide.contents, page.title)
    click(qtbot, guide.contents, item_of(guide.contents, "Find, tag and remove runs"))
    assert guide.target == "how-to/find-runs.md"
    qtbot.waitUntil(lambda: "The filter box accepts" in guide.view.toPlainText())
    guide.open("glossary.md")
    current = guide.contents.currentItem()
    assert current is not None and current.text(0) == "Glossary"


def test_links_lead_to_pages_and_headings_and_back(qtbot: QtBot, guide: GuidePage) -> None:
    guide.resize(1100, 400)
    guide.open("how-to/plan-a-key-pool.md")
    qtbot.waitUntil(lambda: guide.view.complete)
    guide.view.verticalScrollBar().setValue(guide.view.verticalScrollBar().maximum())
    link = "../explanation/key-pool-planning.md#the-forecast"
    qtbot.mouseClick(guide.view.viewport(), LEFT, pos=place_of_link(guide.view, link))
    assert guide.target == "explanation/key-pool-planning.md#the-forecast"
    qtbot.waitUntil(lambda: can_be_seen(guide.view, "The forecast"))
    assert guide.view.verticalScrollBar().value() > 100
    assert guide.back_button.isEnabled() and not guide.forward_button.isEnabled()
    qtbot.mouseClick(guide.back_button, LEFT)
    assert guide.target == "how-to/plan-a-key-pool.md"
    qtbot.keyClick(guide, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    qtbot.waitUntil(lambda: guide.target == "index.md")
    assert not guide.back_button.isEnabled()
    qtbot.mouseClick(guide.forward_button, LEFT)
    qtbot.mouseClick(guide.forward_button, LEFT)
    assert guide.target == "explanation/key-pool-planning.md#the-forecast"


def test_search_lists_sections_and_opens_them(qtbot: QtBot, guide: GuidePage) -> None:
    qtbot.keyClick(guide, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    assert guide.focusWidget() is guide.search_field
    qtbot.keyClicks(guide.search_field, "trust bundles")
    assert guide.hits.isVisible() and not guide.contents.isVisible()
    first = guide.hits.topLevelItem(0)
    assert first.isExpanded() and "Trust bundles" in [first.child(at).text(0) for at in range(first.childCount())]
    qtbot.keyClick(guide.search_field, Qt.Key.Key_Return)
    assert guide.target.endswith("#trust-bundles")
    qtbot.waitUntil(lambda: can_be_seen(guide.view, "Trust bundles"))
    other = guide.hits.topLevelItem(1)
    click(qtbot, guide.hits, other.child(0))
    qtbot.waitUntil(lambda: can_be_seen(guide.view, other.child(0).text(0)))
    click(qtbot, guide.hits, other)
    assert "#" not in guide.target
    qtbot.waitUntil(lambda: can_be_seen(guide.view, other.text(0)))
    qtbot.keyClicks(guide.search_field, " xylophone")
    assert [guide.hits.topLevelItem(0).text(0), guide.hits.topLevelItemCount()] == [
        "No section has all of these words.",
        1,
    ]
    guide.search_field.clear()
    assert guide.contents.isVisible()


def test_a_page_may_be_generated_and_a_wrong_one_changes_nothing(qtbot: QtBot, guide: GuidePage) -> None:
    guide.open("generated.md")
    qtbot.waitUntil(lambda: "from a definition" in guide.view.toPlainText())
    guide.open("how-to/nothing.md")
    assert guide.target == "generated.md"


# F1


def press_f1(qtbot: QtBot, window: MainWindow) -> str:
    """The page of the documentation that is shown then; its tab is closed again."""
    qtbot.wait(10)  # what was opened is shown now
    qtbot.keyClick(window.focusWidget() or window, Qt.Key.Key_F1)
    page = window.pages.currentWidget()
    assert isinstance(page, GuidePage)
    window.pages.close_page(window.pages.indexOf(page))
    return page.target


CHAPTERS = {
    START: "tutorials/demo.md",
    HELP: "reference/window.md#keyboard",
    "trial:amqp.messaging": "explanation/amqp-trial.md",
    "page:v2x:inspection": "how-to/inspect-a-capture.md",
    "trial:keypool.signing-service": "reference/key-pool-page.md",
    "trial:keypool.simulation": "explanation/key-pool-simulation.md",
    "trial:keypool.step-times": "explanation/key-pool-steps.md",
    "trial:keypool.device-benchmark": "explanation/key-pool-steps.md",
    "page:certificates:certificates": "reference/certificates-page.md#certificates",
}
TABS = {
    "Requests": "how-to/request-a-certificate.md",
    "Exchange": "tutorials/first-exchange.md",
    "Trust": "how-to/exchange-trust.md",
    "Rotation": "how-to/rotate-a-certificate.md",
    "Revocation": "how-to/revoke-a-certificate.md",
    "Audit": "reference/certificates-page.md#audit",
    "Planner": "how-to/plan-a-key-pool.md",
}


def test_f1_opens_the_chapter_of_each_page(qtbot: QtBot, shown_window: MainWindow) -> None:
    shown = {}
    for page in CHAPTERS:
        opened(shown_window, page)
        shown[page] = press_f1(qtbot, shown_window)
    assert shown == CHAPTERS


def test_f1_opens_the_chapter_of_each_tab(qtbot: QtBot, shown_window: MainWindow) -> None:
    shown = {}
    for page in ("page:certificates:certificates", "trial:keypool.signing-service"):
        opened(shown_window, page)
        qtbot.wait(10)
        for bar in shown_window.pages.currentWidget().findChildren(QTabBar):
            for index in range(bar.count()):
                shown_window.show_page(page)
                qtbot.mouseClick(bar, LEFT, pos=bar.tabRect(index).center())
                shown[bar.tabText(index)] = press_f1(qtbot, shown_window)
    assert TABS.items() <= shown.items()


def test_f1_opens_the_chapter_of_a_run_a_comparison_and_each_pane(
    qtbot: QtBot, window: MainWindow, services: Services
) -> None:
    runs = services.bridge.queue.store.add_campaign(
        campaign("A", "B"), Owner(2**22 + 1, 1.0, "another boot"), wall_now()
    )
    window.runs.open_run(runs[0])
    assert press_f1(qtbot, window) == "reference/window.md#run-view"
    window.runs.compare_runs(runs)
    assert press_f1(qtbot, window) == "explanation/statistics.md"
    for dock, chapter in (
        (window.history_dock, "how-to/find-runs.md"),
        (window.queue_dock, "how-to/run-a-campaign.md#follow-the-queue"),
        (window.live_dock, "reference/window.md#live-plots"),
        (window.log_dock, "reference/window.md#log"),
    ):
        bring_forward(dock)
        assert press_f1(qtbot, window) == chapter
    bring_forward(window.navigation_dock)
    assert press_f1(qtbot, window) == "explanation/statistics.md", "the page in front"


def test_f1_opens_the_generated_page_of_another_plugins_trial(
    qtbot: QtBot, services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    target = f"{PostTrial.__module__}:PostTrial"
    plugin = Plugin(name="post", title="Post", description="Letters", trials={PostTrial.kind: target})
    window = open_window(replace(services, plugins=Plugins((*services.plugins.found, plugin))))
    opened(window, f"trial:{PostTrial.kind}")
    qtbot.wait(10)
    qtbot.keyClick(window.focusWidget() or window, Qt.Key.Key_F1)
    page = window.pages.currentWidget()
    assert isinstance(page, GuidePage)
    qtbot.waitUntil(lambda: page.view.complete)
    assert PostTrial.title in page.view.toPlainText()
    assert "Metrics" in page.view.toPlainText()


def test_every_chapter_that_the_sources_name_is_there(documentation: Documentation) -> None:
    named = [
        target
        for folder in ("ui", "plugins")
        for path in (ROOT / folder).rglob("*.py")
        for target in re.findall(
            r'(?:set_chapter\(\w+, |chapter: ClassVar\[str\] = )"([^"]+)"', path.read_text("utf-8")
        )
    ]
    assert len(named) > 20
    for target in named:
        name, _, anchor = target.partition("#")
        page = documentation.page(name)
        assert page is not None, target
        assert not anchor or [section.anchor for section in page.sections].count(anchor) == 1, target


def test_shift_f1_opens_the_contents(qtbot: QtBot, shown_window: MainWindow) -> None:
    qtbot.keyClick(shown_window, Qt.Key.Key_F1, Qt.KeyboardModifier.ShiftModifier)
    assert shown_window.pages.current_key == GUIDE
    page = shown_window.pages.currentWidget()
    assert isinstance(page, GuidePage) and page.target == "index.md"
