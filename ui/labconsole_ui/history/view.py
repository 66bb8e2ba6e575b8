"""The history view: all runs in one table, found by words, states and trials; opened, compared, edited, deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from PySide6.QtCore import QByteArray, QEvent, QObject, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QMenu,
    QMessageBox,
    QPushButton,
    QStackedWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from labconsole.plugin import Plugins
from labconsole.store.reader import Reader
from labconsole.store.records import RunRow
from labconsole_ui.background import Background
from labconsole_ui.bridge import QueueBridge
from labconsole_ui.history.changes import RunChanges
from labconsole_ui.history.columns import Catalogue, column_of, column_widths, run_fields
from labconsole_ui.history.filters import HistoryFilters
from labconsole_ui.history.source import History, RunSource
from labconsole_ui.message_bar import Message, MessageBar, Tone
from labconsole_ui.tables import DataTable, RecordModel
from labconsole_ui.theme import Theme

POLL_MS = 500


class HistoryView(QWidget):
    """All runs of the database; follows it while it is visible."""

    open_runs = Signal(list)
    compare_runs = Signal(list)
    use_parameters = Signal(int)

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
        self.setAccessibleName(self.tr("History of all runs"))
        self._theme = theme
        self._runs = RunSource(reader_factory, plugins)
        self._background = Background(self, at_end=self._runs.close)
        self._busy = self._stale = False
        self._all: dict[int, RunRow] = {}
        self._haystacks: Mapping[int, str] = {}
        self._catalogue: Catalogue | None = None
        self._columns_state = QByteArray()
        self.changes = RunChanges(store_path, self._background, self)
        self.changes.changed.connect(self.refresh)
        self.changes.failed.connect(self._say_failed)
        self.messages = MessageBar(theme)
        self.filters = HistoryFilters(self)
        self.filters.changed.connect(self._filter)
        self.filters.search.installEventFilter(self)
        self._build_table()
        self._build_actions()
        self._arrange()
        bridge.items_changed.connect(self.refresh)
        bridge.finished.connect(self.refresh)
        self._poll = QTimer(self)
        self._poll.setInterval(POLL_MS)
        self._poll.timeout.connect(self._poll_due)
        self._poll.start()
        self.refresh()

    # What the shell remembers between starts

    def columns_state(self) -> QByteArray:
        """Widths, order and visibility of the columns."""
        return self.table.horizontalHeader().saveState() if self._catalogue is not None else self._columns_state

    def restore_columns(self, state: QByteArray) -> None:
        """Take widths, order and visibility of the columns from an earlier `columns_state`."""
        self._columns_state = state
        if self._catalogue is not None and not state.isEmpty():
            self.table.horizontalHeader().restoreState(state)

    # Loading

    def refresh(self) -> None:
        """Read the runs again, in the background. Nothing changes while a note is being typed; then it is read."""
        if self._busy:
            self._stale = True
            return
        self._busy = True
        self._background.submit(lambda: self._runs.read(force=True), self._take, self._say_unreadable)

    def _poll_due(self) -> None:
        if self._busy or self._editing or not self.isVisible():
            return
        self._busy = True
        self._background.submit(lambda: self._runs.read(force=False), self._take, self._say_unreadable)

    @property
    def _editing(self) -> bool:
        return self.table.state() is DataTable.State.EditingState

    def _take(self, read: History | None) -> None:
        self._busy = False
        if read is not None and not self._editing:
            if self._catalogue != read.known:
                self._catalogue = read.known
                self._show_columns(read.known)
            self._show_runs(read)
            self._background.submit(lambda: self._runs.texts(read), self._take_texts, self._say_unreadable)
        if self._stale:
            self._stale = False
            self.refresh()

    def _take_texts(self, texts: dict[int, str]) -> None:
        self._haystacks = texts
        if self.filters.search.text() and not self._editing:
            self._filter()

    def _show_columns(self, known: Catalogue) -> None:
        self.model.set_fields(run_fields(known))
        self.table.sortByColumn(-1, Qt.SortOrder.AscendingOrder)
        for column, width in enumerate(column_widths(self.model.fields, self.table.fontMetrics())):
            self.table.setColumnWidth(column, width)
        self.restore_columns(self._columns_state)
        self.filters.set_kinds(known.titles)

    def _show_runs(self, read: History) -> None:
        chosen = {run.id for run in self.selected()}
        current = self.table.currentIndex()
        current_id = self.model.record(current.row()).id if current.isValid() else None
        scrolled = self.table.verticalScrollBar().value()
        self._all = {run.id: run for run in read.runs}
        self.model.set_records(read.runs, self.filters.condition(self._haystacks))
        self._select(chosen, current_id, current.column())
        self.table.verticalScrollBar().setValue(scrolled)
        self._update_state()

    def _select(self, ids: set[int], current_id: int | None, column: int) -> None:
        if not ids and current_id is None:
            return
        selection = self.table.selectionModel()
        flags = selection.SelectionFlag
        for row, run in enumerate(self.model.records()):
            if run.id == current_id:
                selection.setCurrentIndex(self.model.index(row, column), flags.NoUpdate)
            if run.id in ids:
                selection.select(self.model.index(row, 0), flags.Select | flags.Rows)

    def _say_failed(self, sentence: str) -> None:
        self.messages.show_message(Message(Tone.BAD, sentence))
        self.refresh()

    def _say_unreadable(self, sentence: str) -> None:
        self._busy = False
        self.messages.show_message(Message(Tone.BAD, sentence))

    # Filtering

    def _filter(self) -> None:
        self.model.set_filter(self.filters.condition(self._haystacks))
        self._update_state()

    def _update_state(self) -> None:
        shown, trash = self.model.rowCount(), self.filters.trash
        total = sum(run.trashed == trash for run in self._all.values())
        self.count_label.setText(
            self.tr("Runs: {0}").format(f"{total:,}")
            if shown == total
            else self.tr("{0} of {1} runs").format(f"{shown:,}", f"{total:,}")
        )
        self.stack.setCurrentWidget(self.table if shown else self.empty)
        if trash and not total:
            text, clearable = self.tr("The trash is empty."), False
        elif total:
            text, clearable = self.tr("No run fits the filter."), True
        elif self._catalogue is None:
            text, clearable = self.tr("Reading the runs ..."), False
        else:
            text, clearable = self.tr("No runs yet. Start the demo from the first page, or a trial of your own."), False
        self.empty_label.setText(text)
        self.clear_button.setVisible(clearable)
        self._update_actions()

    # Actions

    def selected(self) -> list[RunRow]:
        """The selected runs, in the order of the table."""
        rows = sorted({index.row() for index in self.table.selectionModel().selectedRows()})
        return [self.model.record(row) for row in rows]

    def _update_actions(self) -> None:
        runs, trash = self.selected(), self.filters.trash
        for action in (self.open_action, self.export_action):
            action.setEnabled(bool(runs))
        self.compare_action.setEnabled(len(runs) > 1)
        self.use_action.setEnabled(len(runs) == 1)
        self.trash_action.setEnabled(bool(runs) and not trash)
        self.restore_action.setEnabled(bool(runs) and trash)
        self.purge_action.setEnabled(trash and any(run.trashed for run in self._all.values()))
        self.delete_button.setVisible(not trash)
        for button in (self.restore_button, self.purge_button):
            button.setVisible(trash)

    def _open(self) -> None:
        if runs := self.selected():
            self.open_runs.emit([run.id for run in runs])

    def _compare(self) -> None:
        self.compare_runs.emit([run.id for run in self.selected()])

    def _use(self) -> None:
        self.use_parameters.emit(self.selected()[0].id)

    def _trash(self) -> None:
        text = self.changes.trash(self.selected())
        self.messages.show_message(Message(Tone.INFO, text, link=(self.tr("Undo"), self.changes.stack.undo)))

    def _restore(self) -> None:
        text = self.changes.restore(self.selected())
        self.messages.show_message(Message(Tone.INFO, text, link=(self.tr("Undo"), self.changes.stack.undo)))

    def _purge(self) -> None:
        count = sum(run.trashed for run in self._all.values())
        answer = QMessageBox.question(
            self,
            self.tr("Empty the trash"),
            self.tr("Runs to remove for good, with all their samples: {0}. This cannot be undone.").format(count),
        )
        if answer is QMessageBox.StandardButton.Yes:
            self.changes.purge()

    def _export(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, self.tr("Folder for the CSV files"))
        if chosen:
            self.export_to(Path(chosen))

    def export_to(self, folder: Path) -> None:
        """Write the selected runs as CSV, a folder for each, in the background."""
        ids = [run.id for run in self.selected()]
        self._background.submit(
            lambda: self._runs.export(ids, folder),
            lambda count: self.messages.show_message(
                Message(Tone.GOOD, self.tr("{0} files written to {1}.").format(count, folder))
            ),
            self._say_failed,
        )

    def _edited(self, run: RunRow, column: int, text: str) -> None:
        if column == column_of(self.model.fields, self.tr("Note")):
            self.changes.set_note(run, text)
        else:
            self.changes.set_tags(run, text)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Enter opens, Delete moves to the trash; from the filter box, Down goes into the table."""
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            if watched is self.table and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._open()
                return True
            if watched is self.filters.search and event.key() == Qt.Key.Key_Down:
                self.table.setFocus()
                return True
        return super().eventFilter(watched, event)

    def _header_menu(self, position: QPoint) -> None:
        header = self.table.horizontalHeader()
        menu = QMenu(self)
        menu.setAccessibleName(self.tr("Columns"))
        for column, field in enumerate(self.model.fields):
            action = menu.addAction(field.title)
            action.setCheckable(True)
            action.setChecked(not header.isSectionHidden(column))
            action.toggled.connect(lambda shown, column=column: self._show_column(column, shown))
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(header.mapToGlobal(position))

    def _show_column(self, column: int, shown: bool) -> None:
        self.table.setColumnHidden(column, not shown)

    # Building

    def _build_table(self) -> None:
        self.table = DataTable(self.tr("Runs"), self._theme, self)
        self.model: RecordModel[RunRow] = RecordModel(run_fields(Catalogue({}, ())), self._theme, self.table)
        self.model.on_edit = self._edited
        self.table.setModel(self.model)
        self.table.setSortingEnabled(True)
        self.table.setEditTriggers(DataTable.EditTrigger.EditKeyPressed | DataTable.EditTrigger.SelectedClicked)
        self.table.doubleClicked.connect(self._open)
        self.table.installEventFilter(self)
        self.table.selectionModel().selectionChanged.connect(self._update_actions)
        header = self.table.horizontalHeader()
        header.setSectionsMovable(True)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(self._header_menu)
        # Once the editor is gone, not while it goes.
        self.table.itemDelegate().closeEditor.connect(self.refresh, Qt.ConnectionType.QueuedConnection)

    def _build_actions(self) -> None:
        undo = self.changes.stack.createUndoAction(self, self.tr("Undo"))
        undo.setShortcut(QKeySequence.StandardKey.Undo)
        redo = self.changes.stack.createRedoAction(self, self.tr("Redo"))
        redo.setShortcut(QKeySequence.StandardKey.Redo)
        self.open_action = self._action(self.tr("Open"), "open", self._open)
        self.compare_action = self._action(self.tr("Side by side"), "compare", self._compare)
        self.use_action = self._action(self.tr("Use these parameters"), "reset", self._use)
        self.export_action = self._action(self.tr("Export CSV ..."), "export", self._export)
        self.trash_action = self._action(self.tr("Delete"), "trash", self._trash, QKeySequence.StandardKey.Delete)
        self.restore_action = self._action(self.tr("Restore"), "undo", self._restore)
        self.purge_action = self._action(self.tr("Empty trash ..."), "trash", self._purge)
        for action in (undo, redo):
            action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            self.addAction(action)
        find = QAction(self.tr("Find runs"), self)
        find.setShortcut(QKeySequence.StandardKey.Find)
        find.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        find.triggered.connect(self.filters.search.setFocus)
        self.addAction(find)

    def _action(
        self, text: str, icon: str, work: Callable[[], None], key: QKeySequence.StandardKey | None = None
    ) -> QAction:
        action = QAction(text, self)
        self._theme.bind_icon(action, icon)
        if key is not None:
            action.setShortcut(key)
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.triggered.connect(lambda: work())
        self.table.addAction(action)
        return action

    def _button(self, action: QAction, *, named: bool = False) -> QToolButton:
        button = QToolButton(self)
        button.setDefaultAction(action)
        button.setIconSize(QSize(18, 18))
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setAccessibleName(action.text())
        if named:
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        return button

    def _arrange(self) -> None:
        self.open_button = self._button(self.open_action, named=True)
        self.compare_button = self._button(self.compare_action, named=True)
        self.use_button, self.export_button = self._button(self.use_action), self._button(self.export_action)
        self.delete_button, self.restore_button = self._button(self.trash_action), self._button(self.restore_action)
        self.purge_button = self._button(self.purge_action, named=True)
        self.count_label = QLabel(self)
        self.count_label.setProperty("muted", True)
        bar = QHBoxLayout()
        bar.setSpacing(2)
        for button in (
            self.open_button,
            self.compare_button,
            self.use_button,
            self.export_button,
            self.delete_button,
            self.restore_button,
            self.purge_button,
        ):
            bar.addWidget(button)
        bar.addSpacing(6)
        bar.addWidget(self.filters, 1)
        bar.addSpacing(6)
        bar.addWidget(self.count_label)
        self.empty = QWidget(self)
        self.empty_label = QLabel(self.empty)
        self.empty_label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty_label.setProperty("muted", True)
        self.clear_button = QPushButton(self.tr("Clear the filter"), self.empty)
        self.clear_button.clicked.connect(self.filters.clear)
        middle = QVBoxLayout(self.empty)
        middle.addStretch(1)
        middle.addWidget(self.empty_label)
        middle.addWidget(self.clear_button, 0, Qt.AlignmentFlag.AlignCenter)
        middle.addStretch(1)
        self.stack = QStackedWidget(self)
        self.stack.addWidget(self.table)
        self.stack.addWidget(self.empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 6, 10, 8)
        layout.setSpacing(6)
        layout.addWidget(self.messages)
        layout.addLayout(bar)
        layout.addWidget(self.stack, 1)
        self._filter()
