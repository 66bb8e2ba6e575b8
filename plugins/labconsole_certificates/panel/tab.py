"""What the tabs of the certificates page have in common: what they show, and what they may ask of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from PySide6.QtWidgets import QWidget

from labconsole.security.certificate_status import Status
from labconsole.security.pki.snapshot import Snapshot
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.panels.plugin_page import PageContext
from labconsole_ui.runtime.incremental import Building


@dataclass(frozen=True)
class Sight:
    """One reading of the certificate database, and how it stood with every certificate at that time."""

    snapshot: Snapshot
    statuses: Mapping[int, Status]
    """By the certificates' ids; judged in the background, since 2,000 of them take a second."""
    at: datetime


@dataclass(frozen=True)
class TabServices:
    """What a tab may ask of its page."""

    page: PageContext
    directory: Path
    """Of the certificate database: what `PkiStore.open` and `PkiReader.open` take."""
    open_action: Callable[[str, Mapping[str, Any], Mapping[str, EditorFactory] | None], OperationDialog]
    """Opens the dialog of an action by its name, with values for its form and editors of its own (None: the usual
    ones). When it has ended the database is read again, and the page says what came of it."""
    show_tab: Callable[[str], Tab]
    """Brings the tab of this key to the front, and returns it."""
    show_certificate: Callable[[int], None]
    """Selects the certificate of this id in the tree."""
    read_again: Callable[[], None]
    """Reads the database again at once; a change is otherwise seen within a second."""


class Tab(QWidget):
    """A tab of the page, which names it, and finds it by its `key`."""

    key: ClassVar[str]
    icon: ClassVar[str]

    def __init__(self, services: TabServices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.services = services
        self.building = Building(self, self.pieces())

    def pieces(self) -> Iterator[None]:
        """Build what takes too long for one turn of the event loop; `refresh` and `take` are called when it is done."""
        yield from ()

    def refresh(self, sight: Sight) -> None:
        """Show this: called when the tab comes to the front, and while it is there whenever something has changed.

        It may take 50 ms at 40 States; what takes longer is for `Turns` or a background thread.
        """
        raise NotImplementedError

    def take(self, paths: Sequence[Path]) -> None:
        """Show files that were dropped on the window and belong to this tab. Nothing is changed by that alone."""
        raise NotImplementedError
