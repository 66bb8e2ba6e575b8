"""Common parts of the tabs of the certificates page: their data, and their requests to the page."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationError
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from labconsole.errors import UserError
from labconsole.model.operation import Operation, conduct
from labconsole.model.operation import Result as OperationResult
from labconsole.model.validation_faults import fault_sentence
from labconsole.security.certificate_status import Status
from labconsole.security.pki.records import State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.secrets import Secret
from labconsole.security.x509.parsing import read_file
from labconsole_certificates.operations.export import Exportable, NoteExport, reference_to
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
    """Directory of the certificate database, for `PkiReader.open`."""
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

    def perform(
        self,
        operation: Operation[Any],
        values: Mapping[str, Any],
        then: Callable[[OperationResult], None],
        failed: Callable[[str], None] | None = None,
        *,
        typed: str = "",
    ) -> None:
        """Run an operation without secrets in a thread, with these parameters, as its command does.

        `typed` is the text that confirms it, where it must be confirmed. The database is then read again.
        """
        self._background.submit(
            partial(_performed, operation, dict(values), typed), partial(self._done, then), failed or self.bad
        )

    def perform_on(
        self,
        operation: Operation[Any],
        data: bytes,
        values: Mapping[str, Any],
        then: Callable[[OperationResult], None],
        failed: Callable[[str], None] | None = None,
        *,
        typed: str = "",
    ) -> None:
        """The same with `data` (pasted, or read already) as the operation's parameter `file`."""
        self._background.submit(
            partial(_performed_on, operation, data, dict(values), typed), partial(self._done, then), failed or self.bad
        )

    def note_export(
        self,
        things: Sequence[Exportable],
        then: Callable[[OperationResult], None],
        *,
        sender: State | None = None,
        receiver: State | None = None,
    ) -> None:
        """Note by `certificates.note-export` that these were copied, saved or dragged out of the window.

        With `sender` and `receiver` the exchange records the handover, too.
        """
        parties = {} if sender is None or receiver is None else {"sender": sender.name, "receiver": receiver.name}
        self.perform(NoteExport(), {"what": [reference_to(thing) for thing in things], **parties}, then)

    def read(self, path: Path, then: Callable[[bytes], None], failed: Callable[[str], None] | None = None) -> None:
        """Read a file with its limit of size."""
        self.submit(partial(read_file, path), then, failed)

    def _done(self, then: Callable[[Result], None], result: Result) -> None:
        self.services.read_again()
        then(result)


@dataclass(frozen=True)
class _ThreadContext:
    """`OperationContext` of an operation that takes no time to speak of, and has nothing to ask."""

    typed: str
    stop_requested: bool = False

    def progress(self, done: int, total: int) -> None:
        """Nothing: it is over before a bar could be shown."""

    def say(self, sentence: str) -> None:
        """Nothing: the result says it."""

    def secret(self, key: str) -> Secret | None:
        return None

    def hand_over(self, title: str, secret: Secret) -> None:
        raise UserError(f"{title} can be shown only in the dialog of the operation, or on the terminal.")


def _performed(operation: Operation[Any], values: dict[str, Any], typed: str) -> OperationResult:
    """Raises UserError, also for values that the operation's command refuses."""
    try:
        parameters = operation.parameters.model_validate(values)
    except ValidationError as error:
        raise UserError(fault_sentence(error, operation.parameters)) from error
    return conduct(operation, parameters, _ThreadContext(typed))


def _performed_on(operation: Operation[Any], data: bytes, values: dict[str, Any], typed: str) -> OperationResult:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pasted"
        file.write_bytes(data)
        return _performed(operation, values | {"file": str(file)}, typed)
