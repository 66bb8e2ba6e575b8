"""Compares two things row by row."""

from __future__ import annotations

from dataclasses import dataclass

from labconsole.security.x509.describing.description import Row
from labconsole.security.x509.gate import Readable


@dataclass(frozen=True)
class Difference:
    """One row of both; None where one of them has no such row."""

    section: str
    label: str
    left: Row | None
    right: Row | None

    @property
    def same(self) -> bool:
        """Whether both say the same."""
        return self.left is not None and self.right is not None and self.left.value == self.right.value


@dataclass(frozen=True)
class Comparison:
    """Two things side by side: titles, and every row of either, in the left one's order."""

    left: str
    right: str
    rows: tuple[Difference, ...]


def compare(left: Readable, right: Readable) -> Comparison:
    """Both descriptions side by side."""
    raise NotImplementedError
