"""Puts the window together and runs it; imported once it is known that Qt can load."""

from __future__ import annotations

import gc
import logging
import sys
from pathlib import Path

import shiboken6
from PySide6.QtCore import QLibraryInfo, QLocale, QTimer, QTranslator
from PySide6.QtWidgets import QApplication, QMessageBox

from labconsole import locations
from labconsole.engine.queue import RunQueue
from labconsole.plugin import Plugins
from labconsole.trial import TrialError
from labconsole_ui.bridge import LIVE_HZ, QueueBridge
from labconsole_ui.errors import ExceptionNet
from labconsole_ui.main_window import THEME_KEY, MainWindow
from labconsole_ui.message_bar import Message, Tone
from labconsole_ui.services import Services
from labconsole_ui.settings import FILE_NAME, WindowState
from labconsole_ui.theme import Theme, ThemeMode

LOCK_TIMEOUT_S = 2.0
"""How long the window may stand still while another console writes; then it says so."""


def open_window(database: Path, theme: str | None) -> int:
    """Run the window on `database` until it is closed. Returns 1 if the database cannot be opened."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationName("labconsole")
    app.setApplicationDisplayName("")
    translators = load_translators(app, QLocale.system())
    try:
        services = make_services(app, database, theme)
    except TrialError as error:
        print(error, file=sys.stderr)
        if app.platformName() != "offscreen":
            # Whoever started the window from an icon sees no terminal.
            QMessageBox.critical(None, app.tr("The lab console cannot open"), str(error))
        return 1
    window = MainWindow(services)
    net = ExceptionNet()
    net.caught.connect(lambda text, details: window.messages.show_message(Message(Tone.BAD, text, details)))
    net.install()
    logging.getLogger().addHandler(window.log_relay.handler)
    window.show()
    QTimer.singleShot(0, services.bridge.recover)
    # What is there now stays: looked through at every full collection, it would hold up the window for 50 ms and more.
    gc.freeze()
    code = app.exec()
    logging.getLogger().removeHandler(window.log_relay.handler)
    net.remove()
    # Now, not whenever the interpreter ends: views stop their threads when they go.
    shiboken6.delete(window)
    del translators
    return code


def make_services(app: QApplication, database: Path, theme: str | None) -> Services:
    """Everything the window works with. Raises TrialError if the database cannot be opened."""
    state = WindowState(locations.data_dir() / FILE_NAME)
    chosen = theme or state.text(THEME_KEY)
    mode = ThemeMode(chosen) if chosen in set(ThemeMode) else ThemeMode.SYSTEM
    plugins = Plugins.discover()
    bridge = QueueBridge(
        lambda wake: RunQueue(database, live_hz=LIVE_HZ, wake=wake, lock_timeout_s=LOCK_TIMEOUT_S), app
    )
    return Services(database, plugins, bridge, Theme(app, mode), state)


def load_translators(app: QApplication, locale: QLocale) -> list[QTranslator]:
    """Install the translations of the console and of Qt for `locale`, if there are any."""
    folders = [("qt", Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)))]
    try:
        folders.append(("labconsole", locations.resource("i18n")))
    except FileNotFoundError:
        logging.getLogger(__name__).debug("no translations are shipped")
    loaded = []
    for name, folder in folders:
        translator = QTranslator(app)
        if translator.load(locale, name, "_", str(folder)):
            app.installTranslator(translator)
            loaded.append(translator)
    return loaded
