"""Sorts files that were dropped on the window by what is in them: each goes to the tab that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.parsing import ContentKind, kind_of, read_file
from labconsole_ui.runtime.background import Background

_BUNDLES = "trust"
"""Only there is a bundle compared with what is known of its State; all else is looked into in the same place."""
_ELSE = "certificates"


class FileSorting(QObject):
    """`sorted` carries the files by the keys of tabs, `refused` a sentence on one that cannot be read."""

    sorted = Signal(dict)
    refused = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._background = Background(self)

    def sort(self, paths: Sequence[Path]) -> None:
        """Look into each file, in the background."""
        self._background.submit(partial(_sorted, tuple(paths)), self._tell, self.refused.emit)

    def _tell(self, found: tuple[dict[str, list[Path]], list[str]]) -> None:
        by_tab, refused = found
        for sentence in refused:
            self.refused.emit(sentence)
        if by_tab:
            self.sorted.emit(by_tab)


def _sorted(paths: Sequence[Path]) -> tuple[dict[str, list[Path]], list[str]]:
    by_tab: dict[str, list[Path]] = {}
    refused = []
    for path in paths:
        try:
            kind = kind_of(read_file(path))
        except BadInput as error:
            refused.append(str(error))
            continue
        by_tab.setdefault(_BUNDLES if kind is ContentKind.CMS else _ELSE, []).append(path)
    return by_tab, refused
