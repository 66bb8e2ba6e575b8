"""SVG for charts: escaped elements, text as text in Inter, axes with round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from labconsole.output.ticks import linear_ticks, log_ticks

INK = "#1a2332"
MUTED = "#5b6675"
GRID = "#dde3ea"
_FONT_PT = 7.5
_CHARACTER = 0.56
"""Width of Inter's average character, of the font size; enough to lay out labels."""


@dataclass(frozen=True)
class Axis:
    """From `low` to `high` on `length` points from `start` on (negative: upwards), linear or logarithmic."""

    low: float
    high: float
    start: float
    length: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """The position of `value`, in points; that of a value outside is the nearer end."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * self.length

    def ticks(self, count: int = 5) -> list[float]:
        """About `count` round values on the axis: steps of 1, 2 or 5; powers of ten, also times 2 and 5 if few."""
        if not self.logarithmic:
            return linear_ticks(self.low, self.high, count)
        powers = log_ticks(self.low, self.high)
        return powers if len(powers) >= 3 else log_ticks(self.low, self.high, (1, 2, 5))


def text_width(text: str) -> float:
    """About how wide `text` is set, in points."""
    return len(text) * _FONT_PT * _CHARACTER


def shortened(text: str, width: float) -> str:
    """`text`, cut with `…` where it is wider than `width` points."""
    room = max(1, round(width / (_FONT_PT * _CHARACTER)))
    return text if len(text) <= room else text[: room - 1].rstrip() + "…"


def element(name: str, content: str = "", /, **attributes: str | float) -> str:
    """An element; `_` in attribute names means `-`. `content` is SVG already."""
    pairs = "".join(
        f" {key.strip('_').replace('_', '-')}={quoteattr(_plain(value))}" for key, value in attributes.items()
    )
    return f"<{name}{pairs}>{content}</{name}>" if content else f"<{name}{pairs}/>"


def text(x: float, y: float, content: str, *, anchor: str = "start", fill: str = INK, **more: str | float) -> str:
    """A line of text, its baseline at `y`."""
    return element("text", escape(content), x=x, y=y, text_anchor=anchor, fill=fill, **more)


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float = 0.5) -> str:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width)


def drawing(width: float, height: float, parts: Iterable[str]) -> str:
    """The whole picture, in points."""
    content = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="Inter" font-size="{_FONT_PT}">{content}</svg>'
    )


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
