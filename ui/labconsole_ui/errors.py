"""The last net: an exception that nobody caught is logged and shown as a message, never as a traceback in the face."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from types import TracebackType

from PySide6.QtCore import QObject, Signal

_log = logging.getLogger(__name__)


class ExceptionNet(QObject):
    """Emits `caught` (sentence, details) on the window's thread, whichever thread the exception came from."""

    caught = Signal(str, str)

    def install(self) -> None:
        """Take the place of the interpreter's hooks."""
        sys.excepthook = self.take
        threading.excepthook = self.take_from_thread

    def remove(self) -> None:
        """Give the hooks back to the interpreter."""
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__

    def take(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Log and show `error`; an interrupt from the keyboard ends the program as ever."""
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        details = "".join(traceback.format_exception(kind, error, trace))
        _log.error("Unexpected error\n%s", details)
        name = str(error) or kind.__name__
        self.caught.emit(
            self.tr("Something unexpected went wrong: {name}. Your data is safe; you can continue.").format(name=name),
            details,
        )

    def take_from_thread(self, arguments: threading.ExceptHookArgs) -> None:
        """The same for an exception that ended a thread."""
        if arguments.exc_value is not None:
            self.take(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
