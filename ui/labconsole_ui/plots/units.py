"""Axis units: what is plotted in SI base units and gets prefixes (ms, MB), and what keeps its unit as it is (msg/s)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from labconsole.analysis.number_format import format_figure, format_number

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
        """A drawn value as a person reads it: `1.235 ms`, `60,123 msg/s`."""
        if not self.prefixed:
            return format_figure(drawn, self.unit)
        ((_, largest),) = self.prefix_ranges
        for size, prefix in _PREFIXES:
            if abs(drawn) >= size and size <= largest:
                # Six digits: 0.0005 s are 500 µs, and not 499.99999999999994.
                return f"{format_number(float(f'{drawn / size:.6g}'))} {prefix}{self.unit}"
        return f"{format_number(drawn)} {self.unit}"

    def spread_text(self, middle: float, low: float, high: float) -> str:
        """A drawn value with the smallest and the largest of several: `1.2 (1.1–1.3) ms`, `990 µs (900 µs–1.3 ms)`."""
        texts = [self.text(value) for value in (middle, low, high)]
        units = {text.rpartition(" ")[2] for text in texts}
        if self.unit and len(units) == 1:
            numbers = [text.rpartition(" ")[0] for text in texts]
            return f"{numbers[0]} ({numbers[1]}–{numbers[2]}) {units.pop()}"
        return f"{texts[0]} ({texts[1]}–{texts[2]})"


def axis_unit(stored: str) -> AxisUnit:
    """The axis for values stored in unit `stored`: times become seconds, seconds and bytes get SI prefixes."""
    seconds = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    if stored in seconds:
        return AxisUnit(stored, "s", seconds[stored], True)
    if stored in ("B", "B/s", "bit/s", "Hz", "W"):
        return AxisUnit(stored, stored, 1.0, True)
    return AxisUnit(stored, stored, 1.0, False)
