"""Samples of one role that are tables in memory, for tests of figures whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

MS = 1_000_000
"""Nanoseconds."""


@dataclass
class Tables:
    """`Samples` of one role held in memory."""

    tables: dict[str, dict[str, NDArray[Any]]]

    def roles(self, series: str) -> list[str]:
        return ["simulator"] if series in self.tables else []

    def table(self, series: str, role: str) -> dict[str, NDArray[Any]]:
        return self.tables[series]
