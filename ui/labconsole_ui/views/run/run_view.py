"""The run view: one run's figures, parameters, verdicts, events and provenance, next to its plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QPushButton,
    QSplitter,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from labconsole.analysis.parameter_texts import describe_hosts, describe_parameters
from labconsole.engine.queue import ShownStatus
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Curve, Verdict
from labconsole.store import edits
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow, RunStatus
from labconsole.store.run_store import Store
from labconsole_ui.plots.curve_plot import CurvePlot, PlotCurve, TimePlot
from labconsole_ui.plots.plot_grid import PlotGrid
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.incremental import EventLoopQueue
from labconsole_ui.runtime.plot_reader import PlotReader
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.tables.record_table import DataTable, Field, RecordModel
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.run import result_tables
from labconsole_ui.views.run.evidence import EvidencePane
from labconsole_ui.views.run.loaded_run import LoadedRun, load_run
from labconsole_ui.views.run.run_header import RunHeader
from labconsole_ui.views.run.stored_files import StoredFilesPane
from labconsole_ui.views.run.verdict_table import VerdictTable
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import busy_bar, plain_label
from labconsole_ui.widgets.layouts import page_parent

WIDEST_PARAMETER = 280
MIN_TABLES_WIDTH, MIN_PLOTS_WIDTH = 380, 340
FIRST_TABLES_WIDTH = 574
"""Initial width of the tables where there is room; more if the tabs need it."""


class RunView(QWidget):
    """Loads the run in the background, and again when it has finished.

    `status_shown` carries its `RunStatus`; the other signals request an action on it: use its parameters again,
    compare it with the baseline, report, export as an `ExportFormat`.
    """

    status_shown = Signal(object)
    use_wanted = Signal(int)
    compare_wanted = Signal(list)
    report_wanted = Signal(list)
    export_wanted = Signal(object, list)

    def __init__(
        self,
        reader_factory: Callable[[], Reader],
        run_id: int,
        plugins: Plugins,
        theme: Theme,
        bridge: QueueBridge,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        set_chapter(self, "reference/window.md#run-view")
        self.run_id = run_id
        self._reader_factory = reader_factory
        self._plugins = plugins
        self._theme = theme
        self._background = Background(self)
        self._plot_reader = PlotReader(plugins)
        self.destroyed.connect(self._plot_reader.close)
        self.setAccessibleName(self.tr("Run {0}").format(run_id))
        self.header = RunHeader(theme, bridge.queue.shown, self)
        self.header.note_edited.connect(self._set_note)
        self.header.tags_edited.connect(self._set_tags)
        buttons = self.header.buttons
        buttons.compare_wanted.connect(lambda: self.compare_wanted.emit([self._baseline, run_id]))
        buttons.report_wanted.connect(lambda: self.report_wanted.emit([run_id]))
        buttons.export_wanted.connect(lambda chosen: self.export_wanted.emit(chosen, [run_id]))
        self.tabs = QTabWidget(self)
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setProperty("dense", True)
        self.tabs.setAccessibleName(self.tr("Tables of the run"))
        self.tables: dict[str, DataTable] = {}
        self.use_button = QPushButton(self.tr("Use these a&gain"), self)
        self.use_button.setToolTip(self.tr("Put these parameters into the form of the trial"))
        theme.bind_icon(self.use_button, "reset")
        self.use_button.clicked.connect(lambda: self.use_wanted.emit(run_id))
        self.use_button.hide()
        self.artefacts = StoredFilesPane(reader_factory, run_id, theme, page_parent(self.tabs))
        self.artefacts.hide()
        self.evidence = EvidencePane(reader_factory, run_id, theme, page_parent(self.tabs))
        self.evidence.hide()
        self._baseline: int | None = None
        self._shared = False
        self._arrange()
        self.splitter.splitterMoved.connect(self._width_chosen)
        self._turns = EventLoopQueue(self)
        self._queue = bridge.queue
        bridge.items_changed.connect(self._reload_unfinished)
        bridge.finished.connect(self._finished)
        self._row: RunRow | None = None
        self._status: ShownStatus | None = None
        self.reload()

    @property
    def plots(self) -> dict[str, CurvePlot]:
        """The plots by the name of their group."""
        return self.grid.plots

    def reload(self) -> None:
        """Read the run again, in the background."""
        self.progress.show()
        self._background.submit(
            lambda: load_run(self._reader_factory, self.run_id, self._plugins), self._show, self._show_failure
        )

    def _width_chosen(self) -> None:
        self._shared = True

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the new width."""
        super().resizeEvent(event)
        self._share_width()

    def _share_width(self) -> None:
        """Share the width between tables and plots, until the operator moves the splitter."""
        if not self._shared:
            wanted = max(FIRST_TABLES_WIDTH, self.tabs.tabBar().sizeHint().width())
            tables = min(wanted, self.splitter.width() - MIN_PLOTS_WIDTH)
            self.splitter.setSizes([tables, self.splitter.width() - tables])

    # Loading

    def _finished(self, run_id: int, _status: RunStatus) -> None:
        if run_id == self.run_id:
            self.reload()

    def _reload_unfinished(self) -> None:
        if self._row is not None and not self._row.status.final and self._queue.shown(self._row) != self._status:
            self.reload()

    def _show(self, loaded: LoadedRun) -> None:
        self._row = loaded.detail.row
        self._status = self._queue.shown(self._row)
        self._baseline = loaded.baseline
        self.status_shown.emit(self._status)
        self.header.show_run(loaded)
        self._plots_note.setText(self.tr("Reading the samples ..."))
        self._plots_note.setVisible(not self.plots)
        self.grid.setUpdatesEnabled(True)
        self._turns.replace((*self._table_turns(loaded), self._share_width, self._load_curves))

    def _load_curves(self) -> None:
        self._background.submit(
            lambda: _curves(self._plot_reader, self._reader_factory, self.run_id),
            self._show_curves,
            self._show_no_curves,
        )

    def _show_failure(self, sentence: str) -> None:
        self.progress.hide()
        self.header.title.setText(sentence)

    def _show_no_curves(self, sentence: str) -> None:
        self.progress.hide()
        self._plots_note.setText(sentence)
        self._plots_note.show()

    # Tables

    def _table_turns(self, loaded: LoadedRun) -> Iterator[Callable[[], None]]:
        """Functions that fill the tables, 5 ms each; a plot takes 15."""
        detail, trial = loaded.detail, loaded.trial
        model = trial.parameters if trial is not None else None
        yield partial(
            self._fill,
            "metrics",
            self.tr("Metrics"),
            result_tables.metric_fields(),
            result_tables.metric_rows(detail.metrics, trial),
            self.tr("No figures: nothing was evaluated."),
        )
        yield partial(
            self._fill,
            "parameters",
            self.tr("Parameters"),
            result_tables.parameter_fields(),
            [
                *describe_parameters(detail.row.parameters, model),
                *([describe_hosts(detail.row.hosts)] if detail.placement else []),
            ],
        )
        if detail.verdicts:
            yield partial(self._show_verdicts, detail.verdicts)
        yield partial(
            self._fill, "events", self.tr("Events"), result_tables.event_fields(loaded.begin_ns), detail.events
        )
        yield partial(self._show_stored, loaded)
        yield partial(
            self._fill,
            "provenance",
            self.tr("Provenance"),
            result_tables.provenance_fields(),
            result_tables.provenance_rows({"run": detail.row.uuid, "seed": detail.row.seed, **detail.surroundings}),
        )
        if detail.sites:
            yield partial(self._fill, "sites", self.tr("Sites"), _site_fields(detail.sites), _site_rows(detail.sites))

    def _fill(self, key: str, title: str, fields: list[Field[Any]], rows: Sequence[Any], empty: str = "") -> None:
        table = self.tables.get(key)
        if table is None:
            parent: QWidget = page_parent(self.tabs)
            if key == "parameters":
                parent = QWidget(parent)
            table = self.tables[key] = DataTable(title, self._theme, parent, fit_width=key == "metrics")
            if key == "metrics":
                table.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # many titles differ in their last word
            model: RecordModel[Any] = RecordModel(fields, self._theme, table)
            table.setModel(model)
            table.setSortingEnabled(True)
            table.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
            self.tabs.addTab(self._with_button(parent, table) if key == "parameters" else table, title)
        else:
            model = table.model()  # type: ignore[assignment]
            model.set_fields(fields)
        model.set_records(rows)
        table.setToolTip("" if rows else empty)
        if key == "events":
            self.tabs.setTabText(self.tabs.indexOf(table), f"{title} ({len(rows)})")
        table.fit_columns(widest=WIDEST_PARAMETER if key == "parameters" else 320)

    def _show_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        table = self.tables.get("verdicts")
        if table is None:
            table = self.tables["verdicts"] = VerdictTable(self.tr("Verdicts"), self._theme, page_parent(self.tabs))
            self.tabs.addTab(table, self.tr("Verdicts"))
        assert isinstance(table, VerdictTable)
        table.show_verdicts(verdicts)

    def _with_button(self, page: QWidget, table: DataTable) -> QWidget:
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(table, 1)
        column.addWidget(self.use_button, 0, Qt.AlignmentFlag.AlignLeft)
        self.use_button.show()
        return page

    def _show_stored(self, loaded: LoadedRun) -> None:
        self.evidence.show_evidence(loaded.evidence)
        self.artefacts.show_files(loaded.files)
        if self.tabs.indexOf(self.evidence) < 0:
            self.tabs.addTab(self.evidence, self.tr("Evidence"))
        if loaded.files and self.tabs.indexOf(self.artefacts) < 0:
            self.tabs.addTab(self.artefacts, self.tr("Artefacts ({0})").format(len(loaded.files)))

    # Plots

    def _show_curves(self, curves: tuple[Curve, ...]) -> None:
        groups: dict[str, list[Curve]] = {}
        for curve in curves:
            groups.setdefault(curve.group, []).append(curve)
        for name in self.plots.keys() - groups.keys():
            self.grid.remove(name)
        self._plots_note.setText(self.tr("This run has recorded no samples."))
        self._plots_note.setVisible(not groups)
        for name, members in groups.items():
            self._turns.add(partial(self._add_plot, name, members[0]), partial(self._fill_plot, name, members))
        self._turns.add(self._all_shown)
        # Each added plot moves those before it, which would repaint them each time.
        self.grid.setUpdatesEnabled(False)

    def _all_shown(self) -> None:
        self.progress.hide()
        plots = tuple(self.plots.values())
        for plot in plots:
            plot.setUpdatesEnabled(False)
        self.grid.setUpdatesEnabled(True)
        self._turns.add(*(partial(plot.setUpdatesEnabled, True) for plot in plots))  # each is painted in its turn

    def _add_plot(self, name: str, first: Curve) -> None:
        if name not in self.plots:
            title = self.tr("{0}, simulated").format(name) if first.virtual else name
            self.grid.add(name, TimePlot(title, first.unit, self._theme, empty_text=self.tr("No samples")))

    def _fill_plot(self, name: str, members: Sequence[Curve]) -> None:
        self.plots[name].set_curves(
            [PlotCurve(curve.title, curve.t_s, curve.values, virtual=curve.virtual) for curve in members]
        )

    # Note and tags

    def _set_note(self, text: str) -> None:
        self._write(lambda store: edits.set_note(store, self.run_id, text))

    def _set_tags(self, text: str) -> None:
        self._write(lambda store: edits.set_tags(store, self.run_id, [tag for tag in text.split(",") if tag.strip()]))

    def _write(self, change: Callable[[Store], None]) -> None:
        def work() -> LoadedRun:
            with self._reader_factory() as reader:
                path = reader.path
            with Store.open(path) as store:
                change(store)
            return load_run(self._reader_factory, self.run_id, self._plugins)

        self._background.submit(work, self.header.show_run, self._show_failure)

    # Building

    def _arrange(self) -> None:
        self.progress = busy_bar(self.tr("Reading the run"), self)
        self._plots_note = plain_label(self.tr("Reading the run ..."), self)
        self._plots_note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._plots_note.setProperty("muted", True)
        self._plots_note.setWordWrap(True)
        self.grid = PlotGrid(self)
        right = QWidget(self)
        plots = QVBoxLayout(right)
        plots.setContentsMargins(0, 0, 0, 0)
        plots.addWidget(self._plots_note)
        plots.addWidget(self.grid, 1)
        self.splitter = QSplitter(Qt.Orientation.Horizontal, self)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setHandleWidth(12)
        self.splitter.addWidget(self.tabs)
        self.splitter.addWidget(right)
        self.tabs.setMinimumWidth(MIN_TABLES_WIDTH)
        self.splitter.setStretchFactor(1, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 8, 16, 8)
        layout.setSpacing(6)
        layout.addWidget(self.header)
        layout.addWidget(self.progress)
        layout.addWidget(self.splitter, 1)


def _curves(plots: PlotReader, reader_factory: Callable[[], Reader], run_id: int) -> tuple[Curve, ...]:
    with reader_factory() as reader:
        return plots.curves(reader, run_id)


def _site_fields(sites: Sequence[Mapping[str, str]]) -> list[Field[str]]:
    def column(site: Mapping[str, str]) -> Field[str]:
        return Field(site.get("name", ""), lambda key: site.get(key, ""))

    return [Field("", lambda key: key.replace("_", " ")), *(column(site) for site in sites)]


def _site_rows(sites: Sequence[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(key for site in sites for key in site if key != "name"))
