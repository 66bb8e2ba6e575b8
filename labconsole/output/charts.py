"""Charts of a report as SVG: bars with intervals, lines over time, percentiles. Pure: data in, text out.

Colours differ in lightness, lines also in dashes and markers, so that a print in grey tells them apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labconsole.analysis.answers import Answer
from labconsole.analysis.change import fitting_titles
from labconsole.analysis.confidence_intervals import Interval
from labconsole.analysis.distributions import percentile_curve
from labconsole.analysis.number_format import format_number
from labconsole.analysis.run_curves import thinned
from labconsole.output.svg import (
    GRID,
    INK,
    MUTED,
    Axis,
    drawing,
    element,
    line,
    shortened,
    text,
    text_width,
)
from labconsole.output.ticks import (
    PERCENTILES,
    log_range,
    percentile_positions,
    percentile_text,
    round_range,
    tick_text,
)

WIDE = 470.0
"""Width of a page's text, in points."""
NARROW = 228.0
"""Width of one of two charts next to each other."""
_MOST_POINTS = 300
_PERCENTILE_POINTS = 120
_ROW = 27.0
_MOST_BARS = 20
"""Bars of a chart that is not higher than a page."""
_LABEL_GAP = 14.0
_PLOT = 88.0
_COLOURS = ("#1b4f8a", "#c8501e", "#2a7f62", "#7b4f9e", "#b8860b", "#5b6675")
_DASHES = ("none", "6 2.5", "2 2", "8 2.5 2 2.5", "1 2.5", "12 3")
_BAR, _BASELINE, _PUBLISHED = "#1b4f8a", "#8fa3ba", "#ffffff"
_WHISKER = (("#ffffff", 2.4), (INK, 0.9))
"""A pale line under the dark one: the whisker shows on the bar and next to it."""


@dataclass(frozen=True)
class Bar:
    """A column's value; `interval` is its own, `published` ones are points of the source, drawn hollow."""

    label: str
    value: float
    interval: Interval | None = None
    baseline: bool = False
    published: bool = False


@dataclass(frozen=True)
class Line:
    """A line: arrays of equal length. The same thing has the same `style` (colour, dash, marker) in all charts."""

    style: int
    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]


def bar_charts(title: str, unit: str, bars: Sequence[Bar], width: float = NARROW) -> list[str]:
    """Horizontal bars from zero, each under its name, with their values, and whiskers for their intervals.

    More than `_MOST_BARS` are shared among several charts with the same axis.
    """
    reach = [bar.value for bar in bars] + [
        end for bar in bars if bar.interval for end in (bar.interval.low, bar.interval.high)
    ]
    low, high = round_range(min(reach), max(reach))
    value_width = max(text_width(format_number(bar.value)) for bar in bars) + 6
    axis = Axis(low, high, 2.0, width - value_width - 2)
    size = math.ceil(len(bars) / math.ceil(len(bars) / _MOST_BARS))
    parts = [bars[first : first + size] for first in range(0, len(bars), size)]
    return [_bar_chart(_chart_title(title, unit), part, axis, width) for part in parts]


def _bar_chart(title: str, bars: Sequence[Bar], axis: Axis, width: float) -> str:
    top, bottom = 18.0, 14.0
    height = top + _ROW * len(bars) + bottom
    parts = [title, *_vertical_grid(axis, top, height - bottom)]
    for index, bar in enumerate(bars):
        parts += _bar(bar, axis, top + _ROW * index, width)
    zero = axis.place(0.0)
    parts.append(line(zero, top, zero, height - bottom, INK, 0.7))
    return drawing(width, height, parts)


def answer_chart(answer: Answer) -> str:
    """The scenarios of an answer: title, bar from zero with a whisker, value; grey where it is not judged."""
    bars, row = answer.bars, 13.0
    width = NARROW
    most = 0.4 * width
    shown = fitting_titles([bar.title for bar in bars], lambda title: text_width(title) <= most)
    titles = min(most, max(map(text_width, shown)))
    values = max(text_width(bar.text) for bar in bars)
    largest = max(bar.interval.high if bar.interval is not None else bar.value for bar in bars) or 1.0
    axis = Axis(0.0, largest, titles + 6, width - titles - values - 14)
    parts = []
    for place, bar in enumerate(bars):
        top, end = place * row, axis.place(bar.value)
        fill = GRID if not answer.judged else _BAR if place == len(bars) - 1 else _BASELINE
        ink = INK if answer.judged else MUTED
        parts += [
            text(0, top + 9, shortened(shown[place], titles), fill=MUTED),
            element("rect", x=axis.start, y=top + 2, width=max(end - axis.start, 0.8), height=8, fill=fill),
            text(width, top + 9, bar.text, anchor="end", fill=ink),
        ]
        if bar.interval is not None:
            ends = (axis.place(bar.interval.low), axis.place(bar.interval.high))
            parts += [line(*(ends[0], top + 6, ends[1], top + 6), colour, wide) for colour, wide in _WHISKER]
    return drawing(width, len(bars) * row, parts)


def line_chart(title: str, x_title: str, unit: str, lines: Sequence[Line]) -> str:
    """A small chart: lines on linear axes under their names, y from zero on, each reduced to a few hundred points."""
    reduced = [Line(one.style, one.label, *thinned(one.x, one.y, _MOST_POINTS)) for one in lines]
    xs, ys = np.concatenate([one.x for one in reduced]), np.concatenate([one.y for one in reduced])
    legend, top = _legend(lines, NARROW)
    frame = _Frame(NARROW, top + _PLOT + 26, 34.0, top, NARROW - 4, top + _PLOT)
    first = min(0.0, float(xs.min()))
    x_axis = frame.x(first, max(float(xs.max()), first + 1e-9))
    y_axis = frame.y(*round_range(float(ys.min()), float(ys.max())))
    parts = [_chart_title(title, unit), *legend, *_horizontal_grid(y_axis, frame)]
    for tick in x_axis.ticks(5):
        parts += _x_tick(x_axis.place(tick), tick_text(tick), frame, grid=False)
    parts += [_x_title(x_title, frame), *_lines(reduced, x_axis, y_axis, frame)]
    return drawing(frame.width, frame.height, parts)


def percentile_chart(title: str, unit: str, samples: Sequence[tuple[int, str, NDArray[np.float64]]]) -> str:
    """Percentiles of each sample (style and label as of a `Line`, values; more than ten), up to p99.9.

    Both axes are logarithmic (y where all values are above zero): p90, p99, p99.9 are equally far apart.
    """
    lines = [_percentiles(*sample) for sample in samples]
    ys = np.concatenate([one.y for one in lines])
    labels = min(0.38 * WIDE, max(text_width(one.label) for one in lines) + _LABEL_GAP)
    frame = _Frame(WIDE, 0.28 * WIDE, 40.0, 20.0, WIDE - labels, 0.28 * WIDE - 30)
    ticks = [float(at) for at in percentile_positions(np.array(PERCENTILES))]
    x_axis = frame.x(0.0, ticks[-1])
    positive = bool((ys > 0).all())
    bounds = (log_range if positive else round_range)(float(ys.min()), float(ys.max()))
    y_axis = frame.y(*bounds, logarithmic=positive)
    parts = [_chart_title(title, unit), *_horizontal_grid(y_axis, frame)]
    for tick in ticks:
        parts += _x_tick(x_axis.place(tick), percentile_text(tick), frame, grid=True)
    parts += [_x_title("share of the values that are this or less", frame), *_lines(lines, x_axis, y_axis, frame)]
    parts += _line_labels(lines, y_axis, frame)
    return drawing(frame.width, frame.height, parts)


@dataclass(frozen=True)
class _Frame:
    """Size of a picture, and the place of the plot in it."""

    width: float
    height: float
    left: float
    top: float
    right: float
    bottom: float

    def x(self, low: float, high: float) -> Axis:
        return Axis(low, high, self.left, self.right - self.left)

    def y(self, low: float, high: float, *, logarithmic: bool = False) -> Axis:
        return Axis(low, high, self.bottom, self.top - self.bottom, logarithmic)


def _chart_title(title: str, unit: str) -> str:
    return text(0, 9, f"{title}, {unit}" if unit else title, font_weight=600, font_size=8)


def _vertical_grid(axis: Axis, top: float, bottom: float) -> list[str]:
    parts = []
    for tick in axis.ticks(4):
        x = axis.place(tick)
        parts.append(line(x, top, x, bottom, GRID))
        parts.append(text(x, bottom + 10, tick_text(tick), anchor="middle" if x > 8 else "start", fill=MUTED))
    return parts


def _bar(bar: Bar, axis: Axis, y: float, width: float) -> list[str]:
    zero, end = axis.place(0.0), axis.place(bar.value)
    top, middle = y + 13, y + 18.5
    fill = _PUBLISHED if bar.published else _BASELINE if bar.baseline else _BAR
    outline = {"stroke": INK, "stroke_width": "0.7", "stroke_dasharray": "2 1.5"} if bar.published else {}
    parts = [
        text(max(zero, 2.0) + 2, y + 9.5, shortened(bar.label, width - 4)),
        element("rect", x=min(zero, end), y=top, width=abs(end - zero), height=11, fill=fill, **outline),
    ]
    right = max(zero, end)
    if bar.interval is not None:
        low, high = axis.place(bar.interval.low), axis.place(bar.interval.high)
        for colour, thickness in _WHISKER:
            parts.append(line(low, middle, high, middle, colour, thickness))
            parts += [line(x, middle - 3, x, middle + 3, colour, thickness) for x in (low, high)]
        right = max(right, high)
    return [*parts, text(right + 4, middle + 2.7, format_number(bar.value))]


def _horizontal_grid(axis: Axis, frame: _Frame) -> list[str]:
    parts = []
    for tick in axis.ticks(5):
        y = axis.place(tick)
        parts.append(line(frame.left, y, frame.right, y, GRID))
        parts.append(text(frame.left - 4, y + 2.6, tick_text(tick), anchor="end", fill=MUTED))
    return parts


def _x_tick(x: float, label: str, frame: _Frame, *, grid: bool) -> list[str]:
    top = frame.top if grid else frame.bottom - 3
    return [
        line(x, top, x, frame.bottom, GRID if grid else MUTED),
        text(x, frame.bottom + 10, label, anchor="middle", fill=MUTED),
    ]


def _x_title(title: str, frame: _Frame) -> str:
    return text((frame.left + frame.right) / 2, frame.bottom + 22, title, anchor="middle", fill=MUTED)


def _lines(lines: Sequence[Line], x_axis: Axis, y_axis: Axis, frame: _Frame) -> list[str]:
    parts = [line(frame.left, frame.bottom, frame.right, frame.bottom, INK, 0.7)]
    for one in lines:
        points = [(x_axis.place(float(x)), y_axis.place(float(y))) for x, y in zip(one.x, one.y, strict=True)]
        parts.append(_stroke(one.style, " ".join(f"{x:.1f},{y:.1f}" for x, y in points)))
        for x, y in points[len(points) // 8 :: max(1, len(points) // 4)]:
            parts.append(_marker(one.style, x, y))
    return parts


def _legend(lines: Sequence[Line], width: float) -> tuple[list[str], float]:
    """The names of the lines, each behind a piece of it, in as many rows as they need; and where these end."""
    parts, x, y = [], 0.0, 21.0
    for one in lines:
        label = shortened(one.label, width - 20)
        if x > 0 and x + 20 + text_width(label) > width:
            x, y = 0.0, y + 10.5
        parts.append(_stroke(one.style, f"{x:.1f},{y - 2.6:.1f} {x + 14:.1f},{y - 2.6:.1f}"))
        parts += [_marker(one.style, x + 7, y - 2.6), text(x + 17, y, label, fill=_colour(one.style))]
        x += text_width(label) + 30
    return parts, y + 8


def _stroke(style: int, points: str) -> str:
    return element(
        "polyline",
        points=points,
        fill="none",
        stroke=_colour(style),
        stroke_width=1.1,
        stroke_linejoin="round",
        stroke_dasharray=_DASHES[style % len(_DASHES)],
    )


def _line_labels(lines: Sequence[Line], y_axis: Axis, frame: _Frame) -> list[str]:
    """Each line's name at its end, moved apart where they would touch."""
    distance = 9.5
    order = sorted(range(len(lines)), key=lambda index: y_axis.place(float(lines[index].y[-1])))
    places: list[float] = []
    for index in order:
        wanted = y_axis.place(float(lines[index].y[-1]))
        places.append(max(wanted, places[-1] + distance) if places else max(wanted, frame.top))
    over = places[-1] - frame.bottom
    for position in range(len(places) - 1, -1, -1) if over > 0 else ():
        limit = frame.bottom if position == len(places) - 1 else places[position + 1] - distance
        places[position] = min(places[position], limit)
    room = frame.width - frame.right - _LABEL_GAP + 4
    parts = []
    for index, y in zip(order, places, strict=True):
        one = lines[index]
        parts.append(_marker(one.style, frame.right + 5, y))
        parts.append(text(frame.right + 10, y + 2.6, shortened(one.label, room), fill=_colour(one.style)))
    return parts


def _colour(style: int) -> str:
    return _COLOURS[style % len(_COLOURS)]


def _marker(style: int, x: float, y: float) -> str:
    colour, size = _colour(style), 2.0
    match style % 4:
        case 0:
            return element("circle", cx=x, cy=y, r=size, fill=colour)
        case 1:
            return element("rect", x=x - size, y=y - size, width=2 * size, height=2 * size, fill=colour)
        case 2:
            shape = f"M{x:.1f} {y - 2.6:.1f} L{x + 2.4:.1f} {y + 2:.1f} L{x - 2.4:.1f} {y + 2:.1f} Z"
        case _:
            shape = f"M{x:.1f} {y - 2.8:.1f} L{x + 2.8:.1f} {y:.1f} L{x:.1f} {y + 2.8:.1f} L{x - 2.8:.1f} {y:.1f} Z"
    return element("path", d=shape, fill=colour)


def _percentiles(style: int, label: str, values: NDArray[np.float64]) -> Line:
    fractions, percentiles = percentile_curve(values, _PERCENTILE_POINTS)
    return Line(style, label, percentile_positions(fractions), percentiles)
