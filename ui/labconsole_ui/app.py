"""Starts the window: system libraries, application, theme, translator, database."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from labconsole import paths, qt_libraries
from labconsole.safe_text import SafeFormatter


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the window; returns 0, or 1 when it cannot open (with the reason on stderr)."""
    options = _parser().parse_args(arguments)
    problem = missing_libraries()
    if problem:
        print(problem, file=sys.stderr)
        return 1
    # Qt is imported only now: its libraries may be what is missing.
    from labconsole_ui.runtime.qt_import import import_qt

    import_qt()
    from labconsole_ui.shell.startup import open_window

    return open_window(options.db or paths.database_path(), options.theme)


def missing_libraries() -> str:
    """A sentence that names the missing system packages without which Qt would abort, or an empty text."""
    if not sys.platform.startswith("linux"):
        return ""
    missing = qt_libraries.missing()
    if os.environ.get("QT_QPA_PLATFORM", "").startswith(("offscreen", "minimal")):
        missing = [name for name in missing if "xcb" not in name and "X11" not in name and "wayland" not in name]
    if not missing:
        return ""
    packages = " ".join(sorted({qt_libraries.PACKAGES[name] for name in missing}))
    return (
        f"The window cannot open because system libraries are missing ({', '.join(missing)}). "
        f"Install them with: sudo apt-get install {packages}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="labconsole gui", description="Open the window of the lab console.")
    parser.add_argument("--db", type=Path, help="run database (default: runs.db in the data directory)")
    parser.add_argument(
        "--theme", choices=("system", "light", "dark"), help="look for this start (default: remembered)"
    )
    return parser


if __name__ == "__main__":
    handler = logging.StreamHandler()
    handler.setFormatter(SafeFormatter(logging.BASIC_FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    raise SystemExit(main())
