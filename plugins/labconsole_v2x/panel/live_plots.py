"""The plots of a live run: rates, ages, verification times, loss, rejections by reason, queue, CPU, memory."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtWidgets import QGridLayout, QWidget

from labconsole_ui.plots.curve_plot import PlotCurve, TimePlot
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.live.growing_curves import GrowingCurve
from labconsole_ui.views.live.live_run import LiveRun
from labconsole_ui.views.live.role_plots import role_curves
from labconsole_v2x.live.series import (
    ACCEPTED_CHANNEL,
    AGE_CHANNEL,
    ATTACKED_CHANNEL,
    QUEUE_CHANNEL,
    RECEIVED_CHANNEL,
    SENT_CHANNEL,
    VERIFY_CHANNEL,
)
from labconsole_v2x.panel.station_board import StationBoard

_HEIGHT = 220


class LivePlots(QWidget):
    """Two columns of plots; each is built in one turn and laid out in the next."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._losses = GrowingCurve()
        self._reasons: dict[str, GrowingCurve] = {}
        self._counted: dict[str, int] = {}
        self._last_ns = 0
        self.plots: dict[str, TimePlot] = {}

    def pieces(self) -> Iterator[None]:
        """Build the plots."""
        waiting = self.tr("Appears once a run has started")
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(8)
        titles = {
            "rates": (self.tr("Rate"), "msg/s"),
            "age": (self.tr("Age when processed"), "ns"),
            "verify": (self.tr("Time to verify"), "ns"),
            "loss": (self.tr("Lost until now"), "%"),
            "reasons": (self.tr("Rejected by reason"), "msg/s"),
            "queue": (self.tr("Receiver queue"), "packets"),
            "cpu": (self.tr("CPU of each process"), "%"),
            "memory": (self.tr("Memory of each process"), "B"),
        }
        for place, (name, (title, unit)) in enumerate(titles.items()):
            plot = TimePlot(title, unit, self._theme, empty_text=waiting, parent=self)
            plot.hide()
            yield
            plot.setMinimumHeight(_HEIGHT)
            plot.show()
            grid.addWidget(plot, place // 2, place % 2)
            self.plots[name] = plot
            yield

    def begin(self) -> None:
        """Another run has begun: its curves take the place of those before."""
        self._losses, self._reasons, self._counted, self._last_ns = GrowingCurve(), {}, {}, 0
        for plot in self.plots.values():
            plot.set_curves(())

    def draw(self, live: LiveRun, board: StationBoard, loss: float | None) -> None:
        """Draw the newest values."""
        if live.latest is None or not self.plots:
            return
        zero_ns, now_ns = live.zero_ns, live.latest.t_ns
        self.plots["rates"].set_curves(
            [
                PlotCurve(channel.title, *live.rates[channel.name].points(zero_ns))
                for channel in (SENT_CHANNEL, RECEIVED_CHANNEL, ACCEPTED_CHANNEL, ATTACKED_CHANNEL)
                if channel.name in live.rates
            ]
        )
        for name, channel in (("age", AGE_CHANNEL), ("verify", VERIFY_CHANNEL)):
            curves = live.latencies.get(channel.name, {})
            self.plots[name].set_curves([PlotCurve(label, *curve.points(zero_ns)) for label, curve in curves.items()])
        if loss is not None:
            self._losses.append(now_ns, loss)
            self.plots["loss"].set_curves([PlotCurve(self.tr("Lost"), *self._losses.points(zero_ns))])
        self._note_reasons(board, now_ns)
        self.plots["reasons"].set_curves(
            [PlotCurve(reason.capitalize(), *curve.points(zero_ns)) for reason, curve in self._reasons.items()]
        )
        if QUEUE_CHANNEL.name in live.by_role:
            self.plots["queue"].set_curves(role_curves(live.by_role[QUEUE_CHANNEL.name], zero_ns))
        self.plots["cpu"].set_curves(role_curves(live.processors, zero_ns))
        self.plots["memory"].set_curves(role_curves(live.memories, zero_ns))

    def _note_reasons(self, board: StationBoard, now_ns: int) -> None:
        """Add a point of the rate of each reason since the last point."""
        seconds = (now_ns - self._last_ns) / 1e9
        if self._last_ns and seconds > 0:
            for reason, count in board.reasons.items():
                rate = (count - self._counted.get(reason, 0)) / seconds
                self._reasons.setdefault(reason, GrowingCurve()).append(now_ns, rate)
        self._counted, self._last_ns = dict(board.reasons), now_ns
