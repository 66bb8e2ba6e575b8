"""Opens the pages of plugins other than trials, and passes them files that are dropped on the window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from labconsole.model.plugin import Plugin, load_dotted
from labconsole_ui.panels.plugin_page import OpensFiles, PageContext
from labconsole_ui.runtime.incremental import BuiltIncrementally
from labconsole_ui.runtime.long_jobs import LongJobs
from labconsole_ui.runtime.page_targets import page_target
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.pages import Pages
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.message_bar import Message


class BrokenPage(QWidget):
    """Shows the error of a plugin; it can be selected and copied."""

    def __init__(self, plugin: str, error: str, theme: Theme) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(28, 28, 28, 24)
        column.setSpacing(12)
        title = QLabel(self.tr("{plugin} cannot be used").format(plugin=plugin))
        title.setFont(theme.font(FontRole.TITLE))
        text = QLabel(
            self.tr(
                "This plugin could not be loaded. Install it again or remove it; the other trials are not affected. "
                "Its error:"
            )
        )
        text.setWordWrap(True)
        text.setProperty("muted", True)
        details = QPlainTextEdit(error)
        details.setReadOnly(True)
        details.setTabChangesFocus(True)
        details.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        details.setAccessibleName(self.tr("Error of the plugin"))
        details.setMaximumHeight(220)
        column.addWidget(title)
        column.addWidget(text)
        column.addWidget(details)
        column.addStretch(1)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)


class PluginPages:
    """The open pages by target, `page:<plugin>:<name>`."""

    def __init__(
        self, services: Services, pages: Pages, show_message: Callable[[Message], None], jobs: LongJobs
    ) -> None:
        self._services = services
        self._pages = pages
        self._show_message = show_message
        self._jobs = jobs

    def open(self, target: str) -> QWidget | None:
        """Bring the page to the front. Returns it, or None if the plugin's code fails (a page says so).

        Raises KeyError if no plugin has it.
        """
        plugin, name = self._found(target)
        page = plugin.pages[name]
        context = PageContext(
            plugin=plugin,
            plugins=self._services.plugins,
            theme=self._services.theme,
            state=self._services.state,
            database=self._services.database,
            show_message=self._show_message,
            jobs=self._jobs,
        )
        return show_guarded(
            self._pages, target, page.title, plugin, lambda: load_dotted(page.factory)(context), context.theme
        )

    def files_in(self, data: QMimeData) -> dict[str, list[Path]]:
        """The dragged files that pages can open, by page."""
        found: dict[str, list[Path]] = {}
        by_suffix = {
            suffix: page_target(plugin, name)
            for plugin in self._services.plugins.providers
            for name, page in plugin.pages.items()
            for suffix in page.opens
        }
        for file in (Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()):
            target = by_suffix.get(file.suffix.lower())
            if target is not None:
                found.setdefault(target, []).append(file)
        return found

    def open_files(self, files: dict[str, list[Path]]) -> None:
        """Open each page with its files."""
        for target, paths in files.items():
            page = self.open(target)
            if isinstance(page, OpensFiles):
                page.open_files(paths)

    def _found(self, target: str) -> tuple[Plugin, str]:
        _, plugin_name, name = target.split(":", 2)
        for plugin in self._services.plugins.providers:
            if plugin.name == plugin_name and name in plugin.pages:
                return plugin, name
        raise KeyError(target)


def icon_of(plugin: Plugin, theme: Theme, page: str = "") -> str:
    """The icon of a page of the plugin, where it has one of its own; that of the plugin, or of any plugin."""
    own = (f"plugin-{plugin.name}-{page}", f"plugin-{plugin.name}", "plugin")
    return next(filter(theme.has_icon, own))


def show_guarded(
    pages: Pages, key: str, title: str, plugin: Plugin, make: Callable[[], QWidget], theme: Theme
) -> QWidget | None:
    """Bring a plugin's page to the front. Returns it, or None if its code fails: a page shows why.

    A page that is `BuiltIncrementally` opens as an empty frame; if a piece fails, a page with the error replaces it.
    """

    def show_why(error: Exception) -> None:
        opened = pages.page(key)
        if opened is not None:
            pages.close_page(pages.indexOf(opened))
        show_broken(pages, key, title, error, theme)

    try:
        page = pages.show_page(key, title, icon_of(plugin, theme, key.rpartition(":")[2]), make)
    except Exception as error:  # noqa: BLE001 - foreign code: its fault is shown and must not take the window down
        show_why(error)
        return None
    if isinstance(page, BuiltIncrementally):
        page.building.on_failure = show_why
    return page


def show_broken(pages: Pages, key: str, title: str, error: Exception, theme: Theme) -> None:
    """Show that a page of a plugin could not be built, and why."""
    text = f"{type(error).__name__}: {error}"
    pages.show_page(f"broken:{key}", title, "broken", lambda: BrokenPage(title, text, theme))
