"""Creates and runs the window; imported once it is known that Qt can be loaded."""

from __future__ import annotations

import gc
import logging
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType

import shiboken6
from PySide6.QtCore import QLibraryInfo, QLocale, QObject, QTimer, QTranslator, Signal
from PySide6.QtWidgets import QApplication

from labconsole import paths
from labconsole.engine.queue import RunQueue
from labconsole.errors import UserError
from labconsole.model.plugin import Plugins, load_dotted
from labconsole.store.backups import back_up
from labconsole.store.errors import StoreError
from labconsole_ui.runtime.garbage_collection import WindowCollector
from labconsole_ui.runtime.queue_bridge import LIVE_HZ, QueueBridge
from labconsole_ui.runtime.services import Services
from labconsole_ui.runtime.settings import FILE_NAME, WindowState
from labconsole_ui.shell.database_error_dialog import DatabaseErrorDialog
from labconsole_ui.shell.main_window import TEXT_SIZE_KEY, THEME_KEY, MainWindow
from labconsole_ui.theme.theme import Theme, ThemeMode
from labconsole_ui.widgets.message_bar import Message, Tone

_log = logging.getLogger(__name__)


class ExceptionHook(QObject):
    """Emits `caught` (sentence, details) on the window's thread, whichever thread the exception came from."""

    caught = Signal(str, str)

    def install(self) -> None:
        """Replace the interpreter's hooks."""
        sys.excepthook = self.handle_exception
        threading.excepthook = self.handle_thread_exception

    def remove(self) -> None:
        """Restore the interpreter's hooks."""
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__

    def handle_exception(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Log and show `error`; an interrupt from the keyboard ends the program as usual."""
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

    def handle_thread_exception(self, arguments: threading.ExceptHookArgs) -> None:
        """The same for an exception that ended a thread."""
        if arguments.exc_value is not None:
            self.handle_exception(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)


LOCK_TIMEOUT_S = 2.0
"""How long the window waits for another console that writes, before it shows an error."""


def open_window(database: Path, theme: str | None) -> int:
    """Run the window on `database`, then on databases that the operator opens instead, until closed.

    Returns 1 if no database can be opened.
    """
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationName("labconsole")
    app.setApplicationDisplayName("")
    translators = load_translators(app, QLocale.system())
    collector = WindowCollector(app)
    wanted: Path | None = database
    code = 0
    while wanted is not None:
        try:
            services = create_services(app, wanted, theme)
        except UserError as error:
            print(error, file=sys.stderr)
            # A window started from an icon has no terminal.
            wanted = None if app.platformName() == "offscreen" else ask_other_database(app, wanted, error)
            code = 1
        else:
            code, wanted = run_window(app, services)
    collector.stop()
    del translators
    return code


def run_window(app: QApplication, services: Services) -> tuple[int, Path | None]:
    """Show the window until it is closed. Returns the exit code, and the database to open instead, if any."""
    window = MainWindow(services)
    net = ExceptionHook()
    net.caught.connect(lambda text, details: window.messages.show_message(Message(Tone.BAD, text, details)))
    net.install()
    logging.getLogger().addHandler(window.log_relay.handler)
    window.show()
    QTimer.singleShot(0, services.bridge.recover)
    importing = import_pages_ahead(services.plugins)
    # Objects of the start stay: with them, each full collection would block the window for 50 ms and more.
    gc.freeze()
    code = app.exec()
    importing.join()
    logging.getLogger().removeHandler(window.log_relay.handler)
    net.remove()
    wanted = window.wanted_database
    # Now, not when the interpreter exits: views stop their threads when they are deleted.
    shiboken6.delete(window)
    write_last_backup(services.database)
    return code, wanted


def import_pages_ahead(plugins: Plugins) -> threading.Thread:
    """Import the modules of all plugin pages in a thread: opening them then does not block the window."""

    def work() -> None:
        for plugin in plugins.providers:
            pages = [page.factory for page in plugin.pages.values()]
            for dotted in (*plugin.trials.values(), *plugin.panels.values(), *pages):
                try:
                    load_dotted(dotted)
                except Exception as error:  # noqa: BLE001 - foreign code: its page says what is wrong, once opened
                    logging.getLogger(__name__).debug("%s cannot be imported: %s", dotted, error)
        gc.freeze()  # as in `run_window`

    thread = threading.Thread(target=work, name="import pages", daemon=True)
    thread.start()
    return thread


def write_last_backup(database: Path) -> None:
    """Write the last backup after the window was closed; a failure is logged."""
    try:
        back_up(database)
    except StoreError as error:
        logging.getLogger(__name__).warning("There is no new backup: %s", error)


def ask_other_database(app: QApplication, database: Path, error: UserError) -> Path | None:
    """Ask what to do about a database that cannot be opened. Returns the one to open instead, or None."""
    dialog = DatabaseErrorDialog(database, error, _remembered_theme(app, WindowState(_state_file()), None))
    dialog.exec()
    chosen = dialog.chosen
    shiboken6.delete(dialog)
    return chosen


def create_services(app: QApplication, database: Path, theme: str | None) -> Services:
    """The services of the window. Raises UserError if the database cannot be opened."""
    state = WindowState(_state_file())
    plugins = Plugins.discover()
    bridge = QueueBridge(
        lambda wake: RunQueue(database, live_hz=LIVE_HZ, wake=wake, lock_timeout_s=LOCK_TIMEOUT_S), app
    )
    services = Services(database, plugins, bridge, _remembered_theme(app, state, theme), state)
    try:
        _check_readable(services)
    except StoreError:
        bridge.close()
        raise
    return services


def _check_readable(services: Services) -> None:
    """Read a run, so that a damaged database is found before the window opens. Raises StoreError."""
    with services.reader() as reader:
        reader.runs(limit=1)


def _state_file() -> Path:
    return paths.data_dir() / FILE_NAME


def _remembered_theme(app: QApplication, state: WindowState, theme: str | None) -> Theme:
    chosen, size = theme or state.text(THEME_KEY), state.text(TEXT_SIZE_KEY)
    mode = ThemeMode(chosen) if chosen in set(ThemeMode) else ThemeMode.SYSTEM
    return Theme(app, mode, int(size) if size.isdecimal() and len(size) < 4 else 100)


def load_translators(app: QApplication, locale: QLocale) -> list[QTranslator]:
    """Install the translations of the console and of Qt for `locale`, if there are any."""
    folders = [("qt", Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)))]
    try:
        folders.append(("labconsole", paths.resource("i18n")))
    except FileNotFoundError:
        logging.getLogger(__name__).debug("no translations are shipped")
    loaded = []
    for name, folder in folders:
        translator = QTranslator(app)
        if translator.load(locale, name, "_", str(folder)):
            app.installTranslator(translator)
            loaded.append(translator)
    return loaded
