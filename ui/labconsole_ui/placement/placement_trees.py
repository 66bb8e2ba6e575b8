"""The two trees of the dialog: the roles of a trial, and the hosts and tags on which they are dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from PySide6.QtCore import QItemSelectionModel, QMimeData, QModelIndex, QSize, Qt, Signal
from PySide6.QtGui import QAction, QDropEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from labconsole.model.placement import HostFacts
from labconsole.safe_text import shown_lines
from labconsole_ui.placement.placing import HERE, Placing, Target, TargetKind, targets
from labconsole_ui.theme.theme import FontRole, Theme

ROLES_TYPE = "application/x-labconsole-roles"
_ROLE = Qt.ItemDataRole.UserRole
_TARGET = Qt.ItemDataRole.UserRole + 1
_ICONS = {TargetKind.HERE: "home", TargetKind.HOST: "plugin-console-hosts", TargetKind.TAG: "tag"}


def decode_roles(data: QMimeData) -> list[str]:
    """The dragged roles, by name or pattern; empty if `data` has something else."""
    try:
        roles = json.loads(bytes(data.data(ROLES_TYPE).data()) or b"[]")
    except ValueError:
        return []
    return [role for role in roles if isinstance(role, str)] if isinstance(roles, list) else []


class _RoleDragTree(QTreeWidget):
    """Lines of roles can be dragged, several at once; what is dropped comes to `_dropped`."""

    def __init__(self, name: str, headings: Sequence[str], theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shared = False
        self.setAccessibleName(name)
        self.setHeaderLabels(list(headings))
        self.setFont(theme.font(FontRole.TABLE))
        self.setIconSize(QSize(16, 16))
        self.setAlternatingRowColors(True)
        self.setUniformRowHeights(True)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # names differ at their ends
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setDragEnabled(True)
        self.setAcceptDrops(True)
        self.setDropIndicatorShown(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self.setStyleSheet("QTreeView::item { padding: 3px 4px; }")
        self.header().setStretchLastSection(False)
        self.header().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)

    @property
    def roles(self) -> list[str]:
        """The selected roles; a role whose group is selected is left out."""
        chosen = self.selectedItems()
        found = [item.data(0, _ROLE) for item in chosen if item.parent() not in chosen]
        return list(dict.fromkeys(role for role in found if role))

    def _top_lines(self) -> list[QTreeWidgetItem]:
        return [item for index in range(self.topLevelItemCount()) if (item := self.topLevelItem(index)) is not None]

    @contextmanager
    def _refilled(self) -> Iterator[None]:
        """Clear it; after the block the current line and the scroll position are those of before."""
        before = [_key(line) for line in (self.currentItem(),) if line is not None]
        position = self.verticalScrollBar().value()
        self.setCurrentIndex(QModelIndex())  # clear() with a current line takes half a second for 200 hosts
        self.clear()
        yield
        for top in self._top_lines():
            for line in (top, *(top.child(index) for index in range(top.childCount()))):
                if _key(line) in before:
                    self.setCurrentItem(line, 0, QItemSelectionModel.SelectionFlag.NoUpdate)
        self.executeDelayedItemsLayout()
        self.verticalScrollBar().setValue(position)

    def mimeTypes(self) -> list[str]:  # noqa: N802 - Qt names it
        return [ROLES_TYPE]

    def mimeData(self, items: Sequence[QTreeWidgetItem]) -> QMimeData:
        data = QMimeData()
        data.setData(ROLES_TYPE, json.dumps(self.roles).encode())
        return data

    def supportedDropActions(self) -> Qt.DropAction:  # noqa: N802 - Qt names it
        return Qt.DropAction.CopyAction

    def dropEvent(self, event: QDropEvent) -> None:
        self._shared = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        super().dropEvent(event)

    def dropMimeData(self, parent: QTreeWidgetItem, index: int, data: QMimeData, action: Qt.DropAction) -> bool:  # noqa: N802 - Qt names it
        roles = decode_roles(data)
        if roles:
            self._dropped(roles, parent)
        return bool(roles)

    def _dropped(self, roles: list[str], item: QTreeWidgetItem | None) -> None:
        raise NotImplementedError


class RoleTree(_RoleDragTree):
    """The roles that a run starts, in groups; `returned` carries roles that were dropped here: they stay here."""

    returned = Signal(list)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent.tr("Roles of the run"), (parent.tr("Role"), parent.tr("Runs on")), theme, parent)
        self.header().setStretchLastSection(True)

    def show_roles(self, placing: Placing) -> None:
        """Show where each role runs, with the same lines selected and expanded as before."""
        chosen = {item.data(0, _ROLE) for item in self.selectedItems()}
        open_ones = {item.data(0, _ROLE) for item in self._top_lines() if item.isExpanded()}
        with self._refilled():
            for pattern, members in placing.groups.items():
                single = members == (pattern,)
                title = (
                    pattern if single else self.tr("{pattern} ({count})").format(pattern=pattern, count=len(members))
                )
                places = {name: self._place(placing, name) for name in members}
                common = set(places.values())
                group = _item(self, title, pattern, common.pop() if len(common) == 1 else self.tr("several"))
                for name, place in () if single else places.items():
                    _item(group, name, name, place).setSelected(name in chosen)
                group.setExpanded(pattern in open_ones)
                group.setSelected(pattern in chosen)

    def _place(self, placing: Placing, name: str) -> str:
        request = placing.placement.request(name)
        return self.tr("this computer") if request is None else str(request)

    def _dropped(self, roles: list[str], item: QTreeWidgetItem | None) -> None:
        self.returned.emit(roles)


class HostTree(_RoleDragTree):
    """This computer, hosts and tags, each with what was placed there. `placed` carries roles, target, and whether they
    share it; `returned` the placed roles that shall stay on this computer."""

    placed = Signal(list, object, bool)
    returned = Signal(list)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        headings = (
            parent.tr("Host"), parent.tr("Tags"), parent.tr("Cores"), parent.tr("Load"), parent.tr("Version")
        )  # fmt: skip
        super().__init__(parent.tr("Hosts and tags"), headings, theme, parent)
        for column in (0, 1):  # names and tags may be long
            self.header().setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        root = self.invisibleRootItem()
        root.setFlags(root.flags() & ~Qt.ItemFlag.ItemIsDropEnabled)
        self.setToolTip(self.tr("Drop roles here. With Ctrl they share it with the hosts that they have already."))
        back = self.add_action(self.tr("Back to this computer"), lambda: self.returned.emit(self.roles))
        back.setShortcut(QKeySequence(Qt.Key.Key_Delete))
        back.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)

    @property
    def chosen(self) -> list[Target]:
        """The selected targets."""
        found = [item.data(0, _TARGET) for item in self.selectedItems()]
        return [target for target in found if target is not None]

    def add_action(self, text: str, action: Callable[[], None]) -> QAction:
        """Add an action to the context menu."""
        made = QAction(text, self)
        made.triggered.connect(lambda _checked: action())
        self.addAction(made)
        return made

    def item_of(self, target: Target) -> QTreeWidgetItem:
        """The line of a target. Raises KeyError: it has none."""
        found = {item.data(0, _TARGET): item for item in self._top_lines()}
        return found[target]

    def show_targets(self, placing: Placing) -> None:
        """Show them, with the same lines selected and closed as before."""
        before = self.chosen
        closed = {item.data(0, _TARGET) for item in self._top_lines() if item.childCount() and not item.isExpanded()}
        facts = {host.name: host for host in placing.hosts or ()}
        with self._refilled():
            for target in targets(placing):
                host = facts.get(target.name) if target.kind is TargetKind.HOST else None
                item = self._add(target, host, placing)
                item.setSelected(target in before)
                item.setExpanded(target not in closed)

    def _add(self, target: Target, host: HostFacts | None, placing: Placing) -> QTreeWidgetItem:
        """Add the line of a target, with what was placed there; `host`: what is known of it."""
        cells, about = ["", "", "", ""], [self._title(target, placing)]
        if host is not None:
            load = "" if host.load is None else f"{host.load:.2f}"
            cells = [", ".join(host.tags), str(host.cores), load, host.version]
            about += [self.tr("Has {what}").format(what=", ".join(host.capabilities))] if host.capabilities else []
        elif target.kind is TargetKind.HOST and placing.hosts is not None:
            cells[0] = self.tr("has not joined")
        item = QTreeWidgetItem(self, [shown_lines(text) for text in (about[0], *cells)])
        item.setToolTip(0, shown_lines("\n".join(about)))
        item.setToolTip(1, shown_lines(cells[0]))
        item.setIcon(0, self._theme.icon(_ICONS[target.kind], "muted" if host is None else "text"))
        item.setData(0, _TARGET, target)
        item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsDragEnabled | Qt.ItemFlag.ItemIsDropEnabled)
        for role, text in self._placed_on(target, placing):
            _item(item, text, role)
        return item

    def _title(self, target: Target, placing: Placing) -> str:
        if target == HERE:
            return self.tr("This computer")
        if target.kind is TargetKind.HOST:
            return target.name
        count = sum(target.name in host.offers for host in placing.hosts or ())
        return self.tr("Tag {tag} (hosts: {count})").format(tag=target.name, count=count)

    def _placed_on(self, target: Target, placing: Placing) -> list[tuple[str, str]]:
        """The roles there, by name or pattern, and their lines."""
        if target == HERE:
            groups = placing.groups.items()
            here = [(one, [name for name in names if placing.placement.request(name) is None]) for one, names in groups]
            return [
                (role, self._line(role, len(names)))
                for pattern, names in here
                for role in ([pattern] if len(names) == len(placing.groups[pattern]) else names)
                if names
            ]
        return [
            (request.role, self._line(request.role, len(placing.roles_of(request))))
            for request in placing.placement.roles
            if target.name in (request.hosts if target.kind is TargetKind.HOST else (request.tag,))
        ]

    def _line(self, role: str, count: int) -> str:
        if "*" not in role and "?" not in role:
            return role
        return self.tr("{pattern} (roles: {count})").format(pattern=role, count=count)

    def _dropped(self, roles: list[str], item: QTreeWidgetItem | None) -> None:
        while item is not None and item.parent() is not None:
            item = item.parent()
        if item is not None:
            self.placed.emit(roles, item.data(0, _TARGET), self._shared)


def _key(line: QTreeWidgetItem) -> tuple[object, object]:
    """By which a line is known again."""
    return line.data(0, _TARGET), line.data(0, _ROLE)


def _item(parent: QTreeWidget | QTreeWidgetItem, title: str, role: str, place: str = "") -> QTreeWidgetItem:
    """A line for a role, which can be dragged, and on which others can be dropped."""
    item = QTreeWidgetItem([shown_lines(title), shown_lines(place)])
    item.setData(0, _ROLE, role)
    item.setToolTip(0, shown_lines(title))
    item.setToolTip(1, shown_lines(place))
    if isinstance(parent, QTreeWidget):
        parent.addTopLevelItem(item)
    else:
        parent.addChild(item)
    return item
