"""One line of a form: title, editor, unit, reset; below it the error sentence."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QToolButton, QWidget

from labconsole.model.field_spec import FieldKind, FieldSpec
from labconsole_ui.form.editors import ChoiceEditor, Editor, FlagEditor, NumberEditor, TextEditor
from labconsole_ui.form.file_editor import FileEditor, OpenChoiceEditor
from labconsole_ui.form.table_editor import TableEditor
from labconsole_ui.theme.theme import FontRole, Theme

LABEL_WIDTH = 150
NUMBERS = (FieldKind.INTEGER, FieldKind.PORT, FieldKind.NUMBER)

EditorFactory = Callable[[FieldSpec, QWidget], Editor]
_EDITORS: dict[FieldKind, type[Editor]] = {
    FieldKind.INTEGER: NumberEditor,
    FieldKind.PORT: NumberEditor,
    FieldKind.NUMBER: NumberEditor,
    FieldKind.TEXT: TextEditor,
    FieldKind.HOST: TextEditor,
    FieldKind.FILE: FileEditor,
    FieldKind.NEW_FILE: FileEditor,
    FieldKind.SECRET_FILE: FileEditor,
    FieldKind.FOLDER: FileEditor,
    FieldKind.CHOICE: ChoiceEditor,
    FieldKind.OPEN_CHOICE: OpenChoiceEditor,
    FieldKind.FLAG: FlagEditor,
    FieldKind.TABLE: TableEditor,
    FieldKind.LIST: TableEditor,
}


class FieldRow(QWidget):
    """A parameter with its editor. `path` is its location in the model: (name,) or (group, name)."""

    edited = Signal()

    def __init__(
        self,
        spec: FieldSpec,
        path: tuple[str, ...],
        theme: Theme,
        parent: QWidget,
        make_editor: EditorFactory | None = None,
    ) -> None:
        super().__init__(parent)
        self.spec = spec
        self.path = path
        self._theme = theme
        self._error_label: QLabel | None = None
        self._reset_button: QToolButton | None = None
        self.editor = (make_editor or _EDITORS[spec.kind])(spec, self)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(2)
        grid.setColumnMinimumWidth(0, LABEL_WIDTH)
        grid.setColumnStretch(1, 1)
        if spec.kind is not FieldKind.FLAG and not self.editor.wide:
            label = QLabel(spec.title, self)
            label.setFixedWidth(LABEL_WIDTH)
            label.setWordWrap(True)
            label.setBuddy(self.editor)
            label.setToolTip(tooltip(spec))
            top = Qt.AlignmentFlag.AlignTop if spec.kind in (FieldKind.TABLE, FieldKind.LIST) else Qt.AlignmentFlag(0)
            if spec.kind is FieldKind.LIST:
                label.setContentsMargins(0, 8, 0, 0)  # next to its first row
            grid.addWidget(label, 0, 0, top)
        self.editor.setToolTip(tooltip(spec))
        if spec.unit:
            unit = QLabel(spec.unit, self.editor)
            unit.setProperty("muted", True)
            self.editor.inner.addWidget(unit)
        if spec.kind in NUMBERS and self.editor.can_show(spec.default):
            bounds = QLabel(spec.bounds, self.editor)
            bounds.setProperty("muted", True)
            bounds.setFont(theme.font(FontRole.CAPTION))
            self.editor.inner.addWidget(bounds)
        if spec.kind in (*NUMBERS, FieldKind.CHOICE, FieldKind.FLAG) and not self.editor.wide:
            self.editor.inner.addStretch(1)
        if self.editor.wide:
            grid.addWidget(self.editor, 0, 0, 1, 2)
        else:
            grid.addWidget(self.editor, 0, 1)
        self._grid = grid
        self._reserve(_reset_button_size())
        self.start(spec.default, base=spec.default, of_preset=False)
        self.editor.edited.connect(self._on_edited)
        self._on_edited()

    def value(self) -> Any:
        """The entered value as plain JSON."""
        return self.editor.value()

    def start(self, value: Any, *, base: Any, of_preset: bool) -> None:
        """Show the first value; `reset` shows `base` from now on, as with `set_base`."""
        self._base, self._base_of_preset = base, of_preset
        self.set_value(value)
        self._show_reset()

    def set_value(self, value: Any) -> None:
        """Show `value`."""
        self.editor.set_value(value)

    @property
    def reset_button(self) -> QToolButton:
        """The button that resets the field; created for the first change, which most fields never have."""
        if self._reset_button is None:
            last: QWidget = self.editor
            widget = self.nextInFocusChain()
            while widget is not None and self.isAncestorOf(widget):
                if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.focusProxy() is None:
                    last = widget
                widget = widget.nextInFocusChain()
            button = self._reset_button = QToolButton(self)
            self._theme.bind_icon(button, "reset", "muted")
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            policy = button.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            button.setSizePolicy(policy)
            button.clicked.connect(self.reset)
            button.hide()
            self._reserve(QSize(0, 0))
            self._grid.addWidget(button, 0, 2, Qt.AlignmentFlag.AlignTop)
            self.setTabOrder(last, button)  # after what has the focus in this row, not at the end of the form
            self._name_reset_button()
        return self._reset_button

    @property
    def error_label(self) -> QLabel:
        """The error sentence below the field; created for the first one, which most fields never have."""
        if self._error_label is None:
            label = self._error_label = QLabel(self)
            label.setProperty("tone", "bad")
            label.setWordWrap(True)
            label.setFont(self._theme.font(FontRole.CAPTION))
            label.hide()
            self._grid.addWidget(label, 1, 1, 1, 2)
        return self._error_label

    @property
    def error(self) -> str:
        """The error sentence, empty if there is none."""
        return self._error_label.text() if self._error_label is not None else ""

    @property
    def whole_line(self) -> bool:
        """Whether the row needs the whole width of the form."""
        return self.editor.wide or self.spec.kind in (FieldKind.TABLE, FieldKind.LIST)

    @property
    def changed(self) -> bool:
        """Whether something other than the value of the preset, or the default, is entered."""
        value, base = self.value(), self._base
        return bool(value != base) and not (value == "" and base is None)

    def set_base(self, value: Any, *, of_preset: bool) -> None:
        """Let `reset` show `value`: that of the preset, or the parameter's default."""
        self._base, self._base_of_preset = value, of_preset
        if self._reset_button is not None:
            self._name_reset_button()
        self._show_reset()

    def reset(self) -> None:
        """Show the value of the preset, or the parameter's default."""
        self.editor.set_value(self._base)

    def show_error(self, sentence: str) -> None:
        """Show the error sentence below the field; an empty one hides it."""
        if sentence or self._error_label is not None:
            self.error_label.setText(sentence)
            self.error_label.setVisible(bool(sentence))
        target = self.editor.focusProxy()
        if target is not None:
            target.setAccessibleDescription(sentence or self.spec.description)
            if bool(target.property("invalid")) != bool(sentence):
                target.setProperty("invalid", bool(sentence))
                target.style().unpolish(target)
                target.style().polish(target)

    def _on_edited(self) -> None:
        self._show_reset()
        self.edited.emit()

    def _show_reset(self) -> None:
        shown = self.changed and self.editor.can_show(self._base)
        if shown or self._reset_button is not None:
            self.reset_button.setVisible(shown)

    def _name_reset_button(self) -> None:
        preset = self._base_of_preset
        name = self.tr("Reset to the preset: {title}") if preset else self.tr("Reset to default: {title}")
        tip = self.tr("Back to the preset: {value}") if preset else self.tr("Back to the default: {value}")
        self.reset_button.setAccessibleName(name.format(title=self.spec.title))
        self.reset_button.setToolTip(tip.format(value=_shown(self.spec, self._base)))

    def _reserve(self, size: QSize) -> None:
        """Reserve the place of a reset button of this size, so that the editor does not move when it is created."""
        spacing = self._grid.horizontalSpacing() if size.width() else 0
        self._grid.setColumnMinimumWidth(2, spacing + size.width())
        self._grid.setRowMinimumHeight(0, size.height())


@functools.cache
def _reset_button_size() -> QSize:
    """The size of each reset button: neither the theme nor the size of texts changes it."""
    button = QToolButton()
    button.ensurePolished()
    return button.sizeHint()


def tooltip(spec: FieldSpec) -> str:
    """The parameter's description, with its bounds."""
    unit = f" {spec.unit}" if spec.unit and spec.bounds else ""
    return "\n".join(part for part in (spec.description, f"{spec.bounds}{unit}") if part)


def _shown(spec: FieldSpec, value: Any) -> str:
    for choice, label in spec.choices:
        if choice == value:
            return label
    return "—" if value in (None, "", []) else f"{value} {spec.unit}".strip()
