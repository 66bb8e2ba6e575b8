"""Small pieces of SVG for charts: escaped elements, text as text in Inter, axes with round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from labconsole.analysis.number_format import format_number

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
        """Where `value` lies, in points; what is outside lies at the nearer end."""
        value = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * self.length

    def ticks(self, count: int = 5) -> list[float]:
        """About `count` round values on the axis: steps of 1, 2 or 5; powers of ten, also times 2 and 5 if few."""
        return _powers(self.low, self.high) if self.logarithmic else _steps(self.low, self.high, count)


def round_range(low: float, high: float) -> tuple[float, float]:
    """A linear range that holds zero and both, and ends at round values."""
    low, high = min(0.0, low), max(0.0, high)
    if low == high:
        return 0.0, 1.0
    step = _step(high - low, 5)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def log_range(low: float, high: float) -> tuple[float, float]:
    """A logarithmic range (both above 0) that begins and ends at 1, 2 or 5 times a power of ten."""
    first = max(value for value in _marks(low) if value <= low * (1 + 1e-9))
    last = min(value for value in _marks(high) if value >= high * (1 - 1e-9))
    return (first, last) if last > first else (first, last * 2)


def tick_text(value: float) -> str:
    """A tick's value without superfluous digits."""
    text = format_number(float(f"{value:.6g}"))
    return (text.rstrip("0").rstrip(".") if value % 1 else text).replace("-", "−")


def text_width(text: str) -> float:
    """About how wide `text` is set, in points."""
    return len(text) * _FONT_PT * _CHARACTER


def shortened(text: str, width: float) -> str:
    """`text`, cut with `…` where it is wider than `width` points."""
    room = max(1, round(width / (_FONT_PT * _CHARACTER)))
    return text if len(text) <= room else text[: room - 1].rstrip() + "…"


def element(name: str, content: str = "", /, **attributes: str | float) -> str:
    """An element; `_` in attribute names stands for `-`. `content` is SVG already."""
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


def _step(span: float, count: int) -> float:
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))


def _steps(low: float, high: float, count: int) -> list[float]:
    step = _step(high - low, count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def _marks(value: float) -> list[float]:
    power = math.floor(math.log10(value))
    return [factor * 10.0**exponent for exponent in (power - 1, power, power + 1) for factor in (1, 2, 5)]


def _powers(low: float, high: float) -> list[float]:
    exponents = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    for factors in ((1,), (1, 2, 5)):
        found = [factor * 10.0**exponent for exponent in exponents for factor in factors]
        found = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
        if len(found) >= 3:
            break
    return found
