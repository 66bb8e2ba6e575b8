"""The documentation as a page of the window, and the chapter on what is in front."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from labconsole.documentation import INDEX, Documentation
from labconsole.reference.trials import trial_page, trial_page_name
from labconsole_ui.help.guide_page import GuidePage
from labconsole_ui.runtime.page_targets import GUIDE
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.pages import Pages
from labconsole_ui.widgets.help_chapter import chapter_of, chapter_shown


class HelpPages:
    """Opens the documentation in a tab of `pages`."""

    def __init__(self, services: Services, pages: Pages) -> None:
        self._services = services
        self._pages = pages

    def open(self, target: str = INDEX) -> None:
        """Show a page of the documentation, or a section of one: `how-to/install.md#start-it`."""
        title = QCoreApplication.translate("HelpPages", "Documentation")
        page = self._pages.show_page(GUIDE, title, "book", self._page)
        if isinstance(page, GuidePage):
            page.open(target)

    def open_chapter(self, focus: QWidget | None) -> None:
        """Show the chapter on the pane that has the focus, or else on the page in front."""
        page = self._pages.currentWidget()
        in_pane = focus is not None and not self._pages.isAncestorOf(focus)
        chapter = chapter_of(focus) if in_pane else ""
        self.open(chapter or ("" if page is None else chapter_shown(page)) or INDEX)

    def _page(self) -> GuidePage:
        return GuidePage(self._services.theme, Documentation(), self._generated)

    def _generated(self, name: str) -> str:
        """The page of a trial that another plugin brings, made from its definition. Raises KeyError."""
        for kind in self._services.plugins.kinds():
            trial = self._services.plugins.installed(kind)
            if trial is not None and trial_page_name(kind) == name:
                return trial_page(trial)
        raise KeyError(name)
