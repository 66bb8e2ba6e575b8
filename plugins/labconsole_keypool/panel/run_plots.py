"""The plots of a run of the signing service: latency of each request, queue, arrival rate; and sources of keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtWidgets import QGridLayout, QWidget

from labconsole.model.trial import Curve
from labconsole.store.reader import Reader
from labconsole_keypool.choices import KeyOrigin
from labconsole_keypool.panel.pool_state import SOURCES
from labconsole_keypool.results.curves import BELOW_ZERO, curves
from labconsole_keypool.results.recorded_run import RecordedRun, load_recorded_run
from labconsole_keypool.series import DROPPED_CHANNEL, PROCESSED_CHANNEL, RECEIVED_CHANNEL, TAKEN_CHANNEL
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_ui.plots.axes import TimeScale
from labconsole_ui.plots.curve_plot import PlotCurve, TimePlot
from labconsole_ui.plots.scatter_plot import PlotPoints, ScatterPlot
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.live.figure_table import Figure, FigureTable
from labconsole_ui.views.live.growing_curves import GrowingCurve
from labconsole_ui.views.live.live_run import LiveRun

BEGIN_EVENT = "T0"
"""The event with T0, to which the times of samples refer."""
START_EVENT = "pool"
"""The event with the number of new keys in the store before the run."""


Points = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class RunPoints:
    """`by_source`: arrival (s since T0) and latency (ms) of the signed requests; `dropped` the same, below zero."""

    run_id: int
    by_source: dict[KeyOrigin, Points]
    dropped: Points
    curves: tuple[Curve, ...] = ()
    """Those of the run view, of a run that has ended."""

    @property
    def requests(self) -> int:
        """Number of points."""
        return sum(len(x) for x, _ in self.by_source.values()) + len(self.dropped[0])


def load_points(database: Path, run_id: int, *, ended: bool) -> RunPoints:
    """The stored points of a run so far, with its curves once it has `ended`; empty before T0. Raises StoreError."""
    with Reader(database) as reader:
        run = reader.run(run_id)
        if not any(event.name == BEGIN_EVENT for event in run.events):
            return RunPoints(run_id, {}, (np.empty(0), np.empty(0)))
        parameters = ServiceParameters.of_stored(run.row.parameters)
        samples = reader.samples(run_id)
        points = points_of(run_id, load_recorded_run(parameters, samples, run.events))
        return replace(points, curves=curves(parameters, samples, run.events)) if ended else points


def points_of(run_id: int, recorded: RecordedRun) -> RunPoints:
    """The points of recorded samples."""
    received_s, latencies_ms = recorded.requests["received"] / 1e9, recorded.latencies / 1e6
    sources = recorded.requests["key_source"]
    by_source: dict[KeyOrigin, Points] = {
        source: (received_s[chosen], latencies_ms[chosen])
        for source in KeyOrigin
        if source is not KeyOrigin.NONE and (chosen := sources == source).any()
    }
    dropped_s = recorded.drops["received"] / 1e9
    beneath = np.full(len(dropped_s), -BELOW_ZERO * float(latencies_ms.max(initial=1.0)))
    return RunPoints(run_id, by_source, (dropped_s, beneath))


def stored_at_start(database: Path, run_id: int) -> int | None:
    """Number of new keys in the store before the run, by its event; None before that event. Raises StoreError."""
    with Reader(database) as reader:
        events = reader.run(run_id).events
    return next((int(event.data["new"]) for event in events if event.name == START_EVENT), None)


def newest_run(database: Path, kind: str) -> int | None:
    """The newest run of this kind, if there is one. Raises StoreError."""
    with Reader(database) as reader:
        return next((row.id for row in reader.runs(kind=kind, metrics=(), limit=1)), None)


_COLOURS = {
    KeyOrigin.TOKEN_RAM: 2,
    KeyOrigin.TOKEN_STORE: 5,
    KeyOrigin.POOL: 0,
    KeyOrigin.GENERATED: 1,
}
_TITLES = {
    source: f"{letter}: {channel.title}" for source, letter, channel in zip(_COLOURS, "ABCD", SOURCES, strict=True)
}
_DROPPED_COLOUR = 3
_PLOT_HEIGHT = 236
_NO_POINTS = RunPoints(0, {}, (np.empty(0), np.empty(0)))


class RunPlots(QWidget):
    """Rates and queue come from live frames, the points from what the run has stored by now."""

    latency_plot: ScatterPlot
    queue_plot: TimePlot
    rate_plot: TimePlot

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._queue = GrowingCurve()

    def pieces(self) -> Iterator[None]:
        """Build the table of sources and the plots: each is built in one turn and laid out in the next."""
        theme, waiting = self._theme, self.tr("Appears once a run of the service has started")
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(8)
        self.sources = FigureTable(theme, self)
        grid.addWidget(self.sources, 0, 0, 1, 2)
        self._show_sources(_NO_POINTS)
        yield
        self.latency_plot = ScatterPlot(
            self.tr("Latency of each request"), "ms", TimeScale(), theme, empty_text=waiting, parent=self
        )
        self.latency_plot.hide()
        yield
        self.latency_plot.setMinimumHeight(_PLOT_HEIGHT)
        self.latency_plot.show()
        grid.addWidget(self.latency_plot, 1, 0, 1, 2)
        yield
        self.queue_plot = TimePlot(self.tr("Queue length"), "requests", theme, empty_text=waiting, parent=self)
        self.queue_plot.hide()
        yield
        self.queue_plot.setMinimumHeight(_PLOT_HEIGHT)
        self.queue_plot.show()
        grid.addWidget(self.queue_plot, 2, 0)
        yield
        self.rate_plot = TimePlot(self.tr("Arrival rate"), "requests/s", theme, empty_text=waiting, parent=self)
        self.rate_plot.hide()
        yield
        self.rate_plot.setMinimumHeight(_PLOT_HEIGHT)
        self.rate_plot.show()
        grid.addWidget(self.rate_plot, 2, 1)
        yield
        self.show_points(_NO_POINTS)

    def begin(self) -> None:
        """Another run starts: its curves take the place of those before."""
        self._queue = GrowingCurve()
        self.queue_plot.set_curves(())
        self.rate_plot.set_curves(())
        self.latency_plot.set_points(())

    def take(self, live: LiveRun) -> None:
        """Note the queue's length as of the newest frame."""
        frame = live.latest
        if frame is None or frame.begin_ns is None:
            return
        counts = [
            frame.channels[channel.name].count if channel.name in frame.channels else 0
            for channel in (RECEIVED_CHANNEL, DROPPED_CHANNEL, TAKEN_CHANNEL)
        ]
        self._queue.append(frame.t_ns, max(0, counts[0] - counts[1] - counts[2]))

    def draw(self, live: LiveRun) -> None:
        """Draw queue and rates."""
        self.queue_plot.set_curves([PlotCurve(self.tr("Waiting"), *self._queue.points(live.zero_ns))])
        self.rate_plot.set_curves(
            [
                PlotCurve(title, *live.rates[channel.name].points(live.zero_ns))
                for channel, title in ((RECEIVED_CHANNEL, self.tr("Arriving")), (PROCESSED_CHANNEL, self.tr("Signed")))
                if channel.name in live.rates
            ]
        )

    def show_points(self, points: RunPoints) -> None:
        """Show each request of a run; of one that has ended also its stored curves, instead of the live ones."""
        for group, plot in (("Queue length", self.queue_plot), ("Arrival rate", self.rate_plot)):
            stored = [
                PlotCurve(curve.title, curve.t_s, curve.values) for curve in points.curves if curve.group == group
            ]
            if stored:
                plot.set_curves(stored)
        kinds = [
            PlotPoints(_TITLES[source], x, values, _COLOURS[source]) for source, (x, values) in points.by_source.items()
        ]
        if len(points.dropped[0]):
            kinds.append(PlotPoints(self.tr("Dropped"), *points.dropped, _DROPPED_COLOUR, marked=True))
        self.latency_plot.set_points(kinds)
        self._show_sources(points)

    def _show_sources(self, points: RunPoints) -> None:
        counts = {source: len(points.by_source[source][0]) if source in points.by_source else 0 for source in _COLOURS}
        about = self.tr("Requests by where their key pair came from, as in Appendix B")
        figures = [Figure(_TITLES[source], f"{count:,}", about) for source, count in counts.items()]
        dropped = Figure(
            self.tr("Dropped"), f"{len(points.dropped[0]):,}", self.tr("Requests that found the queue full")
        )
        self.sources.set_figures([*figures, dropped])
