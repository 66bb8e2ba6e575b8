"""Markdown as GitHub, MkDocs and Qt read it: tables and code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]*`)")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; columns in which no row has anything are left out. Empty without rows."""
    cells = [[_cell(text) for text in row] for row in rows]
    used = [place for place in range(len(headings)) if any(row[place] for row in cells)]
    if not used:
        return ""
    lines = [[headings[place] for place in used], ["---"] * len(used)]
    lines += [[row[place] for place in used] for row in cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    """Text as it is typed."""
    return f"`{text}`" if text else ""


def page(*parts: str) -> str:
    """A page of these parts, without those that are empty."""
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    text = text.strip()
    if not text:
        return ""
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?', ':')) else '.'}"


def _cell(text: str) -> str:
    """The text on one line, with what would be a mark of Markdown made harmless; in code a `|` cannot be."""
    parts = _CODE.split(" ".join(text.split()))
    for place, part in enumerate(parts):
        if _CODE.fullmatch(part):
            parts[place] = re.sub(r" ?\| ?", " or ", part)
        else:
            parts[place] = part.replace("*", "\\*").replace("<", "&lt;").replace("|", "\\|")
    return "".join(parts)
