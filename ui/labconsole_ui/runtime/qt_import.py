"""Imports Qt without the hook that it puts into each later import."""

from __future__ import annotations

import builtins


def import_qt() -> None:
    """Import Qt, and keep Python's own `import`.

    That of PySide6 reads the source of each module that is imported later, for the sake of `from __feature__ import`,
    which no module here uses: a sixth of the processor time until the window is open.
    """
    own = builtins.__import__
    import PySide6.QtCore  # noqa: F401 - its libraries may be missing: only where Qt is wanted

    builtins.__import__ = own
