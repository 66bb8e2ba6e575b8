"""What the model finds wrong, said to the operator: one sentence at the field that says what to enter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.number_format import format_number


def sentence(error: Mapping[str, Any], unit: str) -> str:
    """The sentence for one entry of `pydantic.ValidationError.errors()`; `unit` follows the bound it names."""
    context: Mapping[str, Any] = error.get("ctx", {})
    template = _templates().get(error["type"])
    if template is None:
        return _own_words(str(error["msg"]))
    figures = {key: _with_unit(value, unit) for key, value in context.items()}
    return template.format_map(figures)


def _templates() -> dict[str, str]:
    tr = QCoreApplication.translate
    return {
        "missing": tr("FieldError", "A value is needed here."),
        "int_type": tr("FieldError", "Enter a whole number."),
        "int_parsing": tr("FieldError", "Enter a whole number."),
        "int_from_float": tr("FieldError", "Enter a whole number."),
        "float_type": tr("FieldError", "Enter a number, with a point before the decimals."),
        "float_parsing": tr("FieldError", "Enter a number, with a point before the decimals."),
        "string_type": tr("FieldError", "A value is needed here."),
        "greater_than": tr("FieldError", "Enter more than {gt}."),
        "greater_than_equal": tr("FieldError", "Enter at least {ge}."),
        "less_than": tr("FieldError", "Enter less than {lt}."),
        "less_than_equal": tr("FieldError", "Enter at most {le}."),
        "string_too_short": tr("FieldError", "A value is needed here."),
        "string_pattern_mismatch": tr("FieldError", "This value does not have the form that is expected here."),
        "path_type": tr("FieldError", "Choose a file."),
        "path_not_file": tr("FieldError", "There is no such file."),
    }


def _with_unit(value: Any, unit: str) -> str:
    if not isinstance(value, int | float):
        return str(value)
    figure = format_number(value)
    return f"{figure} {unit}" if unit else figure


def _own_words(message: str) -> str:
    """A validator's own sentence, without pydantic's prefix."""
    text = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
