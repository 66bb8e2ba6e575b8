"""The form of a description: a title, and sections of rows. Everything in it is safe to show as plain text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line; `value` may have several. `fixed_width`: hex and the like. `warning`: the operator should look here."""

    label: str
    value: str
    fixed_width: bool = False
    warning: bool = False


@dataclass(frozen=True)
class Section:
    """Rows that belong together."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Description:
    """A thing for people to read."""

    title: str
    sections: tuple[Section, ...]
