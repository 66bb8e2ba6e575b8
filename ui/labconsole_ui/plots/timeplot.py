"""A plot over time: curves of one unit over the seconds since T0."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from labconsole_ui.plots.axes import TimeScale
from labconsole_ui.plots.curve_plot import CurvePlot
from labconsole_ui.theme.theme import Theme


class TimePlot(CurvePlot):
    """Curves of one unit over time."""

    def __init__(self, title: str, unit: str, theme: Theme, *, empty_text: str, parent: QWidget | None = None) -> None:
        super().__init__(title, unit, TimeScale(), theme, empty_text=empty_text, parent=parent)
