"""The controls of a view, which tests of accessibility go through."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QHeaderView,
    QLineEdit,
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
