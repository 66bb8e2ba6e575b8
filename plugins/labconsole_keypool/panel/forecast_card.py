"""The forecast in the window: the held-out week with its forecast and benchmark, the next week, and idle windows."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from labconsole_keypool.planning.arrival_log import HOUR
from labconsole_keypool.planning.forecast import WEEK, Forecast
from labconsole_keypool.planning.generation_plan import GenerationPlan, Window
from labconsole_keypool.planning.plan import window_texts
from labconsole_ui.plots.axes import GridAxis, Scale
from labconsole_ui.plots.curve_plot import CurvePlot, PlotCurve
from labconsole_ui.runtime.incremental import EventLoopQueue
from labconsole_ui.tables.record_table import DataTable, Field, RecordModel
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import plain_label

_DAY_H = 24
_LEAST_PIXELS = 60
"""Room for `Mon 02`."""


class DayScale(Scale):
    """Hours since `midnight`."""

    def __init__(self, midnight: datetime) -> None:
        self._midnight = midnight

    def axis(self) -> GridAxis:
        axis = _DayAxis(self)
        axis.enableAutoSIPrefix(False)
        axis.showLabel(False)
        return axis

    def text(self, position: float) -> str:
        return f"{self._at(position):%a %d %b %H:00}"

    def day(self, position: float) -> str:
        """`Mon 02`."""
        return f"{self._at(position):%a %d}"

    def _at(self, position: float) -> datetime:
        return self._midnight + timedelta(hours=int(position))


class _DayAxis(GridAxis):
    """A tick at each midnight, or at some of them where days are narrow."""

    def __init__(self, scale: DayScale) -> None:
        super().__init__("bottom")
        self._scale = scale

    def tickValues(self, minVal: float, maxVal: float, size: float) -> Any:  # noqa: N802, N803 - pyqtgraph's
        """Midnights, so many days apart that their names do not touch."""
        low, high = sorted((minVal, maxVal))
        days = next(days for days in (1, 2, 7, 14, 28, 10_000) if size * days * _DAY_H >= _LEAST_PIXELS * (high - low))
        step = days * _DAY_H
        first = -int(-low // step)
        return [(float(step), [float(at * step) for at in range(first, int(high // step) + 1)])]

    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:  # noqa: N802 - pyqtgraph's
        """The days that begin at `values`."""
        return [self._scale.day(value) for value in values]


_PLOT_HEIGHT = 250
_CAME, _PREDICTED, _NAIVE, _NEXT = 0, 1, 3, 2
"""Places in the palette."""


class ForecastCard(QFrame):
    """Shown when there is a forecast."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._theme = theme
        self._turns = EventLoopQueue(self)
        self.plot: CurvePlot | None = None
        self.title = plain_label("", self)
        self.title.setFont(theme.font(FontRole.HEADING))
        self.errors = self._line(self.tr("Error of the forecast"))
        self.generation = self._line(self.tr("Plan of key generation"))
        self.pool = self._line(self.tr("Size of the pool"))
        self.windows = DataTable(self.tr("Idle windows"), theme, self)
        self.windows.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        titles = (self.tr("Idle from"), self.tr("to"), self.tr("Keys to generate"), self.tr("Then in the pool"))
        self.model = RecordModel([self._field(title, place) for place, title in enumerate(titles)], theme, self)
        self.windows.setModel(self.model)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(16, 12, 16, 12)
        self._column.setSpacing(8)
        for part in (self.title, self.errors, self.generation, self.pool, self.windows):
            self._column.addWidget(part)
        self.hide()

    def show_forecast(self, forecast: Forecast, generation: GenerationPlan) -> None:
        """Show this one instead of the one before, plot and texts in a turn of the event loop each."""
        self._turns.replace([partial(self._draw, forecast), partial(self._show_texts, forecast, generation)])

    def forget(self) -> None:
        """Show none."""
        self._turns.replace([])
        self.hide()

    def _show_texts(self, forecast: Forecast, generation: GenerationPlan) -> None:
        self.title.setText(self.tr("Forecast from {source}").format(source=forecast.log.source))
        self.errors.setText(forecast.sentence)
        self.errors.setProperty("tone", None if forecast.beats_naive else "warning")
        self.generation.setText(generation.sentence)
        self.pool.setText("\n".join(generation.pool.steps))
        self.model.set_records(generation.windows)
        self.windows.setVisible(bool(generation.windows))
        height = self.windows.verticalHeader().defaultSectionSize() * len(generation.windows)
        self.windows.setFixedHeight(height + self.windows.horizontalHeader().sizeHint().height() + 4)
        self.show()
        self.windows.fit_columns()

    def _draw(self, forecast: Forecast) -> None:
        """A separate plot for each forecast: the days along its axis are the forecast's."""
        if self.plot is not None:
            self.plot.deleteLater()
        start = forecast.held_out_start
        midnight = start.replace(hour=0)
        plot = CurvePlot(
            self.tr("Requests in each hour"), "requests", DayScale(midnight), self._theme, empty_text="", parent=self
        )
        plot.setFixedHeight(_PLOT_HEIGHT)
        last, following = _hours(start, midnight), _hours(forecast.start, midnight)
        plot.set_curves(
            [
                PlotCurve(self.tr("Week before"), last, forecast.naive, _NAIVE),
                PlotCurve(self.tr("Held-out week"), last, forecast.held_out, _CAME),
                PlotCurve(self.tr("Its forecast"), last, forecast.predicted, _PREDICTED),
                PlotCurve(self.tr("Next week"), following, forecast.expected, _NEXT),
            ]
        )
        self._column.insertWidget(2, plot)
        self.plot = plot

    def _line(self, name: str) -> QLabel:
        label = plain_label("", self)
        label.setAccessibleName(name)
        label.setWordWrap(True)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        return label

    @staticmethod
    def _field(title: str, place: int) -> Field[Window]:
        return Field(title, lambda window: window_texts(window)[place])


def _hours(start: datetime, midnight: datetime) -> NDArray[np.float64]:
    """Each hour of a week from `start` on, since `midnight`."""
    return (start - midnight) / HOUR + np.arange(WEEK, dtype=np.float64)
