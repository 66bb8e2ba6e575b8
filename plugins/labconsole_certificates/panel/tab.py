"""Common parts of the tabs of the certificates page: their data, and their requests to the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from labconsole.security.certificate_status import Status
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.parsing import read_file
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.panels.plugin_page import PageContext
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.incremental import PageBuilder
from labconsole_ui.theme.theme import Theme
from labconsole_ui.widgets.message_bar import Message, Tone


@dataclass(frozen=True)
class DatabaseReading:
    """One reading of the certificate database, and the status of every certificate at that time."""

    snapshot: Snapshot
    statuses: Mapping[int, Status]
    """By the certificates' ids; judged in the background, since 2,000 of them take a second."""
    at: datetime


@dataclass(frozen=True)
class TabServices:
    """Services of the page for its tabs."""

    page: PageContext
    directory: Path
    """Directory of the certificate database, for `PkiStore.open` and `PkiReader.open`."""
    open_action: Callable[[str, Mapping[str, Any], Mapping[str, EditorFactory] | None], OperationDialog]
    """Opens the dialog of an action by its name, with values for its form and editors of its own (None: the usual
    ones). When it has ended the database is read again, and the page reports the result."""
    show_tab: Callable[[str], Tab]
    """Brings the tab of this key to the front, and returns it."""
    show_certificate: Callable[[int], None]
    """Selects the certificate of this id in the tree."""
    read_again: Callable[[], None]
    """Reads the database again at once; other changes are seen within a second."""


class Tab(QWidget):
    """A tab of the page, with its title and `key`."""

    key: ClassVar[str]
    icon: ClassVar[str]
    chapter: ClassVar[str]
    """Of the documentation: what F1 opens."""

    def __init__(self, services: TabServices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.services = services
        self.building = PageBuilder(self, self.pieces())

    def pieces(self) -> Iterator[None]:
        """Build what takes too long for one turn of the event loop; `refresh` and `take` are called afterwards."""
        yield from ()

    def refresh(self, reading: DatabaseReading) -> None:
        """Show this: called when the tab comes to the front, and after each change while it is visible.

        It may take 50 ms at 40 States; what takes longer is for `EventLoopQueue` or a background thread.
        """
        raise NotImplementedError

    def take(self, paths: Sequence[Path]) -> None:
        """Show files that were dropped on the window and belong to this tab. Nothing is changed by that alone."""
        raise NotImplementedError


Result = TypeVar("Result")


class TabWork(QObject):
    """Jobs of one tab, one after another; a UserError's sentence goes to `failed`, else to the operator."""

    def __init__(self, services: TabServices, tab: QObject) -> None:
        super().__init__(tab)
        self.services = services
        self._background = Background(self)

    @property
    def theme(self) -> Theme:
        """The window's theme."""
        return self.services.page.theme

    def good(self, sentence: str) -> None:
        """Show a message of success."""
        self.services.page.show_message(Message(Tone.GOOD, sentence))

    def bad(self, sentence: str) -> None:
        """Show a sentence on a problem, with its remedy."""
        self.services.page.show_message(Message(Tone.BAD, sentence))

    def submit(
        self, work: Callable[[], Result], then: Callable[[Result], None], failed: Callable[[str], None] | None = None
    ) -> None:
        """Run work that only reads."""
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
        """Read a file with its limit of size."""
        self.submit(partial(read_file, path), then, failed)

    def _done(self, then: Callable[[Result], None], result: Result) -> None:
        self.services.read_again()
        then(result)


def _with_store(directory: Path, operation: Callable[[PkiStore], Result]) -> Result:
    with PkiStore.open(directory) as store:
        return operation(store)
