"""Compares two descriptions row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from labconsole_certificates.describing.description import Description, Row
from labconsole_certificates.describing.pki_objects import Describable, describe


@dataclass(frozen=True)
class Difference:
    """One row of both; None for a description without such a row."""

    section: str
    label: str
    left: Row | None
    right: Row | None

    @property
    def same(self) -> bool:
        """Whether both values are equal."""
        return self.left is not None and self.right is not None and self.left.value == self.right.value


@dataclass(frozen=True)
class Comparison:
    """Two descriptions side by side: titles, and every row of either, in the left one's order."""

    left: str
    right: str
    rows: tuple[Difference, ...]


_Place = tuple[str, str, int]
"""Section, label, and number among rows of that label: names may have an attribute twice."""


def compare(left: Describable, right: Describable, at: datetime | None = None) -> Comparison:
    """Both descriptions side by side, at time `at` (aware; default: now)."""
    descriptions = describe(left, at), describe(right, at)
    ours, theirs = map(_by_place, descriptions)
    places = [*ours, *(place for place in theirs if place not in ours)]
    sections = list(dict.fromkeys(section for section, _, _ in places))
    rows = [
        Difference(section, label, ours.get((section, label, number)), theirs.get((section, label, number)))
        for section, label, number in sorted(places, key=lambda place: sections.index(place[0]))
    ]
    return Comparison(descriptions[0].title, descriptions[1].title, tuple(rows))


def _by_place(description: Description) -> dict[_Place, Row]:
    seen: Counter[tuple[str, str]] = Counter()
    rows: dict[_Place, Row] = {}
    for section in description.sections:
        for row in section.rows:
            rows[section.title, row.label, seen[section.title, row.label]] = row
            seen[section.title, row.label] += 1
    return rows
