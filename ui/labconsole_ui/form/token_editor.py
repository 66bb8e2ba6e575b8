"""The editor of a field that names a PKCS#11 token."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtWidgets import QWidget

from labconsole.errors import UserError
from labconsole.model.field_spec import FieldSpec
from labconsole.security.token.configuration import LAB
from labconsole.security.token.named_tokens import load_configurations
from labconsole_ui.form.editors import ChoiceEditor


class TokenEditor(ChoiceEditor):
    """A list of the configured tokens; a name that is not configured yet may be typed."""

    def __init__(self, spec: FieldSpec, parent: QWidget, none: str = "") -> None:
        """`none` is shown while the field is empty."""
        super().__init__(replace(spec, choices=tuple((name, name) for name in _token_names())), parent)
        self.combo.setEditable(True)
        line = self.combo.lineEdit()
        if line is not None:
            line.setPlaceholderText(none)
        self.combo.editTextChanged.connect(lambda _text: self.edited.emit())

    def value(self) -> str:
        return self.combo.currentText().strip()

    def set_value(self, value: object) -> None:
        self.combo.setEditText(str(value))


def _token_names() -> list[str]:
    """The built-in tokens and the operator's; a faulty list is reported when a token is used."""
    try:
        return [LAB, f"{LAB}-2", *load_configurations()]
    except UserError:
        return [LAB, f"{LAB}-2"]
