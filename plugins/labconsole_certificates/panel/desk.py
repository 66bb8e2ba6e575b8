"""Work of a tab on the certificate database, off the window's thread; what came of it, as a message."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject

from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.parsing import read_file
from labconsole_certificates.panel.tab import TabServices
from labconsole_ui.runtime.background import Background
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.message_bar import Message, Tone

Result = TypeVar("Result")


class Desk(QObject):
    """Jobs of one tab, one after another; a UserError's sentence goes to `failed`, else to the operator."""

    def __init__(self, services: TabServices, tab: QObject) -> None:
        super().__init__(tab)
        self.services = services
        self._background = Background(self)

    @property
    def theme(self) -> Theme:
        """The window's look."""
        return self.services.page.theme

    def good(self, sentence: str) -> None:
        """Say that something went well."""
        self.services.page.show_message(Message(Tone.GOOD, sentence))

    def bad(self, sentence: str) -> None:
        """Say what is wrong, and what to do."""
        self.services.page.show_message(Message(Tone.BAD, sentence))

    def look(
        self, work: Callable[[], Result], then: Callable[[Result], None], failed: Callable[[str], None] | None = None
    ) -> None:
        """Read or work out something."""
        self._background.submit(work, then, failed or self.bad)

    def do(
        self,
        operation: Callable[[PkiStore], Result],
        then: Callable[[Result], None],
        failed: Callable[[str], None] | None = None,
    ) -> None:
        """Change the database by an operation that needs no private key, which is then read again."""
        work = partial(_with_store, self.services.directory, operation)
        self._background.submit(work, partial(self._done, then), failed or self.bad)

    def read(self, path: Path, then: Callable[[bytes], None], failed: Callable[[str], None] | None = None) -> None:
        """Read a file through the gate, which bounds its size."""
        self.look(partial(read_file, path), then, failed)

    def _done(self, then: Callable[[Result], None], result: Result) -> None:
        self.services.read_again()
        then(result)


def _with_store(directory: Path, operation: Callable[[PkiStore], Result]) -> Result:
    with PkiStore.open(directory) as store:
        return operation(store)
