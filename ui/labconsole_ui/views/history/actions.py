"""The actions of the history on chosen runs, as buttons above it and in its menu."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QWidget

from labconsole.store.records import RunRow
from labconsole_ui.runs.run_files import ExportMenu
from labconsole_ui.tables.record_table import DataTable
from labconsole_ui.theme.theme import Theme


def open_column_menu(table: DataTable, titles: Sequence[str], name: str, position: QPoint) -> None:
    """Open the menu of columns at `position` of the header: each entry shows or hides a column."""
    header = table.horizontalHeader()
    menu = QMenu(table)
    menu.setAccessibleName(name)
    for column, title in enumerate(titles):
        action = menu.addAction(title)
        action.setCheckable(True)
        action.setChecked(not header.isSectionHidden(column))
        action.toggled.connect(partial(_show_column, table, column))
    menu.aboutToHide.connect(menu.deleteLater)
    menu.popup(header.mapToGlobal(position))


def _show_column(table: DataTable, column: int, shown: bool) -> None:
    table.setColumnHidden(column, not shown)


class HistoryActions(QObject):
    """The actions, enabled by `update_state` for the chosen runs; the view connects them."""

    group_switched = Signal(bool)

    def __init__(self, table: QWidget, theme: Theme) -> None:
        super().__init__(table)
        self._table = table
        self._theme = theme
        self.open = self._action(self.tr("Open"), "open")
        self.compare = self._action(self.tr("Side by side"), "compare")
        self.use = self._action(self.tr("Use these parameters"), "reset")
        self.pin = self._action(self.tr("Pin as baseline"), "pin")
        self.report = self._action(self.tr("Report ..."), "report")
        self.export_menu = ExportMenu(theme, table)
        self.export = self.export_menu.menuAction()
        self.verify = self._action(self.tr("Verify evidence"), "shield")
        self.trash = self._action(self.tr("Delete"), "trash", QKeySequence.StandardKey.Delete)
        self.restore = self._action(self.tr("Restore"), "undo")
        self.purge = self._action(self.tr("Empty trash ..."), "trash")
        self.group = QAction(self.tr("Group by campaign"), self)
        self.group.setCheckable(True)
        theme.bind_icon(self.group, "campaign")
        self.group.toggled.connect(self.group_switched)
        after = (self.open, self.compare, self.report, self.use, self.pin)
        files = (self.export, self.verify)
        table.addActions([*after, _separator(self), *files, _separator(self), self.trash, self.restore, self.purge])

    def update_state(
        self, runs: Sequence[RunRow], *, trash: bool, trashed: bool, baseline: Callable[[RunRow], RunRow | None]
    ) -> None:
        """Enable the actions that apply to `runs`; `trash`: they are in the trash, `trashed`: it is not empty."""
        one = runs[0] if len(runs) == 1 else None
        over = bool(runs) and all(run.status.final for run in runs)
        pinned = bool(runs) and all(run.pinned for run in runs)
        against = baseline(one) if one is not None else None
        self.open.setEnabled(bool(runs))
        self.compare.setEnabled(len(runs) > 1 or against is not None)
        self.compare.setToolTip(
            self.tr("Compare with the baseline, run {0}").format(against.id)
            if against is not None
            else self.tr("Compare the chosen runs; a single one with the pinned baseline of its trial")
        )
        self.use.setEnabled(one is not None)
        self.pin.setEnabled(one is not None and one.status.final and not trash)
        self.pin.setText(self.tr("Unpin the baseline") if pinned else self.tr("Pin as baseline"))
        for action in (self.report, self.export, self.verify):
            action.setEnabled(over)
        self.trash.setEnabled(bool(runs) and not trash)
        self.restore.setEnabled(bool(runs) and trash)
        self.purge.setEnabled(trash and trashed)
        for shown, button in ((not trash, self.trash_button), (trash, self.restore_button), (trash, self.purge_button)):
            button.setVisible(shown)

    def menu_groups(self) -> list[list[QAction]]:
        """All actions in the groups of the menu bar."""
        return [
            [self.open, self.compare, self.report],
            [self.use, self.pin],
            [self.export, self.verify],
            [self.group, self.trash, self.restore, self.purge],
        ]

    def bar(self, parent: QWidget) -> QHBoxLayout:
        """Buttons for the actions; those that are used less are in a menu."""
        self.open_button = self._button(self.open, parent, named=True)
        self.compare_button = self._button(self.compare, parent, named=True)
        self.report_button = self._button(self.report, parent, named=True)
        self.more_button = QToolButton(parent)
        self.more_button.setText(self.tr("More"))
        self.more_button.setToolTip(self.tr("Parameters, baseline, export, evidence"))
        self.more_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.more_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.more_button.setIconSize(QSize(18, 18))
        self._theme.bind_icon(self.more_button, "more")
        menu = QMenu(self.tr("More"), self.more_button)
        menu.addActions([self.use, self.pin])
        menu.addSeparator()
        menu.addActions([self.export, self.verify])
        self.more_button.setMenu(menu)
        self.group_button = self._button(self.group, parent)
        self.trash_button = self._button(self.trash, parent)
        self.restore_button = self._button(self.restore, parent)
        self.purge_button = self._button(self.purge, parent, named=True)
        row = QHBoxLayout()
        row.setSpacing(2)
        for button in (
            self.open_button,
            self.compare_button,
            self.report_button,
            self.more_button,
            self.trash_button,
            self.restore_button,
            self.purge_button,
            self.group_button,
        ):
            row.addWidget(button)
        return row

    def _action(self, text: str, icon: str, key: QKeySequence.StandardKey | None = None) -> QAction:
        action = QAction(text, self)
        self._theme.bind_icon(action, icon)
        if key is not None:
            action.setShortcut(key)
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        return action

    def _button(self, action: QAction, parent: QWidget, *, named: bool = False) -> QToolButton:
        button = QToolButton(parent)
        button.setDefaultAction(action)
        button.setIconSize(QSize(18, 18))
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        button.setAccessibleName(action.text())
        if named:
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        return button


def _separator(parent: QObject) -> QAction:
    action = QAction(parent)
    action.setSeparator(True)
    return action
