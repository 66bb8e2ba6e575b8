"""Editors of the page's forms: a choice of known names, and a fixed value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtWidgets import QWidget

from labconsole.model.field_spec import FieldSpec
from labconsole_ui.form.editors import ChoiceEditor, Editor
from labconsole_ui.form.field_row import EditorFactory
from labconsole_ui.widgets.labels import plain_label

_WHOLE_LINE = 20
"""Stretch of the editor, compared with what follows on the line."""


class FixedEditor(Editor):
    """Shows a fixed value as text."""

    def __init__(self, spec: FieldSpec, parent: QWidget, value: Any, words: str) -> None:
        super().__init__(spec, parent)
        self._value = value
        label = plain_label(words, self)
        label.setWordWrap(True)
        self.adopt(label, stretch=_WHOLE_LINE)

    def value(self) -> Any:
        return self._value

    def set_value(self, value: Any) -> None:
        """Ignored: the value is fixed."""

    def can_show(self, value: Any) -> bool:
        return bool(value == self._value)


def fixed(value: Any, words: str) -> EditorFactory:
    """An editor that shows `words` for the fixed `value`."""
    return lambda spec, parent: FixedEditor(spec, parent, value, words)


def one_of(choices: Sequence[tuple[Any, str]]) -> EditorFactory:
    """An editor that offers these values, each with its label."""
    return lambda spec, parent: ChoiceEditor(replace(spec, choices=tuple(choices)), parent)


def one_name_of(names: Sequence[str]) -> EditorFactory:
    """An editor that offers these names."""
    return one_of([(name, name) for name in names])
