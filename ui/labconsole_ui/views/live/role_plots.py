"""The plots of values by role in the live view, one for each gauge and each rate by role."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QCoreApplication

from labconsole.model.trial import LiveKind
from labconsole_ui.plots.curve_plot import PlotCurve, TimePlot
from labconsole_ui.plots.plot_grid import PlotGrid
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.live.growing_curves import HIGHEST, LOWEST, MEDIAN, RoleCurves
from labconsole_ui.views.live.live_run import LiveRun, rate_unit


class RolePlots:
    """Adds to `grid` the plots that the trial of each run declares."""

    def __init__(self, grid: PlotGrid, theme: Theme, empty_text: str) -> None:
        self._grid = grid
        self._theme = theme
        self._empty_text = empty_text
        self._live: LiveRun | None = None
        self.turns: tuple[Callable[[], None], ...] = ()
        """Functions that draw the newest curves, one plot each; missing plots are created."""
        self.plots: dict[str, TimePlot] = {}
        """By channel."""

    def begin(self, live: LiveRun) -> None:
        """Start with another run: the plots of the one before are removed."""
        for name in self.plots:
            self._grid.remove(_key(name))
        self.plots = {}
        self._live = live
        self.turns = tuple(partial(self._draw, live, name) for name in live.by_role)

    def _draw(self, live: LiveRun, name: str) -> None:
        if live is not self._live:
            return  # another run has begun while this waited for its turn
        if name not in self.plots:
            self.plots[name] = self._create(live, name)
        self.plots[name].set_curves(role_curves(live.by_role[name], live.zero_ns))

    def _create(self, live: LiveRun, name: str) -> TimePlot:
        channel = live.channel(name)
        title, unit = channel.title, channel.unit
        if channel.kind is LiveKind.TOTAL:
            title = QCoreApplication.translate("Roles", "{0}: rate by role").format(title)
            unit = rate_unit(unit)
        plot = TimePlot(title, unit, self._theme, empty_text=self._empty_text)
        self._grid.add(_key(name), plot)
        return plot


def role_curves(curves: RoleCurves, zero_ns: int) -> list[PlotCurve]:
    """The curves of a plot: one of each role, or those that represent all of them."""
    tr = QCoreApplication.translate
    words = {HIGHEST: tr("Roles", "Highest"), MEDIAN: tr("Roles", "Median"), LOWEST: tr("Roles", "Lowest")}
    words = words if curves.many else {}
    return [PlotCurve(words.get(name, name), *curve.points(zero_ns)) for name, curve in curves.curves.items()]


def _key(name: str) -> str:
    """The name of a channel's plot in the grid."""
    return f"by role: {name}"
