"""The controls of a view, which tests of accessibility go through."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QMenu,
    QTabBar,
    QTabWidget,
    QWidget,
)

from labconsole_ui.plots.curve_plot import TimePlot

CONTROLS = (QAbstractButton, QComboBox, QLineEdit, QAbstractItemView, QTabWidget, TimePlot)


def controls(view: QWidget) -> list[QWidget]:
    """The controls of the views, without the parts of Qt's own widgets."""
    own = [widget for kind in CONTROLS for widget in view.findChildren(kind)]
    return [widget for widget in own if not isinstance(widget, QHeaderView) and not part_of_another(widget)]


def part_of_another(widget: QWidget) -> bool:
    parent = widget.parent()
    inside = isinstance(parent, QComboBox | QLineEdit | QTabBar)
    inside = inside or parent.metaObject().className() == "QComboBoxPrivateContainer"
    return inside or widget.objectName().startswith("qt_") or widget.metaObject().className() == "QTableCornerButton"


def owners(widget: QWidget) -> list[QWidget]:
    """All widgets around this one."""
    above = widget.parentWidget()
    return [] if above is None else [above, *owners(above)]


def nameless(root: QWidget) -> list[str]:
    """Widgets that take the focus but have neither a text nor an accessible name."""
    found = []
    for widget in root.findChildren(QWidget):
        if widget.focusPolicy() == Qt.FocusPolicy.NoFocus or widget.objectName().startswith("qt_"):
            continue
        if isinstance(widget.parent(), QMenu) or widget.focusProxy() is not None:
            continue
        if any(isinstance(owner, QComboBox) for owner in owners(widget)):
            continue
        text = widget.text() if isinstance(widget, QAbstractButton | QLabel) else ""
        if not (widget.accessibleName() or text):
            found.append(f"{type(widget).__name__} in {type(widget.parentWidget()).__name__}")
    return found
