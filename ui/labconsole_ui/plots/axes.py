"""Axes of plots, and horizontal scales for time, values, logarithms and percentiles."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyqtgraph as pg  # type: ignore[import-untyped]
from numpy.typing import NDArray
from PySide6.QtCore import QCoreApplication, QRectF
from PySide6.QtGui import QFont, QFontMetricsF, QPainter

from labconsole.analysis.distributions import LAST_PERCENTILE
from labconsole.analysis.number_format import format_figure, format_number
from labconsole.output.ticks import PERCENTILES, linear_ticks, percentile_positions, percentile_text

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


@dataclass(frozen=True)
class AxisUnit:
    """How values stored in `stored` are drawn: times `factor`, in `unit`, with SI prefixes if `prefixed`."""

    stored: str
    unit: str
    factor: float
    prefixed: bool

    @property
    def prefix_ranges(self) -> tuple[tuple[float, float], ...]:
        """Where an axis has prefixes (pyqtgraph's `siPrefixEnableRanges`): seconds have none above 1."""
        return ((0.0, 1.0 if self.unit == "s" else math.inf),)

    def text(self, drawn: float) -> str:
        """A drawn value as text: `1.235 ms`, `60,123 msg/s`."""
        if not self.prefixed:
            return format_figure(drawn, self.unit)
        ((_, largest),) = self.prefix_ranges
        for size, prefix in _PREFIXES:
            if abs(drawn) >= size and size <= largest:
                # Six digits: 0.0005 s are 500 µs, and not 499.99999999999994.
                return f"{format_number(float(f'{drawn / size:.6g}'))} {prefix}{self.unit}"
        return f"{format_number(drawn)} {self.unit}"

    def spread_text(self, middle: float, low: float, high: float) -> str:
        """A value with the smallest and largest of several: `1.2 (1.1–1.3) ms`, `990 µs (900 µs–1.3 ms)`."""
        texts = [self.text(value) for value in (middle, low, high)]
        units = {text.rpartition(" ")[2] for text in texts}
        if self.unit and len(units) == 1:
            numbers = [text.rpartition(" ")[0] for text in texts]
            return f"{numbers[0]} ({numbers[1]}–{numbers[2]}) {units.pop()}"
        return f"{texts[0]} ({texts[1]}–{texts[2]})"


def axis_unit(stored: str) -> AxisUnit:
    """The axis of values in unit `stored`: times become seconds; seconds and bytes get SI prefixes."""
    seconds = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    if stored in seconds:
        return AxisUnit(stored, "s", seconds[stored], True)
    if stored in ("B", "B/s", "bit/s", "Hz", "W"):
        return AxisUnit(stored, stored, 1.0, True)
    return AxisUnit(stored, stored, 1.0, False)


TEXT_MARGIN = 15
TEXT_GAP = 6
"""Least free room (px) between two texts of an axis."""
CLOCK_FROM_S = 600
"""Times beyond are written `min:s`."""
ROUND_VALUES_BELOW = 0.7
"""Less than so many decades have round values as ticks."""
EDGE = 1e-9
"""A tick so little beyond the end of its axis is on it."""
_FEW_PERCENTILES = (0.0, 0.5, 0.9, 0.99, LAST_PERCENTILE)
_DIGITS = ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
_MAX_ROUND = (6, 4, 2)

Array = NDArray[np.float64]


class GridAxis(pg.AxisItem):  # type: ignore[misc]
    """An axis with opaque grid lines, drawn directly: pyqtgraph's translucent ones cost 15 ms a frame."""

    def tickValues(self, minVal: float, maxVal: float, size: float) -> Any:  # noqa: N802, N803 - pyqtgraph's
        """The coarsest level of ticks, and the next one where that leaves fewer than three."""
        levels = super().tickValues(minVal, maxVal, size)
        return levels[:1] if levels and len(levels[0][1]) >= 3 else levels[:2]

    def labelString(self) -> str:  # noqa: N802 - pyqtgraph's
        """The label with the unit as the figures have it: `ms`, `time since T0, s`."""
        unit = f"{self.labelUnitPrefix}{self.labelUnits}"
        text = ", ".join(part for part in (self.labelText, unit) if part)
        return f"<span style='color: {self.labelStyle.get('color', '')}'>{text}</span>"

    def boundingRect(self) -> QRectF:  # noqa: N802 - Qt's name
        """Room for texts at both ends of the axis: pyqtgraph drops those that stick out."""
        rectangle: QRectF = super().boundingRect()
        return rectangle.adjusted(-TEXT_MARGIN, -TEXT_MARGIN, TEXT_MARGIN, TEXT_MARGIN)

    def paint(self, p: QPainter, opt: Any, widget: Any) -> None:
        """Draw axis line, grid and texts."""
        if self.picture is None:  # pyqtgraph's sign that the axis has changed
            self.picture: Any = self.generateDrawSpecs(p)
        if self.picture is None:
            return
        _, ticks, texts = self.picture
        p.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        p.setPen(self.pen())
        for _, begin, end in ticks:
            p.drawLine(begin, end)
        p.setFont(self.style["tickFont"])
        p.setPen(self.textPen())
        for rectangle, flags, text in texts:
            p.drawText(rectangle, int(flags), text)


class TimeAxis(GridAxis):
    """Time since T0: seconds, and `min:s` or `h:min:s` from ten minutes on."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:  # noqa: N802 - pyqtgraph's
        """The texts at `values` (s)."""
        if not values or max(abs(value) for value in values) < CLOCK_FROM_S or spacing < 1:
            return super().tickStrings(values, scale, spacing)  # type: ignore[no-any-return]
        return [clock_text(round(value)) for value in values]

    def setRange(self, mn: float, mx: float) -> None:  # noqa: N802 - pyqtgraph's
        """The span of time that is seen; the label follows it."""
        super().setRange(mn, mx)
        unit = "s" if max(abs(mn), abs(mx)) < CLOCK_FROM_S else "min:s" if max(abs(mn), abs(mx)) < 3600 else "h:min:s"
        if unit != self.labelUnits:
            self.setLabel(self.labelText, units=unit)


class ValueAxis(GridAxis):
    """Values with thousands separators."""

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:  # noqa: N802 - pyqtgraph's
        """The texts at `values`."""
        if spacing * scale >= 1:
            return [f"{value * scale:,.0f}" for value in values]
        return super().tickStrings(values, scale, spacing)  # type: ignore[no-any-return]


class FixedAxis(GridAxis):
    """An axis with the ticks of its scale: the first of its choices whose texts do not touch."""

    def __init__(self, scale: LogScale | PercentileScale, side: str = "bottom") -> None:
        super().__init__(side)
        self._scale = scale

    def tickValues(self, minVal: float, maxVal: float, size: float) -> Any:  # noqa: N802, N803 - pyqtgraph's
        """The positions with a tick."""
        low, high = sorted((minVal, maxVal))
        seen: list[float] = []
        for choice in self._scale.ticks(low, high):
            seen = [at for at in choice if low - EDGE <= at <= high + EDGE]
            if self._fits(seen, size / (high - low)):
                break
        return [(0.0, seen)]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:  # noqa: N802 - pyqtgraph's
        """The texts at the positions `values`."""
        return [self._scale.tick_text(value) for value in values]

    def _fits(self, ticks: Sequence[float], pixels: float) -> bool:
        """Whether no texts touch where a step of 1 is `pixels` long; `ticks` rise."""
        metrics = QFontMetricsF(self.style["tickFont"] or QFont())
        along = [
            metrics.horizontalAdvance(self._scale.tick_text(at)) if self.orientation == "bottom" else metrics.height()
            for at in ticks
        ]
        return all(
            (after - before) * pixels >= (one + other) / 2 + TEXT_GAP
            for before, after, one, other in zip(ticks, ticks[1:], along, along[1:], strict=False)
        )


class Scale(ABC):
    """The horizontal scale of a plot: how values become positions, and how a position is read."""

    from_zero = True
    """Whether the whole plot begins at 0."""
    right_margin = 0.0
    """Part of the width that is free at the right, for the last number on the axis."""
    ends = True
    """Whether a curve has no value beyond its ends."""

    @abstractmethod
    def axis(self) -> GridAxis:
        """The axis, with its label."""

    def positions(self, x: Array) -> Array:
        """The positions of values on the axis; both never fall."""
        return x

    @abstractmethod
    def text(self, position: float) -> str:
        """The value at `position`, for the crosshair."""


@dataclass(frozen=True)
class TimeScale(Scale):
    """Seconds since T0, of a `virtual` clock or of the real one."""

    virtual: bool = False

    def axis(self) -> GridAxis:
        axis = TimeAxis("bottom")
        axis.enableAutoSIPrefix(False)
        translate = QCoreApplication.translate
        label = translate("Plot", "virtual time since T0") if self.virtual else translate("Plot", "time since T0")
        axis.setLabel(label, units="s")
        return axis

    def text(self, position: float) -> str:
        translate = QCoreApplication.translate
        text = translate("Plot", "{0} s of virtual time") if self.virtual else translate("Plot", "{0} s since T0")
        return text.format(f"{position:,.3f}")


class ValueScale(Scale):
    """Values in `unit`, from 0."""

    def __init__(self, unit: str) -> None:
        self._unit = axis_unit(unit)

    def axis(self) -> GridAxis:
        axis = ValueAxis("bottom")
        axis.enableAutoSIPrefix(self._unit.prefixed)
        axis.setLabel(units=self._unit.unit, siPrefixEnableRanges=self._unit.prefix_ranges)
        axis.showLabel(bool(self._unit.unit))
        return axis

    def positions(self, x: Array) -> Array:
        return x * self._unit.factor

    def text(self, position: float) -> str:
        return self._unit.text(position)


@dataclass(frozen=True)
class LogScale(Scale):
    """Positive values in `unit` on a logarithmic axis; a cumulative count is known beyond its end, too."""

    title: str
    unit: str
    from_zero = False
    right_margin = 0.03
    ends = False

    def axis(self, side: str = "bottom") -> GridAxis:
        """The axis, at the bottom or at the left."""
        axis = FixedAxis(self, side)
        axis.enableAutoSIPrefix(False)
        axis.setLabel(self.title)
        axis.showLabel(bool(self.title))
        return axis

    def positions(self, x: Array) -> Array:
        """log10 of the values in the base unit; values that are not positive get the smallest positive one."""
        drawn = x * axis_unit(self.unit).factor
        positive = drawn[drawn > 0]
        return np.log10(np.maximum(drawn, positive.min() if len(positive) else 1.0))

    def text(self, position: float) -> str:
        return axis_unit(self.unit).text(10.0**position)

    def ticks(self, low: float, high: float) -> Iterator[list[float]]:
        """Choices with fewer and fewer ticks: powers of ten, with and without values between, or round values."""
        if high - low < ROUND_VALUES_BELOW:
            for most in _MAX_ROUND:
                yield [math.log10(value) for value in linear_ticks(10.0**low, 10.0**high, most) if value > 0]
            return
        powers = range(math.floor(low), math.ceil(high) + 1)
        for digits in _DIGITS:
            yield [power + math.log10(digit) for power in powers for digit in digits]
        for step in (2, 3, 6):
            yield [float(power) for power in powers if power % step == 0]

    def tick_text(self, position: float) -> str:
        """`2 ms`."""
        return self.text(position)


class PercentileScale(Scale):
    """Fractions up to 0.999 as percentiles: p90, p99 and p99.9 are equally far apart."""

    right_margin = 0.03

    def axis(self) -> GridAxis:
        axis = FixedAxis(self)
        axis.enableAutoSIPrefix(False)
        axis.setLabel(QCoreApplication.translate("Plot", "percentile"))
        return axis

    def positions(self, x: Array) -> Array:
        return percentile_positions(x)

    def text(self, position: float) -> str:
        percent = 100.0 * (1.0 - 10.0**-position)
        return f"p{percent:.4g}" if percent < 99.9 else f"p{percent:.2f}".rstrip("0")

    def ticks(self, low: float, high: float) -> Iterator[list[float]]:
        """The usual percentiles, and fewer of them."""
        for named in (PERCENTILES, _FEW_PERCENTILES):
            yield list(percentile_positions(np.array(named)))

    def tick_text(self, position: float) -> str:
        """`p99.9`."""
        return percentile_text(position)


def clock_text(seconds: int) -> str:
    """`12:05` or `1:02:05` for a number of seconds."""
    sign = "-" if seconds < 0 else ""
    minutes, rest = divmod(abs(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}:{minutes:02d}:{rest:02d}" if hours else f"{sign}{minutes}:{rest:02d}"
