"""How the console starts its own programs, such as workers, roles and token modules."""

from __future__ import annotations

import sys


def own_program(module: str, *arguments: str) -> list[str]:
    """Return the command line of `python -m module` with these arguments.

    `-P` keeps the current directory off the import path: these processes hold passphrases and PINs, and a `numpy.py` in
    a directory where the console was started must not be executed in them.
    """
    return [sys.executable, "-P", "-m", module, *arguments]
