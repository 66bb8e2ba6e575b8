"""The documentation in the window: contents, search, and the page that was chosen."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QSplitter,
    QStackedWidget,
    QToolButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from labconsole.documentation import INDEX, Documentation
from labconsole_ui.help.document_view import DocumentView
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.incremental import EventLoopQueue
from labconsole_ui.theme.theme import Theme

LIST_WIDTH = 290
ROW_HEIGHT = 28
_TARGET = int(Qt.ItemDataRole.UserRole)


class GuidePage(QWidget):
    """Contents, or what the search has found, at the left; a page at the right, with the way back.

    `generated` returns the text of a page that the documentation does not have, by its name; it raises KeyError.
    """

    def __init__(self, theme: Theme, documentation: Documentation, generated: Callable[[str], str]) -> None:
        super().__init__()
        self._documentation = documentation
        self._generated = generated
        self._past: list[str] = []
        self._future: list[str] = []
        self.target = ""
        """The page that is shown, with its anchor."""
        self.view = DocumentView(theme)
        self.view.link_clicked.connect(self.open)
        self.search_field = QLineEdit()
        self.search_field.setPlaceholderText(self.tr("Search the documentation"))
        self.search_field.setAccessibleName(self.search_field.placeholderText())
        self.search_field.setClearButtonEnabled(True)
        self.search_field.textChanged.connect(self._search)
        self.search_field.returnPressed.connect(self._open_first_hit)
        self.contents = self._tree(self.tr("Contents of the documentation"))
        self.hits = self._tree(self.tr("Sections found"))
        self._lists = QStackedWidget()
        self._lists.addWidget(self.contents)
        self._lists.addWidget(self.hits)
        self.back_button = self._button(theme, "chevron-left", self.tr("Back"), "Alt+Left", self.go_back)
        self.forward_button = self._button(theme, "chevron-right", self.tr("Forward"), "Alt+Right", self.go_forward)
        find = QAction(self.tr("Find"), self)
        find.setShortcut(QKeySequence.StandardKey.Find)
        find.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        find.triggered.connect(self.search_field.setFocus)
        self.addAction(find)
        self._arrange()
        self._turns = EventLoopQueue(self)
        self._turns.add(self._fill_contents)
        self._background = Background(self)
        self._background.submit(documentation.read, lambda _none: None, lambda _sentence: None)
        self.open(INDEX)

    def open(self, target: str) -> None:
        """Show a page (`how-to/install.md`), or the section of it that its anchor names (`#start-it`)."""
        if target == self.target or not self._show(target):
            return
        if self.target:
            self._past.append(self.target)
        self._future.clear()
        self._shown(target)

    def go_back(self) -> None:
        """Show the page before."""
        self._step(self._past, self._future)

    def go_forward(self) -> None:
        """Show the page from which the operator went back."""
        self._step(self._future, self._past)

    def _step(self, source: list[str], destination: list[str]) -> None:
        if source:
            destination.append(self.target)
            target = source.pop()
            self._show(target)
            self._shown(target)

    def _show(self, target: str) -> bool:
        name, _, anchor = target.partition("#")
        page = self._documentation.page(name)
        if page is not None:
            self.view.show_page(page.name, page.text, page.path.parent, anchor)
            return True
        try:
            self.view.show_page(name, self._generated(name), self._documentation.folder, anchor)
        except KeyError:
            return False
        return True

    def _shown(self, target: str) -> None:
        self.target = target
        self.back_button.setEnabled(bool(self._past))
        self.forward_button.setEnabled(bool(self._future))
        self._select_in_contents()

    # Contents and search

    def _fill_contents(self) -> None:
        for chapter in self._documentation.chapters:
            parent = self.contents.invisibleRootItem()
            if chapter.title:
                parent = self._item(parent, chapter.title, "")
                parent.setFlags(Qt.ItemFlag.ItemIsEnabled)
            for page in chapter.pages:
                self._item(parent, page.title, page.name)
        self._select_in_contents()

    def _select_in_contents(self) -> None:
        name = self.target.partition("#")[0]
        items = self.contents.findItems("", Qt.MatchFlag.MatchContains | Qt.MatchFlag.MatchRecursive)
        for item in items:
            if item.data(0, _TARGET) == name:
                self.contents.setCurrentItem(item)
                return
        self.contents.clearSelection()

    def _search(self, query: str) -> None:
        self._lists.setCurrentWidget(self.hits if query.strip() else self.contents)
        self.hits.clear()
        pages: dict[str, QTreeWidgetItem] = {}
        for hit in self._documentation.search(query):
            name = hit.page.name
            if name not in pages:
                pages[name] = self._item(self.hits, hit.page.title, name)
                pages[name].setExpanded(True)
            if hit.section.level > 1:
                self._item(pages[name], hit.section.title, hit.target)
        if query.strip() and not self.hits.topLevelItemCount():
            QTreeWidgetItem(self.hits, [self.tr("No section has all of these words.")]).setDisabled(True)

    def _open_first_hit(self) -> None:
        """The section that fits best; its page where the page's title fits best."""
        found = self._documentation.search(self.search_field.text())
        if found:
            self.open(found[0].target)

    def _activated(self, item: QTreeWidgetItem) -> None:
        target = item.data(0, _TARGET)
        if target:
            self.open(str(target))
        else:
            item.setExpanded(not item.isExpanded())

    # Parts

    def _item(self, parent: QTreeWidget | QTreeWidgetItem, title: str, target: str) -> QTreeWidgetItem:
        item = QTreeWidgetItem(parent, [title])
        item.setData(0, _TARGET, target)
        item.setToolTip(0, title)
        item.setSizeHint(0, QSize(0, ROW_HEIGHT))
        return item

    def _tree(self, name: str) -> QTreeWidget:
        tree = QTreeWidget()
        tree.setAccessibleName(name)
        tree.setHeaderHidden(True)
        tree.setFrameShape(QTreeWidget.Shape.NoFrame)
        tree.setProperty("contents", True)
        tree.setIndentation(14)
        tree.setUniformRowHeights(True)
        tree.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        tree.itemClicked.connect(self._activated)
        tree.itemActivated.connect(self._activated)
        return tree

    def _button(self, theme: Theme, icon: str, text: str, keys: str, action: Callable[[], None]) -> QToolButton:
        button = QToolButton()
        button.setToolTip(f"{text} ({QKeySequence(keys).toString(QKeySequence.SequenceFormat.NativeText)})")
        button.setAccessibleName(text)
        button.setShortcut(QKeySequence(keys))
        button.setEnabled(False)
        button.clicked.connect(lambda _checked=False: action())
        theme.bind_icon(button, icon, "muted")
        return button

    def _arrange(self) -> None:
        line = QHBoxLayout()
        line.addWidget(self.back_button)
        line.addWidget(self.forward_button)
        line.addWidget(self.search_field, 1)
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(12, 12, 0, 12)
        column.setSpacing(10)
        column.addLayout(line)
        column.addWidget(self._lists, 1)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(left)
        splitter.addWidget(self.view)
        splitter.setSizes([LIST_WIDTH, 3 * LIST_WIDTH])
        splitter.setStretchFactor(1, 1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(splitter)
