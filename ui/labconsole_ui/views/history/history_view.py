"""The history view: all runs in one table, with filters and actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import (
    QByteArray,
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPoint,
    Qt,
    QTimer,
    Signal,
    SignalInstance,
)
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QLabel,
    QMessageBox,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from labconsole.model.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow
from labconsole_ui.runtime.background import Background
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.tables.record_table import DataTable, select_rows, selected_rows
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.history.actions import HistoryActions, open_column_menu
from labconsole_ui.views.history.columns import (
    TrialColumns,
    column_of,
    column_widths,
    head_fields,
    hidden_at_first,
    run_fields,
)
from labconsole_ui.views.history.filters import EmptyHistory, HistoryFilters
from labconsole_ui.views.history.run_loader import History, RunLoader
from labconsole_ui.views.history.run_model import CampaignHead, Line, RunModel
from labconsole_ui.views.history.undoable_changes import RunChanges
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.message_bar import Message, MessageBar, Tone

POLL_MS = 500


class HistoryView(QWidget):
    """All runs of the database; updated while it is visible."""

    open_runs = Signal(list)
    compare_runs = Signal(list)
    use_parameters = Signal(int)
    report_wanted = Signal(list)
    export_wanted = Signal(object, list)
    verify_wanted = Signal(list)

    def __init__(
        self,
        reader_factory: Callable[[], Reader],
        store_path: Path,
        bridge: QueueBridge,
        theme: Theme,
        plugins: Plugins,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        set_chapter(self, "how-to/find-runs.md")
        self.setAccessibleName(self.tr("History of all runs"))
        self._theme = theme
        self._bridge = bridge
        self._runs = RunLoader(reader_factory, plugins)
        self._background = Background(self, at_end=self._runs.close)
        self._busy = self._stale = False
        self._all: dict[int, RunRow] = {}
        self._haystacks: Mapping[int, str] = {}
        self._trial_columns: TrialColumns | None = None
        self._columns_state = QByteArray()
        self.changes = RunChanges(store_path, self._background, self)
        self.changes.changed.connect(self.refresh)
        self.changes.failed.connect(self._show_failure)
        self.changes.stack.indexChanged.connect(self._withdraw_undo)
        self._undo_offered: Message | None = None
        self.messages = MessageBar(theme)
        self.filters = HistoryFilters(self)
        self.filters.changed.connect(self._filter)
        self.filters.search.installEventFilter(self)
        self.stack = QStackedWidget(self)
        self._build_table()
        self._build_actions()
        self._arrange()
        bridge.items_changed.connect(self._follow_queue)
        bridge.finished.connect(self.refresh)
        self._poll = QTimer(self)
        self._poll.setInterval(POLL_MS)
        self._poll.timeout.connect(self._poll_due)
        self._poll.start()
        self.refresh()

    # Columns, which the shell stores between starts

    def columns_state(self) -> QByteArray:
        """Widths, order and visibility of the columns."""
        return self.table.horizontalHeader().saveState() if self._trial_columns is not None else self._columns_state

    def restore_columns(self, state: QByteArray) -> None:
        """Restore widths, order and visibility of the columns from an earlier `columns_state`."""
        self._columns_state = state
        if self._trial_columns is not None and not state.isEmpty():
            self.table.horizontalHeader().restoreState(state)

    # Loading

    def refresh(self) -> None:
        """Read the runs again, in the background; while a note is typed, afterwards."""
        if self._busy:
            self._stale = True
            return
        self._busy = True
        self._background.submit(lambda: self._runs.read(force=True), self._receive, self._show_unreadable)

    def _follow_queue(self) -> None:
        """Show at once what the queue knows of the runs shown, then read them again."""
        if self._editing:
            self.model.discard_cells()
        else:
            self.model.repaint()
        self.refresh()

    def _poll_due(self) -> None:
        if self._busy or self._editing or not self.isVisible():
            return
        self._busy = True
        self._background.submit(lambda: self._runs.read(force=False), self._receive, self._show_unreadable)

    @property
    def _editing(self) -> bool:
        return self.table.state() is DataTable.State.EditingState

    def _receive(self, read: History | None) -> None:
        self._busy = False
        if read is not None and not self._editing:
            if self._trial_columns != read.known:
                self._trial_columns = read.known
                self._show_columns(read.known)
            self._show_runs(read)
            self._background.submit(lambda: self._runs.texts(read), self._receive_texts, self._show_unreadable)
        if self._stale:
            self._stale = False
            self.refresh()

    def _receive_texts(self, texts: dict[int, str]) -> None:
        self._haystacks = texts
        if self.filters.search.text() and not self._editing:
            self._filter()

    def _show_columns(self, known: TrialColumns) -> None:
        fields = run_fields(known, self.changes, self._bridge.queue.shown)
        self.model.set_columns(fields, head_fields(fields))
        self.table.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        for column, width in enumerate(column_widths(self.model.fields, known, self.table.fontMetrics())):
            self.table.setColumnWidth(column, width)
        for title in hidden_at_first():
            self.table.setColumnHidden(column_of(fields, title), True)
        self.restore_columns(self._columns_state)
        self.filters.panel.set_kinds(known.titles)

    def _show_runs(self, read: History) -> None:
        self._bridge.refresh(read.runs)
        self._all = {run.id: run for run in read.runs}
        self.filters.panel.set_profiles(run.profile for run in read.runs)
        self._keeping_selection(lambda: self.model.set_records(read.runs, self.filters.condition(self._haystacks)))

    def _keeping_selection(self, change: Callable[[], None]) -> None:
        """Change the model; selection and scroll position stay, as far as the lines still exist."""
        selection = self.table.selectionModel()
        chosen = {_key(self.model.line(row)) for row in selected_rows(self.table)}
        current = self.table.currentIndex()
        current_key = _key(self.model.line(current.row())) if current.isValid() else None
        scrolled = self.table.verticalScrollBar().value()
        change()
        if chosen or current_key is not None:
            keys = [_key(line) for line in self.model.lines()]
            if current_key in keys:
                place = self.model.index(keys.index(current_key), current.column())
                selection.setCurrentIndex(place, selection.SelectionFlag.NoUpdate)
            select_rows(self.table, [row for row, key in enumerate(keys) if key in chosen])
        self.table.verticalScrollBar().setValue(scrolled)
        self._update_state()

    def _show_failure(self, sentence: str) -> None:
        self.messages.show_message(Message(Tone.BAD, sentence))
        self.refresh()

    def _show_unreadable(self, sentence: str) -> None:
        self._busy = False
        self.messages.show_message(Message(Tone.BAD, sentence))

    # Filtering

    def _filter(self) -> None:
        self.model.set_filter(self.filters.condition(self._haystacks))
        self._update_state()

    def _update_state(self) -> None:
        shown, trash = len(self.model.records()), self.filters.trash
        total = sum(run.trashed == trash for run in self._all.values())
        self.count_label.setText(
            self.tr("Runs: {0}").format(f"{total:,}")
            if shown == total
            else self.tr("{0} of {1} runs").format(f"{shown:,}", f"{total:,}")
        )
        self.stack.setCurrentWidget(self.table if shown else self.empty)
        self.empty.update_state(read=self._trial_columns is not None, total=total, trash=trash)
        self._update_actions()

    # Actions

    def selected(self) -> list[RunRow]:
        """The chosen runs, in the order of the table; with the line of a campaign all its runs."""
        return list({run.id: run for row in selected_rows(self.table) for run in self.model.runs_at(row)}.values())

    def _baseline_of(self, run: RunRow) -> RunRow | None:
        """The pinned baseline of the run's trial, if it is another run."""
        pinned = (other for other in self._all.values() if other.pinned and other.kind == run.kind)
        return next((other for other in pinned if other.id != run.id and not other.trashed), None)

    def _update_actions(self) -> None:
        trashed = any(run.trashed for run in self._all.values())
        self.run_actions.update_state(
            self.selected(), trash=self.filters.trash, trashed=trashed, baseline=self._baseline_of
        )

    def _open(self) -> None:
        rows = selected_rows(self.table)
        head = self.model.line(rows[0]) if len(rows) == 1 else None
        if isinstance(head, CampaignHead):
            self._fold(head, not head.folded)
        elif runs := self.selected():
            self.open_runs.emit([run.id for run in runs])

    def _compare(self) -> None:
        runs = self.selected()
        against = self._baseline_of(runs[0]) if len(runs) == 1 else None
        self.compare_runs.emit([run.id for run in ([against] if against is not None else []) + runs])

    def _emit_selected(self, signal: SignalInstance) -> None:
        signal.emit([run.id for run in self.selected()])

    def _use(self) -> None:
        self.use_parameters.emit(self.selected()[0].id)

    def _pin(self) -> None:
        [run] = self.selected()
        before = next((other for other in self._all.values() if other.pinned and other.kind == run.kind), None)
        self._show_done(self.changes.unpin(run) if run.pinned else self.changes.pin(run, before))

    def _trash(self) -> None:
        self._show_done(self.changes.trash(self.selected()))

    def _restore(self) -> None:
        self._show_done(self.changes.restore(self.selected()))

    def _show_done(self, text: str) -> None:
        self._undo_offered = Message(Tone.INFO, text, link=(self.tr("Undo"), self.changes.stack.undo))
        self.messages.show_message(self._undo_offered)

    def _withdraw_undo(self) -> None:
        """Withdraw the link of an older message: it would undo a newer change."""
        if self._undo_offered is not None:
            self.messages.withdraw(self._undo_offered)
            self._undo_offered = None

    def _purge(self) -> None:
        count = sum(run.trashed for run in self._all.values())
        answer = QMessageBox.question(
            self,
            self.tr("Empty the trash"),
            self.tr("Runs to remove for good, with all their samples: {0}. This cannot be undone.").format(count),
            QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.No,
            QMessageBox.StandardButton.No,
        )
        if answer is QMessageBox.StandardButton.Yes:
            self.changes.purge()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Enter opens, Left and Right fold and unfold a campaign, Down in the filter box enters the table."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if watched is self.table and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._open()
                return True
            if watched is self.table and event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
                return self._fold_current(event.key() == Qt.Key.Key_Left)
            if watched is self.filters.search and event.key() == Qt.Key.Key_Down:
                self.table.setFocus()
                return True
        return super().eventFilter(watched, event)

    # Campaigns

    def _group(self, grouped: bool) -> None:
        self._keeping_selection(lambda: self.model.set_grouped(grouped))

    def _clicked(self, index: QModelIndex) -> None:
        """A click on the arrow before a campaign folds it."""
        line = self.model.line(index.row())
        if isinstance(line, CampaignHead) and index.column() == 0:
            self._fold(line, not line.folded)

    def _fold_current(self, folded: bool) -> bool:
        """Fold the campaign in whose line the cursor is; returns whether it is in one."""
        index = self.table.currentIndex()
        line = self.model.line(index.row()) if index.isValid() else None
        if not isinstance(line, CampaignHead):
            return False
        self._fold(line, folded)
        return True

    def _fold(self, head: CampaignHead, folded: bool) -> None:
        self._keeping_selection(lambda: self.model.fold(head.campaign_id, folded))

    def _header_menu(self, position: QPoint) -> None:
        open_column_menu(self.table, [field.title for field in self.model.fields], self.tr("Columns"), position)

    # Building

    def _build_table(self) -> None:
        self.table = DataTable(self.tr("Runs"), self._theme, self.stack)
        fields = run_fields(TrialColumns({}, ()), self.changes, self._bridge.queue.shown)
        self.model = RunModel(fields, head_fields(fields), self._theme, self.table)
        self.table.setModel(self.model)
        self.table.setSortingEnabled(True)
        self.table.setEditTriggers(DataTable.EditTrigger.EditKeyPressed | DataTable.EditTrigger.SelectedClicked)
        self.table.setDragEnabled(True)
        self.table.doubleClicked.connect(self._open)
        self.table.clicked.connect(self._clicked)
        self.table.installEventFilter(self)
        self.table.selectionModel().selectionChanged.connect(self._update_actions)
        header = self.table.horizontalHeader()
        # One of its own: for each column it would ask every selected row whether it can be selected, 100 ms with 2,000.
        header.setSelectionModel(QItemSelectionModel(self.model, header))
        header.setSectionsMovable(True)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(self._header_menu)
        # After the editor was deleted, not while it is being deleted.
        self.table.itemDelegate().closeEditor.connect(self.refresh, Qt.ConnectionType.QueuedConnection)

    def _build_actions(self) -> None:
        undo = self.changes.stack.createUndoAction(self, self.tr("Undo"))
        undo.setShortcut(QKeySequence.StandardKey.Undo)
        redo = self.changes.stack.createRedoAction(self, self.tr("Redo"))
        redo.setShortcut(QKeySequence.StandardKey.Redo)
        self.run_actions = HistoryActions(self.table, self._theme)
        for action, work in (
            (self.run_actions.open, self._open),
            (self.run_actions.compare, self._compare),
            (self.run_actions.use, self._use),
            (self.run_actions.pin, self._pin),
            (self.run_actions.report, lambda: self._emit_selected(self.report_wanted)),
            (self.run_actions.verify, lambda: self._emit_selected(self.verify_wanted)),
            (self.run_actions.trash, self._trash),
            (self.run_actions.restore, self._restore),
            (self.run_actions.purge, self._purge),
        ):
            action.triggered.connect(lambda _checked=False, work=work: work())
        self.run_actions.export_menu.wanted.connect(
            lambda chosen: self.export_wanted.emit(chosen, [run.id for run in self.selected()])
        )
        self.run_actions.group_switched.connect(self._group)
        for action in (undo, redo):
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            self.addAction(action)
        find = QAction(self.tr("Find runs"), self)
        find.setShortcut(QKeySequence.StandardKey.Find)
        find.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        find.triggered.connect(self.filters.search.setFocus)
        self.addAction(find)

    def _arrange(self) -> None:
        self.count_label = QLabel(self)
        self.count_label.setProperty("muted", True)
        bar = self.run_actions.bar(self)
        bar.addSpacing(6)
        bar.addWidget(self.filters, 1)
        bar.addSpacing(6)
        bar.addWidget(self.count_label)
        self.empty = EmptyHistory(self.stack)
        self.empty.clear_button.clicked.connect(self.filters.clear)
        self.stack.addWidget(self.table)
        self.stack.addWidget(self.empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 6, 10, 8)
        layout.setSpacing(6)
        layout.addWidget(self.messages)
        layout.addLayout(bar)
        layout.addWidget(self.stack, 1)
        self._filter()


def _key(line: Line) -> tuple[bool, int]:
    """The key that identifies a line."""
    return (True, line.campaign_id) if isinstance(line, CampaignHead) else (False, line.id)
