"""`labconsole gui`: opens the window, if the window is installed."""

from __future__ import annotations

import argparse
import importlib
import sys

from labconsole.cli.exit_codes import FAILED
from labconsole.cli.interrupts import end_when_interrupted
from labconsole.paths import database_path


def gui(arguments: argparse.Namespace) -> int:
    """Open the window on a database."""
    try:
        app = importlib.import_module("labconsole_ui.app")
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith(("PySide6", "pyqtgraph", "labconsole_ui", "shiboken6")):
            raise
        print(
            f"labconsole: the window needs {error.name}, which is not installed: `pip install labconsole[gui]`, "
            "or use the commands without a window (`labconsole --help`).",
            file=sys.stderr,
        )
        return FAILED
    end_when_interrupted()
    code: int = app.main(["--db", str(arguments.db or database_path())])
    return code
