"""The navigation: start page, plugins with their trials and pages, broken plugins, the console's own pages, help."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QTreeWidget, QTreeWidgetItem, QWidget

from labconsole.model.plugin import BrokenPlugin, Plugin, Plugins
from labconsole_ui.runtime.page_targets import HELP, START, page_target, targets_of, trial_target
from labconsole_ui.theme.theme import Theme

_TARGET = int(Qt.ItemDataRole.UserRole)


class Navigation(QTreeWidget):
    """The tree of pages; `wanted` carries a target, or `broken:<plugin>`."""

    wanted = Signal(str)

    def __init__(self, plugins: Plugins, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plugins = plugins
        self._theme = theme
        self.setAccessibleName(self.tr("Navigation"))
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setIndentation(16)
        self.setIconSize(QSize(20, 20))
        self.setUniformRowHeights(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFrameShape(QTreeWidget.Shape.NoFrame)
        self.setProperty("navigation", True)
        self._icons: list[tuple[QTreeWidgetItem, str, str]] = []
        self._fill()
        theme.changed.connect(self._paint_icons)
        self._paint_icons()
        self.itemActivated.connect(self._activated)
        self.itemClicked.connect(self._activated)

    def show_page(self, target: str) -> None:
        """Select the entry of the page that is shown; nothing for pages without an entry."""
        self.clearSelection()
        for item, _, _ in self._icons:
            if item.data(0, _TARGET) == target:
                self.setCurrentItem(item)

    def _fill(self) -> None:
        self._entry(None, self.tr("Start"), "home", "text", START)
        for plugin in self._plugins.found:
            self._add_plugin(plugin)
        for broken in self._plugins.broken:
            self._add_broken(broken)
        own, *_ = self._plugins.providers
        for name, page in own.pages.items():
            self._entry(None, page.title, f"plugin-{own.name}-{name}", "text", page_target(own, name))
        self._entry(None, self.tr("Help and shortcuts"), "help", "text", HELP)
        self.expandAll()

    def _add_plugin(self, plugin: Plugin) -> None:
        icon = f"plugin-{plugin.name}"
        targets = targets_of(plugin)
        if len(targets) == 1:
            item = self._entry(None, plugin.title, icon, "text", targets[0])
            item.setToolTip(0, plugin.description)
            return
        parent = self._entry(None, plugin.title, icon, "text", "")
        parent.setToolTip(0, plugin.description)
        for kind in plugin.trials:
            self._entry(parent, self._trial_title(kind), "run", "muted", trial_target(kind))
        for name, page in plugin.pages.items():
            self._entry(parent, page.title, "panes", "muted", page_target(plugin, name))

    def _add_broken(self, broken: BrokenPlugin) -> None:
        title = self.tr("{name} (broken)").format(name=broken.name)
        item = self._entry(None, title, "broken", "bad", f"broken:{broken.name}")
        item.setToolTip(0, broken.error)

    def _trial_title(self, kind: str) -> str:
        try:
            return self._plugins.trial(kind).title
        except Exception:  # noqa: BLE001 - a plugin's import may raise anything; its page will say so
            return kind

    def _entry(
        self, parent: QTreeWidgetItem | None, title: str, icon: str, meaning: str, target: str
    ) -> QTreeWidgetItem:
        item = QTreeWidgetItem([title])
        item.setData(0, _TARGET, target)
        item.setSizeHint(0, QSize(0, 36))
        if parent is None:
            self.addTopLevelItem(item)
        else:
            parent.addChild(item)
        self._icons.append((item, icon, meaning))
        return item

    def _paint_icons(self) -> None:
        for item, icon, meaning in self._icons:
            known = icon if self._theme.has_icon(icon) else "plugin"
            item.setIcon(0, self._theme.icon(known, meaning))

    def _activated(self, item: QTreeWidgetItem) -> None:
        target = item.data(0, _TARGET)
        if target:
            self.wanted.emit(target)
