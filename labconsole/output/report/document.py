"""The content of a report as plain data: a cover, and sections made of a few kinds of blocks. Knows neither Qt nor
PDF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Tone(StrEnum):
    """The emphasis of a text. Never colour alone: a mark or a word has the same meaning."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    MUTED = "muted"
    STRONG = "strong"
    CODE = "code"
    """In a fixed-width font (a hash)."""


class Align(StrEnum):
    """How a table's column is set: figures right, words left."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True)
class TextCell:
    """A cell of a table: `text`, and smaller under it `details`, each on a line of its own with its own tone."""

    text: str
    tone: Tone = Tone.PLAIN
    details: tuple[tuple[str, Tone], ...] = ()


@dataclass(frozen=True)
class Head:
    """A column's head: `detail` is smaller, under `title`. `share` is its width relative to the others' shares."""

    title: str
    detail: str = ""
    align: Align = Align.RIGHT
    share: float = 1.0


@dataclass(frozen=True)
class Table:
    """Rows under heads, as many cells as heads in each. The first cell of a row is the row's head.

    Details of cells are beneath their texts, or behind them (`inline`), where the columns are few. A section with a
    `wide` table is on landscape pages.
    """

    caption: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[TextCell, ...], ...]
    notes: tuple[str, ...] = ()
    inline: bool = False
    wide: bool = False

    def __post_init__(self) -> None:
        if any(len(row) != len(self.heads) for row in self.rows):
            raise ValueError(f"a row of the table {self.caption} has not {len(self.heads)} cells")


@dataclass(frozen=True)
class Facts:
    """Names and values; `compact` ones are in two columns."""

    rows: tuple[Fact, ...]
    compact: bool = False


@dataclass(frozen=True)
class Fact:
    """A name and its value."""

    name: str
    value: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class Paragraph:
    """Running text; one that `leads` stays on the page of what follows."""

    text: str
    tone: Tone = Tone.PLAIN
    leads: bool = False


@dataclass(frozen=True)
class Bullets:
    """Sentences, one under the other."""

    items: tuple[TextCell, ...]


@dataclass(frozen=True)
class Callout:
    """A warning: a heading and sentences in a frame."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Figure:
    """A picture (SVG text) with its alternative text and its caption."""

    svg: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Gallery:
    """Small pictures, two in a row."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    title: str


@dataclass(frozen=True)
class Card:
    """An answer, with which a report opens: `number` is set large, `tone` is that of the judgement, `svg` a small chart
    with its alternative text (both empty without any figure)."""

    question: str
    number: str
    sentence: str
    tone: Tone
    svg: str
    alt: str
    small_print: str


Block = Table | Facts | Paragraph | Bullets | Callout | Figure | Gallery | Heading


@dataclass(frozen=True)
class Section:
    """A numbered part of the report."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A whole report. `kind` is above the title ("Comparison report"); `identity` in the footer names its runs and
    their database. `cards` are on the title page."""

    kind: str
    title: str
    lead: str
    author: str
    identity: str
    generated: datetime
    cover: tuple[Fact, ...]
    sections: tuple[Section, ...]
    cards: tuple[Card, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain JSON; `block` is the type of each block."""
        return {
            **{name: getattr(self, name) for name in ("kind", "title", "lead", "author", "identity")},
            "generated": f"{self.generated:%Y-%m-%d %H:%M} UTC",
            "cover": [asdict(fact) for fact in self.cover],
            "cards": [asdict(card) for card in self.cards],
            "sections": [
                {"title": section.title, "blocks": [_block(block) for block in section.blocks]}
                for section in self.sections
            ],
        }


def section(title: str, blocks: Sequence[Block]) -> tuple[Section, ...]:
    """The section, or none where there is nothing to say."""
    return (Section(title, tuple(blocks)),) if blocks else ()


def _block(block: Block) -> dict[str, Any]:
    return {"block": type(block).__name__.lower(), **asdict(block)}
