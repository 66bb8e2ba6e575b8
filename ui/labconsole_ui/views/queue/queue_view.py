"""The run queue: a table, with actions on each run by button, key, menu or drag."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QAction, QColor, QKeySequence, QPainter, QPalette
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QMenu,
    QStackedWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from labconsole.engine.queue import QueueItem, QueueState
from labconsole.store.records import RunStatus
from labconsole_ui.runtime.queue_bridge import QueueBridge
from labconsole_ui.tables.record_table import DataTable, selected_rows
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.queue.queue_model import QueueColumn, QueueModel
from labconsole_ui.widgets.help_chapter import set_chapter
from labconsole_ui.widgets.labels import plain_label
from labconsole_ui.widgets.status_text import console_name, duration, progress_fraction, utc_time

BAR_HEIGHT = 6
TEXT_WIDTH = 44
_MARGIN = 6


class ProgressDelegate(QStyledItemDelegate):
    """A bar with a percentage; a running item of unknown size gets a half-tone bar."""

    def __init__(self, model: QueueModel, theme: Theme) -> None:
        super().__init__(model)
        self._model = model
        self._theme = theme

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        text = str(index.data(Qt.ItemDataRole.DisplayRole) or "")
        self.initStyleOption(option, index)
        option.text = ""
        widget = option.widget
        widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, widget)
        item = self._model.record(index.row())
        share = progress_fraction(item)
        if item.state is QueueState.WAITING:
            widget.style().drawItemText(
                painter,
                option.rect.adjusted(_MARGIN, 0, -_MARGIN, 0),
                int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter),
                option.palette,
                True,
                text,
                QPalette.ColorRole.HighlightedText
                if option.state & QStyle.StateFlag.State_Selected
                else QPalette.ColorRole.Text,
            )
            return
        if share is None and item.state is QueueState.DONE:
            return
        rect = QRectF(option.rect).adjusted(_MARGIN, 0, -_MARGIN, 0)
        bar = QRectF(rect.left(), rect.center().y() - BAR_HEIGHT / 2, rect.width() - TEXT_WIDTH, BAR_HEIGHT)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colour("sunken"))
        painter.drawRoundedRect(bar, 3, 3)
        colour = QColor(self._theme.colour("good" if item.status is RunStatus.FINISHED else "link"))
        if share is None:
            colour.setAlphaF(0.4)
            share = 1.0
        painter.setBrush(colour)
        painter.drawRoundedRect(QRectF(bar.left(), bar.top(), max(bar.width() * share, BAR_HEIGHT), BAR_HEIGHT), 3, 3)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.setPen(self._theme.colour("on_accent" if selected else "text"))
        right = QRectF(bar.right(), rect.top(), TEXT_WIDTH, rect.height())
        painter.drawText(right, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text)
        painter.restore()


_COLUMN_WIDTHS = {
    QueueColumn.RUN: 56,
    QueueColumn.CAMPAIGN: 200,
    QueueColumn.STATUS: 120,
    QueueColumn.PROGRESS: 190,
    QueueColumn.RATE: 90,
    QueueColumn.ETA: 90,
}


class QueueView(QWidget):
    """The queue; `opened` carries the id of a run to show, `repeat_wanted` of one to be repeated."""

    opened = Signal(int)
    repeat_wanted = Signal(int)

    def __init__(self, bridge: QueueBridge, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_chapter(self, "how-to/run-a-campaign.md#follow-the-queue")
        self._bridge = bridge
        self._theme = theme
        self.model = QueueModel(bridge, theme, self)
        self._stack = QStackedWidget(self)
        self.table = self._make_table()
        self._followed: int | None = None
        self._summary = plain_label("", self)
        self._summary.setProperty("muted", True)
        self._stack.addWidget(self._empty_page())
        self._stack.addWidget(self.table)
        self._make_actions()
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 6, 10, 8)
        column.setSpacing(6)
        column.addLayout(self._toolbar())
        column.addWidget(self._stack, 1)
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._update())
        bridge.items_changed.connect(self._follow)
        bridge.live.connect(self._update)
        self._follow()

    def selected(self) -> list[QueueItem]:
        """The selected items, from top to bottom."""
        return [self.model.record(row) for row in selected_rows(self.table)]

    def select(self, run_id: int) -> None:
        """Select the row of a run."""
        row = self.model.row_of(run_id)
        if row is not None:
            self.table.selectRow(row)

    def menu_groups(self) -> list[list[QAction]]:
        """The actions in the groups of the menu bar."""
        runs = [self.open_action, self.repeat_action, self.remove_action, self.up_action, self.down_action]
        return [[self.pause_action, self.cancel_action], runs, [self.clear_action]]

    def move_selected(self, offset: int) -> None:
        """Move the selected waiting runs up (negative) or down; they stay selected."""
        items = [item for item in self.selected() if item.own and item.state is QueueState.WAITING]
        for item in items if offset < 0 else reversed(items):
            self._bridge.queue.move(item.run_id, offset)

    def _make_table(self) -> DataTable:
        table = DataTable(self.tr("Run queue"), self._theme, self._stack)
        table.setModel(self.model)
        table.setIconSize(QSize(16, 16))
        table.setItemDelegateForColumn(QueueColumn.PROGRESS, ProgressDelegate(self.model, self._theme))
        table.setDragEnabled(True)
        table.setAcceptDrops(True)
        table.setDropIndicatorShown(True)
        table.setDragDropMode(QAbstractItemView.DragDropMode.InternalMove)
        table.setDragDropOverwriteMode(False)
        table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        table.customContextMenuRequested.connect(self._show_menu)
        table.doubleClicked.connect(lambda index: self.opened.emit(self.model.record(index.row()).run_id))
        header = table.horizontalHeader()
        header.setMinimumSectionSize(40)
        header.setStretchLastSection(False)
        for column, width in _COLUMN_WIDTHS.items():
            header.resizeSection(column, width)
        header.setSectionResizeMode(QueueColumn.NAME, QHeaderView.ResizeMode.Stretch)
        return table

    def _empty_page(self) -> QWidget:
        text = self.tr("Nothing is queued. Run a trial from its panel, or start the demo from the start page.")
        label = QLabel(text, self._stack)
        label.setProperty("muted", True)
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        label.setWordWrap(True)
        return label

    def _make_actions(self) -> None:
        self.pause_action = self._action(
            "pause", self.tr("Pause the queue"), "Ctrl+P", self._toggle_pause, everywhere=True
        )
        self.pause_action.setCheckable(True)
        self.cancel_action = self._action("stop", self.tr("Cancel run"), "Ctrl+.", self._cancel, everywhere=True)
        self.remove_action = self._action("remove", self.tr("Remove from queue"), "Del", self._remove)
        self.repeat_action = self._action("repeat", self.tr("Repeat"), "Ctrl+Shift+R", self._repeat)
        self.up_action = self._action("up", self.tr("Move up"), "Alt+Up", lambda: self.move_selected(-1))
        self.down_action = self._action("down", self.tr("Move down"), "Alt+Down", lambda: self.move_selected(1))
        self.clear_action = self._action(
            "clear", self.tr("Clear done"), "Ctrl+Shift+Del", self._bridge.queue.clear_done
        )
        self.open_action = self._action("open", self.tr("Open run"), "Return", self._open)
        self.copy_action = self.table.copy_action
        self._theme.bind_icon(self.copy_action, "copy")

    def _action(
        self,
        icon: str,
        text: str,
        keys: str,
        action: Callable[[], None],
        *,
        everywhere: bool = False,
    ) -> QAction:
        made = QAction(text, self)
        self._theme.bind_icon(made, icon)
        made.setShortcut(QKeySequence(keys))
        if not everywhere:
            made.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        made.setToolTip(f"{text} ({made.shortcut().toString(QKeySequence.SequenceFormat.NativeText)})")
        made.triggered.connect(lambda _checked: action())
        self.addAction(made)
        return made

    def _toolbar(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(2)
        for action in (
            self.pause_action,
            self.cancel_action,
            self.remove_action,
            self.repeat_action,
            self.up_action,
            self.down_action,
            self.open_action,
            self.clear_action,
        ):
            button = QToolButton()
            button.setDefaultAction(action)
            button.setIconSize(QSize(18, 18))
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.setAccessibleName(action.text())
            line.addWidget(button)
        line.addStretch(1)
        line.addWidget(self._summary)
        return line

    def _follow(self) -> None:
        self._stack.setCurrentIndex(1 if self.model.rowCount() else 0)
        self._scroll_to_running()
        self._update()

    def _scroll_to_running(self) -> None:
        """Bring the run that has just started into view; the operator may scroll away from it afterwards."""
        running = next((item.run_id for item in self._bridge.queue.items if item.state is QueueState.RUNNING), None)
        if running == self._followed:
            return
        self._followed = running
        row = None if running is None else self.model.row_of(running)
        if row is not None:
            self.table.scrollTo(self.model.index(row, 0))

    def _update(self) -> None:
        items = self.selected()
        waiting = [item for item in items if item.own and item.state is QueueState.WAITING]
        everything = self._bridge.queue.items
        self.cancel_action.setEnabled(bool(self._cancellable()))
        self.remove_action.setEnabled(bool(waiting))
        self.up_action.setEnabled(bool(waiting))
        self.down_action.setEnabled(bool(waiting))
        self.repeat_action.setEnabled(bool(items))
        self.open_action.setEnabled(bool(items))
        self.copy_action.setEnabled(bool(items))
        self.clear_action.setEnabled(any(item.state is QueueState.DONE for item in everything))
        self.pause_action.setChecked(self._bridge.queue.paused)
        self._summary.setText(self._summary_text(everything))

    def _summary_text(self, items: tuple[QueueItem, ...]) -> str:
        if not items:
            return ""
        done = sum(item.state is QueueState.DONE for item in items)
        text = self.tr("{done} of {all} done").format(done=done, all=len(items))
        left_s, ahead = self._bridge.queue.time_left_s, self._bridge.queue.waiting_for
        if done < len(items) and left_s is not None:
            text = self.tr("{done} of {all} done, about {left} left").format(
                done=done, all=len(items), left=duration(left_s)
            )
        if ahead is not None and ahead.console is not None:
            text = self.tr("{state} — waiting for run {run} of another console ({console})").format(
                state=text, run=ahead.run_id, console=console_name(ahead.console)
            )
        if (starts := self._bridge.queue.starts) is not None:
            return self.tr("{state} — waiting until {time}").format(state=text, time=utc_time(starts))
        if self._bridge.queue.paused:
            return self.tr("{state} — paused").format(state=text)
        return text

    def _toggle_pause(self) -> None:
        if self._bridge.queue.paused:
            self._bridge.queue.resume()
        else:
            self._bridge.queue.pause()

    def _cancel(self) -> None:
        """Cancel the running run, whichever is selected."""
        for item in self._cancellable():
            self._bridge.queue.cancel(item.run_id)

    def _cancellable(self) -> list[QueueItem]:
        return [item for item in self._bridge.queue.items if item.state is QueueState.RUNNING and not item.activity]

    def _remove(self) -> None:
        for item in self.selected():
            if item.own and item.state is QueueState.WAITING:
                self._bridge.queue.remove(item.run_id)

    def _repeat(self) -> None:
        for item in self.selected():
            self.repeat_wanted.emit(item.run_id)

    def _open(self) -> None:
        for item in self.selected():
            self.opened.emit(item.run_id)

    def _show_menu(self, position: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions([self.open_action, self.repeat_action, self.copy_action])
        menu.addSeparator()
        menu.addActions([self.up_action, self.down_action])
        menu.addSeparator()
        menu.addActions([self.cancel_action, self.remove_action, self.clear_action])
        menu.popup(self.table.viewport().mapToGlobal(position))
