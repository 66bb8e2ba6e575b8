"""The columns of a comparison in plots, and a pane that reads samples when it is first shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from time import perf_counter
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QProgressBar, QVBoxLayout, QWidget

from labconsole.analysis.columns import title_with_origin
from labconsole.analysis.comparison import Column, RunGroup
from labconsole_ui.plots.curve_plot import CurvePlot
from labconsole_ui.plots.legend import Legend
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.incremental import EventLoopQueue
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.run_samples import RunSamples
from labconsole_ui.widgets.labels import plain_label

OVERLAY_HEIGHT = 172
"""Least height (px) of a plot in a pane."""
PREVIEW_FROM_S = 0.3
"""Time (s) of reading the other runs from which the first ones are drawn before: drawing twice takes time, too."""
STEP = 5
"""Runs between two steps of the progress bar: every step repaints the page at once."""


@dataclass(frozen=True)
class SampledColumn:
    """A column with samples: its title with its origin, the index of its colour, and its runs."""

    title: str
    colour: int
    run_ids: tuple[int, ...]


def sampled_columns(columns: Sequence[Column]) -> tuple[SampledColumn, ...]:
    """The columns that have runs; published ones have no samples."""
    return tuple(
        SampledColumn(title_with_origin(column), index, tuple(run.id for run in column.used))
        for index, column in enumerate(columns)
        if isinstance(column, RunGroup)
    )


class SamplesPane(QWidget):
    """Reads samples in the background while visible, a first run of each column before the others.

    Subclasses read in `read_run` (on the background's thread) and show in `turns`."""

    def __init__(self, samples: RunSamples, background: Background, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._samples = samples
        self._background = background
        self._theme = theme
        self._wanted: tuple[SampledColumn, ...] = ()
        self._shown: tuple[SampledColumn, ...] | None = None
        self._parts: dict[int, Any] = {}
        self._round = 0
        self._runs_read = 0
        self._turns = EventLoopQueue(self)
        self.progress = QProgressBar(self)
        self.progress.setTextVisible(False)
        self.progress.setAccessibleName(self.tr("Reading the samples"))
        self.progress.hide()
        self.note = plain_label("", self)
        self.note.setProperty("muted", True)
        self.note.setWordWrap(True)
        self.note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.note.hide()
        self.legend = Legend(theme, self)
        self.legend.toggled.connect(self._toggle)
        self._hidden: set[str] = set()
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 8, 0, 0)
        self.column.setSpacing(6)
        self.column.addWidget(self.progress)
        self.column.addWidget(self.note)
        self.column.addWidget(self.legend)

    @property
    def complete(self) -> bool:
        """Whether all runs are shown."""
        return self._shown == self._wanted

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Show these columns, at once or when the pane becomes visible."""
        self._wanted = sampled_columns(columns)
        if self.isVisible():
            self._read()

    def showEvent(self, event: QShowEvent) -> None:
        """Read runs that were set while the pane was hidden."""
        super().showEvent(event)
        if not self.complete:
            self._read()

    def read_run(self, run_id: int) -> Any:
        """The data shown of a run. Raises UserError."""
        raise NotImplementedError

    def turns(self, columns: Sequence[SampledColumn], parts: Mapping[int, Any]) -> Iterator[Callable[[], None]]:
        """Functions that show the columns, 10 ms each: the window paints and reacts in between.

        `parts` are the data of their runs.
        """
        raise NotImplementedError

    def all_plots(self) -> Sequence[CurvePlot]:
        """The plots that the legend serves."""
        raise NotImplementedError

    def _toggle(self, title: str, shown: bool) -> None:
        self._hidden.discard(title) if shown else self._hidden.add(title)
        for plot in self.all_plots():
            plot.show_entry(title, shown)

    def _read(self) -> None:
        """Read the first run of each column, and show them if the others will take long."""
        self._round += 1
        firsts = {column.run_ids[0] for column in self._wanted}
        missing = [run_id for run_id in _repeat_by_repeat(self._wanted) if run_id not in self._parts]
        ahead = [run_id for run_id in missing if run_id in firsts]
        self.progress.setRange(0, len(missing) if len(missing) >= STEP else 0)  # few: the bar moves by itself
        self.progress.setValue(0)
        self._runs_read = 0
        self.progress.setVisible(bool(missing))
        self.note.hide()
        self._submit(ahead)
        begin, others = perf_counter(), len(missing) - len(ahead)
        self._background.submit(
            lambda: (perf_counter() - begin) / max(1, len(ahead)) * others,
            partial(self._receive_firsts, self._round),
            self._show_sentence,
        )

    def _submit(self, run_ids: Sequence[int]) -> None:
        for run_id in run_ids:
            self._background.submit(
                partial(self._read_if_wanted, self._round, run_id), partial(self._receive, run_id), self._show_sentence
            )

    def _read_if_wanted(self, turn: int, run_id: int) -> Any:
        """The run's data; None for a request from before the columns changed, which is repeated."""
        return self.read_run(run_id) if turn == self._round else None

    def _receive(self, run_id: int, part: Any) -> None:
        if part is not None:
            self._parts[run_id] = part
            self._runs_read += 1
            if self._runs_read % STEP == 0:
                self.progress.setValue(self._runs_read)

    def _receive_firsts(self, turn: int, others_s: float) -> None:
        """`others_s` is the expected time for the other runs, from that of the first ones."""
        if turn == self._round:
            self._show(self._read_others) if others_s > PREVIEW_FROM_S else self._read_others()

    def _read_others(self) -> None:
        self._submit([run_id for run_id in _repeat_by_repeat(self._wanted) if run_id not in self._parts])
        self._background.submit(self._samples.release, partial(self._finish, self._round), self._show_sentence)

    def _finish(self, turn: int, _: None) -> None:
        if turn == self._round:
            self.progress.hide()
            self._show(self._end)

    def _end(self) -> None:
        self._shown = self._wanted

    def _show(self, then: Callable[[], None]) -> None:
        """Show the data step by step, and do `then`."""
        colours = {column.title: column.colour for column in self._wanted}
        self.legend.set_titles(list(colours), self._hidden, colours)
        # Each added plot moves those before it, which would repaint them each time.
        self.setUpdatesEnabled(False)
        self._turns.replace([*self.turns(self._wanted, self._parts), self._paint, then])

    def _paint(self) -> None:
        """Paint the page, and its plots one after another: all of them in one turn would take 50 ms."""
        plots = self.all_plots()
        for plot in plots:
            plot.setUpdatesEnabled(False)
        self.setUpdatesEnabled(True)
        self._turns.add_first(partial(plot.setUpdatesEnabled, True) for plot in plots)

    def _show_sentence(self, sentence: str) -> None:
        self.note.setText(sentence)
        self.note.show()


def _repeat_by_repeat(columns: Sequence[SampledColumn]) -> list[int]:
    """The first run of every column, then the second of every column, and so on."""
    rounds = zip_longest(*(column.run_ids for column in columns))
    return [run_id for line in rounds for run_id in line if run_id is not None]
