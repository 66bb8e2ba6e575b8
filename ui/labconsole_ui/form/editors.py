"""One widget for each kind of parameter; all speak plain JSON values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QHBoxLayout, QLineEdit, QWidget

from labconsole.model.field_spec import FieldKind, FieldSpec

NUMBER_WIDTH = 150
_GROUP_MARKS = dict.fromkeys(map(ord, " _\u00a0\u2009\u202f'"))
_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")


class Editor(QWidget):
    """A parameter's widget. `value` may be invalid: the model validates it, not the editor."""

    edited = Signal()
    wide = False
    """Whether the editor takes the whole line and shows the parameter's title itself."""

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        super().__init__(parent)
        self.spec = spec
        self.inner = QHBoxLayout(self)
        self.inner.setContentsMargins(0, 0, 0, 0)
        self.inner.setSpacing(6)

    def adopt(self, widget: QWidget, *, stretch: int = 0) -> None:
        """Add the widget that gets the focus, named after the parameter for assistive technology."""
        widget.setAccessibleName(self.spec.title)
        widget.setAccessibleDescription(self.spec.description)
        self.inner.addWidget(widget, stretch)
        self.setFocusProxy(widget)

    def value(self) -> Any:
        """The entered value as plain JSON."""
        raise NotImplementedError

    def set_value(self, value: Any) -> None:
        """Show `value`; emits `edited` if that changes something."""
        raise NotImplementedError

    def can_show(self, value: Any) -> bool:
        """Whether the value can be entered here; only such a value can be reset to."""
        return True


class TextEditor(Editor):
    """A line of text, with undo and redo."""

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        super().__init__(spec, parent)
        self.line = QLineEdit(self)
        self.line.setClearButtonEnabled(spec.kind is not FieldKind.TEXT or spec.optional)
        if spec.kind is FieldKind.HOST:
            self.line.setPlaceholderText(self.tr("Host name or IP address"))
        elif spec.empty or spec.optional:
            self.line.setPlaceholderText(spec.empty or self.tr("None"))
        self.line.textChanged.connect(lambda _text: self.edited.emit())
        self.adopt(self.line, stretch=1)

    def value(self) -> Any:
        text = self.line.text() if self.spec.kind is FieldKind.TEXT else self.line.text().strip()
        return None if self.spec.optional and not text else text

    def set_value(self, value: Any) -> None:
        self.line.setText("" if value is None else str(value))


class NumberEditor(Editor):
    """A whole or decimal number; commas or spaces may separate thousands."""

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        super().__init__(spec, parent)
        self.line = QLineEdit(self)
        self.line.setFixedWidth(NUMBER_WIDTH)
        self.line.setAlignment(Qt.AlignmentFlag.AlignRight)
        if spec.optional:
            self.line.setPlaceholderText(spec.empty or self.tr("None"))
        self.line.textChanged.connect(lambda _text: self.edited.emit())
        self.adopt(self.line)

    def value(self) -> Any:
        text = self.line.text().translate(_GROUP_MARKS)
        if _GROUPED.fullmatch(text):
            text = text.replace(",", "")
        if not text:
            return None if self.spec.optional else ""
        try:
            return float(text) if self.spec.kind is FieldKind.NUMBER else int(text)
        except ValueError:
            return text

    def set_value(self, value: Any) -> None:
        if isinstance(value, int) and not isinstance(value, bool):
            self.line.setText(str(value) if self.spec.kind is FieldKind.PORT else f"{value:,}")
        elif isinstance(value, float):
            self.line.setText(f"{value:.12g}")
        else:
            self.line.setText("" if value is None else str(value))


class ChoiceEditor(Editor):
    """One of a few values. The wheel scrolls the form, not the choice, unless the choice has the focus."""

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        super().__init__(spec, parent)
        self.combo = WheelIgnoringComboBox(self)
        for value, label in spec.choices:
            self.combo.addItem(label, value)
        self.combo.setMinimumWidth(NUMBER_WIDTH)
        self.combo.currentIndexChanged.connect(lambda _index: self.edited.emit())
        self.adopt(self.combo)

    def value(self) -> Any:
        return self.combo.currentData()

    def set_value(self, value: Any) -> None:
        values = [choice for choice, _ in self.spec.choices]
        if value in values:
            self.combo.setCurrentIndex(values.index(value))

    def can_show(self, value: Any) -> bool:
        return value in [choice for choice, _ in self.spec.choices]


def choice_of(names: Iterable[str]) -> Callable[[FieldSpec, QWidget], ChoiceEditor]:
    """What makes the editor of a text parameter that offers these names."""
    choices = tuple((name, name) for name in names)
    return lambda spec, parent: ChoiceEditor(replace(spec, choices=choices), parent)


class FlagEditor(Editor):
    """Yes or no; the parameter's title is the check box's text."""

    def __init__(self, spec: FieldSpec, parent: QWidget) -> None:
        super().__init__(spec, parent)
        self.box = QCheckBox(spec.title, self)
        self.box.toggled.connect(lambda _checked: self.edited.emit())
        self.adopt(self.box)

    def value(self) -> Any:
        return self.box.isChecked()

    def set_value(self, value: Any) -> None:
        self.box.setChecked(bool(value))


class WheelIgnoringComboBox(QComboBox):
    """A combo box that leaves the wheel to the page unless it has the focus."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()
