"""The comparison page: metrics as rows, scenarios and published figures as columns, and plots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QLabel,
    QMenu,
    QScrollArea,
    QStackedWidget,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from labconsole.analysis.columns import counterpart
from labconsole.analysis.comparison import Comparison
from labconsole.analysis.published_figures import PublishedTable
from labconsole.model.plugin import Plugins
from labconsole.output.comparison_csv import write_comparison
from labconsole.store.reader import Reader
from labconsole_ui.runs.drag_and_drop import DropArea
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.incremental import EventLoopQueue
from labconsole_ui.runtime.plot_reader import PlotReader
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.comparison.answer_cards import AnswerCards
from labconsole_ui.views.comparison.bars_pane import BarsPane
from labconsole_ui.views.comparison.column_header import heading_of
from labconsole_ui.views.comparison.comparison_loader import (
    ComparisonLoader,
    ComparisonPage,
    FindingsAndTables,
    Selection,
)
from labconsole_ui.views.comparison.comparison_rows import Section, rows_of
from labconsole_ui.views.comparison.curves_pane import CurvesPane
from labconsole_ui.views.comparison.distribution_pane import DistributionPane
from labconsole_ui.views.comparison.findings_pane import FindingsPane
from labconsole_ui.views.comparison.published_tables_pane import PublishedTablesPane
from labconsole_ui.views.comparison.run_samples import ReusedReader, RunSamples
from labconsole_ui.views.comparison.scenario_table import ComparisonTable
from labconsole_ui.views.comparison.splitter import TableAndTabsSplitter
from labconsole_ui.views.comparison.toolbar import ComparisonControls
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.layouts import page_parent
from labconsole_ui.widgets.message_bar import Message, MessageBar, Tone

MIN_HEIGHT = 360
"""Height (px) of table and tabs; a page that is too low for them and the answers scrolls."""


class ComparisonView(DropArea):
    """Compares stored runs; repeats of a scenario make one column, unless each is to be a column.

    `report_wanted(run ids, names of published columns, baseline)` asks for a report; the baseline
    is the id of one of its runs, or the name of a published column.
    """

    report_wanted = Signal(list, list, object)

    def __init__(
        self,
        reader_factory: Callable[[], Reader],
        run_ids: Sequence[int],
        plugins: Plugins,
        theme: Theme,
        state: WindowState | None = None,
        parent: QWidget | None = None,
        *,
        follow: QueueBridge | None = None,
    ) -> None:
        """`state` remembers how the width is shared between table and tabs. With `follow` the runs are queued:
        each is compared as soon as it has finished."""
        super().__init__(theme, parent)
        set_chapter(self, "explanation/statistics.md")
        reader = ReusedReader(reader_factory)
        self._composer = ComparisonLoader(reader, plugins)
        plots = PlotReader(plugins)
        self.destroyed.connect(plots.close)
        self._samples = RunSamples(reader, plots)
        self._background = Background(self, reader.release)
        self._turns = EventLoopQueue(self)
        self._page = ComparisonPage(Selection(), None)
        self._wanted = Selection(() if follow is not None else tuple(run_ids))
        self._followed: tuple[int, ...] = () if follow is None else tuple(run_ids)
        self._before: list[Selection] = []
        self._tables: tuple[PublishedTable, ...] = ()
        self._unfolded: frozenset[Section] = frozenset()
        self.setAccessibleName(self.tr("Runs side by side"))
        self.messages = MessageBar(theme)
        self._build(state)
        self.runs_dropped.connect(self.add_runs)
        self._begun = False
        if follow is not None:
            self.empty.setText(self.tr("The first run is in progress.\nIts figures appear here when it has ended."))
            follow.finished.connect(self._add_followed)
        self._turns.add(self._build_table, self._build_tabs, self._begin)

    def _begin(self) -> None:
        self._begun = True
        work = partial(self._composer.campaign_page, self._followed) if self._followed else self._composer.open
        self._background.submit(
            partial(work, self._wanted), partial(self._receive, self._wanted), self._show_without_columns
        )
        self._background.submit(self._composer.tables, self._receive_tables, self._show_sentence)

    @property
    def table_data(self) -> Comparison | None:
        """The comparison; None while nothing is chosen."""
        return self._page.comparison

    @property
    def selection(self) -> Selection:
        """The runs and published columns that are compared, or will be once they have been read."""
        return self._wanted

    # Choosing

    def add_runs(self, run_ids: Sequence[int]) -> None:
        """Compare these runs too."""
        self._change(self.selection.adding(run_ids))

    def add_published(self, names: Sequence[str]) -> None:
        """Show published columns next to the runs."""
        self._change(self.selection.adding(names))

    def set_baseline(self, column: int) -> None:
        """Compare with the column `column`, counted from 0."""
        if 0 <= column < len(self._page.columns):
            self._change(replace(self.selection, baseline=self._page.entries()[column][0]))

    def set_grouped(self, grouped: bool) -> None:
        """Show the repeats of a scenario as one column, or each run alone."""
        self._change(replace(self.selection, grouped=grouped))

    def remove_column(self, column: int) -> None:
        """Remove the column from the comparison; a message offers to undo it."""
        title = self._page.columns[column].title
        self._change(self.selection.without(self._page.entries()[column]))
        text = self.tr("{0} is no longer compared.").format(title)
        self.messages.show_message(Message(Tone.INFO, text, link=(self.tr("Undo"), self.undo)))

    def move_column(self, column: int, by: int) -> None:
        """Move the column `by` places to the right, over published columns that stay with their scenarios."""
        entries, columns = self._page.entries(), self._page.columns
        place = column + by
        while 0 < place < len(columns) - 1 and self._attached(place):
            place += 1 if by > 0 else -1
        entries.insert(place, entries.pop(column))
        self._change(self.selection.in_order(entries))

    def _attached(self, column: int) -> bool:
        """Whether a column is a published one that stays at the right of its scenario."""
        return counterpart(self._page.columns, column) is not None

    def undo(self) -> None:
        """Undo the last change of the selection."""
        if self._before:
            self._compose(self._before.pop())

    def _change(self, selection: Selection) -> None:
        if selection != self._wanted:
            self._before.append(self._wanted)
            self._compose(selection)

    def _compose(self, selection: Selection) -> None:
        self._wanted = selection
        if not self._begun:
            return  # not built yet: `_begin` reads the selection of that time
        work = partial(self._composer.campaign_page, self._followed) if self._followed else self._composer.page
        self._background.submit(
            partial(work, selection), partial(self._receive, selection), partial(self._withdraw_change, selection)
        )

    def _add_followed(self, run_id: int) -> None:
        """Add a run that has just finished to the comparison, if it is followed."""
        if run_id in self._followed:
            self._compose(self._wanted.adding([run_id]))

    def _receive(self, asked: Selection, page: ComparisonPage) -> None:
        """Show the page, unless the selection has changed meanwhile."""
        if asked == self._wanted:
            self._show(page)

    # Showing

    def _show(self, page: ComparisonPage) -> None:
        self._page = page
        self._wanted = page.selection
        for sentence in page.notices:
            self.messages.show_message(Message(Tone.INFO, sentence))
        comparison = page.comparison
        titles = [column.title for column in page.columns]
        baseline = comparison.baseline if comparison is not None else -1
        self.controls.set_columns(titles, baseline, grouped=page.selection.grouped)
        self.stack.setCurrentWidget(self.splitter if comparison is not None else self.empty)
        self._turns.add(self._fill, self._fill_plots, self._offer_published)
        self._background.submit(
            partial(self._composer.findings_and_tables, page),
            partial(self._receive_findings, page),
            self._show_sentence,
        )

    def _fill(self) -> None:
        comparison = self._page.comparison
        self.progress.setText(self._page.progress)
        self.progress.setVisible(bool(self._page.progress))
        self.answers.show_answers(self._page.answers)
        self.origins.setText(comparison.origins if comparison is not None else "")
        self.origins.setVisible(bool(self.origins.text()))
        if comparison is not None:
            headings = [heading_of(comparison, index) for index in range(len(comparison.columns))]
            rows = rows_of(comparison, unfolded=self._unfolded)
            self.table.show_comparison(comparison, headings, rows, unfolded=self._unfolded)
            self.splitter.set_needed_width(self.table.least_width())
            self._give_height()

    def _fill_plots(self) -> None:
        self.bars.set_comparison(self._page.comparison)
        for pane in (self.curves, self.distribution):
            pane.set_columns(self._page.columns)

    def _fold(self, section: Section) -> None:
        self._unfolded ^= {section}
        place = self.table.verticalScrollBar().value()
        self._fill()
        self.table.verticalScrollBar().setValue(place)

    def _receive_tables(self, tables: tuple[PublishedTable, ...]) -> None:
        self._tables = tables
        self._turns.add(self._offer_published)

    def _receive_findings(self, page: ComparisonPage, found: FindingsAndTables) -> None:
        self._turns.add(partial(self._show_findings, page, found), partial(self._show_published_tables, page, found))

    def _show_findings(self, page: ComparisonPage, found: FindingsAndTables) -> None:
        if page is self._page:
            self.findings.show_findings(found.findings, page.comparison.notes if page.comparison is not None else ())

    def _show_published_tables(self, page: ComparisonPage, found: FindingsAndTables) -> None:
        if page is self._page:
            self.shapes.set_tables(found.tables)
            self.tabs.setTabVisible(self.tabs.indexOf(self.shapes), bool(found.tables))

    def _offer_published(self) -> None:
        self.controls.published_menu.offer(self._tables, self._page.columns, self.selection.published)

    def _show_sentence(self, sentence: str) -> None:
        self.messages.show_message(Message(Tone.BAD, sentence))

    def _withdraw_change(self, asked: Selection, sentence: str) -> None:
        """Undo a change that cannot be shown."""
        self._show_sentence(sentence)
        if asked == self._wanted:
            if self._before:
                self._before.pop()
            self._show(replace(self._page, notices=()))

    def _show_without_columns(self, sentence: str) -> None:
        self._show_sentence(sentence)
        self._show(ComparisonPage(Selection(), None))

    # Export

    def export_csv(self, path: Path) -> None:
        """Write the comparison to `path`, in the background."""
        comparison = self._page.comparison
        if comparison is not None:
            self._background.submit(
                partial(write_comparison, comparison, path), self._show_written, self._show_sentence
            )

    def _show_written(self, path: Path) -> None:
        self.messages.show_message(Message(Tone.GOOD, self.tr("{0} written.").format(path)))

    def _export_dialog(self) -> None:
        chosen, _ = QFileDialog.getSaveFileName(
            self, self.tr("Export the comparison"), "comparison.csv", self.tr("CSV (*.csv)")
        )
        if chosen:
            self.export_csv(Path(chosen))

    def _want_report(self) -> None:
        comparison = self._page.comparison
        if comparison is not None:
            baseline = self._page.entries()[comparison.baseline][0]
            self.report_wanted.emit(list(self.selection.run_ids), list(self.selection.published), baseline)

    # Menus of columns

    def column_actions(self, column: int) -> list[QAction]:
        """What can be done with the scenario `column`, counted from 0; nothing where there is none."""
        comparison = self._page.comparison
        if comparison is None or not 0 <= column < len(comparison.columns):
            return []
        last, stays = len(comparison.columns) - 1, self._attached(column)
        actions = [
            (self.tr("Use as baseline"), column != comparison.baseline, partial(self.set_baseline, column)),
            (self.tr("Move left"), column > 0 and not stays, partial(self.move_column, column, -1)),
            (self.tr("Move right"), column < last and not stays, partial(self.move_column, column, 1)),
            (self.tr("Remove from the comparison"), True, partial(self.remove_column, column)),
        ]
        made = []
        for text, possible, work in actions:
            action = QAction(text, self)
            action.setEnabled(possible)
            action.triggered.connect(work)
            made.append(action)
        return made

    def _show_column_menu(self, column: int, position: QPoint) -> None:
        menu = QMenu(self)
        menu.setAccessibleName(self.tr("Column actions"))
        for action in self.column_actions(column):
            action.setParent(menu)
            menu.addAction(action)
        if column >= 0:
            menu.addSeparator()
        menu.addAction(self.table.copy_action)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(position)

    # Building

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Arrange table and tabs side by side where there is room."""
        super().resizeEvent(event)
        self.splitter.resize_to(event.size())
        self._give_height()

    def _give_height(self) -> None:
        """Set a height for table and tabs, also where the tabs are below: the page scrolls."""
        side_by_side = self.splitter.orientation() is Qt.Orientation.Horizontal
        self.stack.setMinimumHeight(MIN_HEIGHT if side_by_side else 2 * MIN_HEIGHT)

    def _show_table(self, hidden: bool) -> None:
        self.table.setVisible(not hidden)

    def _build(self, state: WindowState | None) -> None:
        """Build containers first: a widget that changes its parent is styled again with all its children."""
        self.controls = ComparisonControls(self._theme, self)
        self.baseline_box, self.group_box = self.controls.baseline_box, self.controls.group_box
        self.controls.baseline_chosen.connect(self.set_baseline)
        self.controls.grouping_changed.connect(self.set_grouped)
        self.controls.export_wanted.connect(self._export_dialog)
        self.controls.report_wanted.connect(self._want_report)
        self.controls.published_menu.chosen.connect(self.add_published)
        self.answers = AnswerCards(self._theme, self)
        self.progress, self.origins = self._note(), self._note()
        self.stack = QStackedWidget(self)
        content = QWidget(self)
        column = QVBoxLayout(content)
        column.setContentsMargins(16, 8, 16, 8)
        column.setSpacing(8)
        for widget in (self.progress, self.answers, self.controls, self.origins):
            column.addWidget(widget)
        column.addWidget(self.stack, 1)
        self.page_scroll = QScrollArea(self)
        self.page_scroll.setFrameShape(QFrame.Shape.NoFrame)
        self.page_scroll.setWidgetResizable(True)
        self.page_scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.page_scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.page_scroll.setWidget(content)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(self.messages)
        layout.addWidget(self.page_scroll, 1)
        self.reading = self._centred(self.tr("Reading the runs ..."))
        self.empty = self._centred(
            self.tr("Nothing is compared yet.\nDrag runs from the history here, or select several there.")
        )
        self.splitter = TableAndTabsSplitter(state, self.stack)
        self.stack.addWidget(self.splitter)
        undo = QAction(self.tr("Undo"), self)
        undo.setShortcut(QKeySequence.StandardKey.Undo)
        undo.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        undo.triggered.connect(self.undo)
        self.addAction(undo)
        self.controls.set_columns((), -1, grouped=True)

    def _build_table(self) -> None:
        self.table = ComparisonTable(self.tr("Runs side by side"), self._theme, self.splitter)
        self.table.fold_toggled.connect(self._fold)
        self.table.column_menu_wanted.connect(self._show_column_menu)

    def _build_tabs(self) -> None:
        self.tabs = QTabWidget(self.splitter)
        self.splitter.add_widgets(self.table, self.tabs)
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setProperty("dense", True)
        self.tabs.setAccessibleName(self.tr("Findings and plots"))
        parent = page_parent(self.tabs)
        self.findings = FindingsPane(self._theme, parent)
        self.curves = CurvesPane(self._samples, self._background, self._theme, parent)
        self.distribution = DistributionPane(self._samples, self._background, self._theme, parent)
        self.bars = BarsPane(self._theme, parent)
        self.shapes = PublishedTablesPane(self._theme, parent)
        self.table.metric_chosen.connect(self.bars.choose)
        for pane, title in (
            (self.findings, self.tr("Findings")),
            (self.curves, self.tr("Time")),
            (self.distribution, self.tr("Distribution")),
            (self.bars, self.tr("Bars")),
            (self.shapes, self.tr("Source")),
        ):
            self.tabs.addTab(pane, title)
        self.whole_button = QToolButton(self.tabs)
        self.whole_button.setCheckable(True)
        self.whole_button.setAccessibleName(self.tr("Whole page"))
        self.whole_button.setToolTip(self.tr("Give findings and plots the whole page"))
        self.whole_button.toggled.connect(self._show_table)
        self._theme.bind_icon(self.whole_button, "panes", "muted")
        self.tabs.setCornerWidget(self.whole_button)

    def _note(self) -> QLabel:
        """A line of small print, hidden until it has a text."""
        label = plain_label("", self)
        label.setProperty("muted", True)
        label.setWordWrap(True)
        label.hide()
        return label

    def _centred(self, text: str) -> QLabel:
        """A page of the stack with one centred text."""
        label = QLabel(text, self.stack)
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        label.setProperty("muted", True)
        self.stack.addWidget(label)
        return label
