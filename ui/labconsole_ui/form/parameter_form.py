"""A form made from a pydantic model: groups, dependent fields, validation errors at each field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from PySide6.QtCore import QCoreApplication, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget

from labconsole.analysis.number_format import format_number
from labconsole.model.field_spec import FieldKind, FieldSpec, fields_of
from labconsole.model.trial import Parameters
from labconsole_ui.form.editors import Editor
from labconsole_ui.form.field_row import EditorFactory, FieldRow
from labconsole_ui.form.form_section import FormSection
from labconsole_ui.theme.theme import Theme

DEBOUNCE_MS = 150
OPEN_SECTIONS = 2
ROWS_IN_A_PIECE, WIDGETS_IN_A_PIECE = 3, 30
"""Rows built in one turn of the event loop, where the form is built in pieces; fewer where they have many widgets."""
TWO_COLUMNS_FROM = 860
_NAME = re.compile(r"`(\w+)`")
"""A parameter as a sentence of the model names it."""


class ParameterForm(QWidget):
    """Edits the parameters of one model. `validated` is emitted after each validation, also with errors."""

    validated = Signal()
    field_focused = Signal(object)

    def __init__(
        self,
        model: type[Parameters],
        theme: Theme,
        editors: Mapping[str, EditorFactory] | None = None,
        parent: QWidget | None = None,
        *,
        in_pieces: bool = False,
    ) -> None:
        """`editors` replaces editors of the fields it names; with `in_pieces` the caller runs `pieces`."""
        super().__init__(parent)
        self._editors = editors or {}
        self._model = model
        self._theme = theme
        self._rows: dict[tuple[str, ...], FieldRow] = {}
        self._first_values: dict[tuple[str, ...], Any] = {}
        self._complete = False
        self.sections: list[FormSection] = []
        self._parameters: Parameters | None = None
        self._problems: list[str] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(8)
        self._debounce = QTimer(self)
        self._debounce.setSingleShot(True)
        self._debounce.setInterval(DEBOUNCE_MS)
        self._debounce.timeout.connect(self.validate)
        self._named: list[str] = []
        self.model_error = QLabel()
        self.model_error.setProperty("tone", "bad")
        self.model_error.setWordWrap(True)
        self.model_error.hide()
        self._column.addWidget(self.model_error)
        # Not a filter of events in each row: it would be called for all events of all widgets of the form.
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._focus_changed)
        if not in_pieces:
            for _piece in self.pieces({}, None):
                pass

    def pieces(self, values: Mapping[str, Any], base: Mapping[str, Any] | None) -> Iterator[None]:
        """Build the form, some rows at a time: with `values`, as `set_values`, and `base`, as `set_base`.

        Each row has its value, and is shown or hidden, as soon as it is built. The form is validated at the end.
        """
        groups = _grouped(fields_of(self._model))
        for spec, path in (entry for entries in groups.values() for entry in entries):
            known, value = _lookup(values, path)
            self._first_values[path] = value if known else spec.default
        yield
        for title, entries in groups.items():
            yield from self._add_section(title, entries, base)
        self._first_values.clear()
        self._complete = True
        self.validate()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Two columns where there is room."""
        super().resizeEvent(event)
        for section in self.sections:
            section.set_columns(self._columns)

    @property
    def _columns(self) -> int:
        return 2 if self.width() >= TWO_COLUMNS_FROM else 1

    @property
    def parameters(self) -> Parameters | None:
        """The parameters as entered, or None while there are errors."""
        return self._parameters

    @property
    def pending(self) -> bool:
        """Whether something was entered since the last validation, which follows in a moment."""
        return self._debounce.isActive()

    @property
    def problems(self) -> tuple[str, ...]:
        """The errors, each as `Title: sentence`."""
        return tuple(self._problems)

    @property
    def host_names(self) -> frozenset[str]:
        """Names of the parameters that determine the hosts: those of hosts, and those that these depend on."""
        hosts = [row.spec for row in self._rows.values() if row.spec.kind is FieldKind.HOST]
        return frozenset(name for spec in hosts for name in (spec.name, *spec.shown_if))

    def values(self) -> dict[str, Any]:
        """Everything entered, as plain JSON, right or wrong."""
        return _nested({path: row.value() for path, row in self._rows.items()})

    def set_values(self, values: Mapping[str, Any]) -> None:
        """Show `values`; fields that they omit are reset to defaults, unknown keys are ignored."""
        for path, row in self._rows.items():
            known, value = _lookup(values, path)
            row.set_value(value if known else row.spec.default)
        self.validate()

    def set_base(self, values: Mapping[str, Any] | None) -> None:
        """Reset fields to `values` (of a preset) or defaults from now on; entered values stay."""
        for path, row in self._rows.items():
            known, value = _lookup(values or {}, path)
            row.set_base(value if known else row.spec.default, of_preset=values is not None)
        for section in self.sections:
            section.update_state()

    def reset(self) -> None:
        """Show the defaults of all fields."""
        self.set_values({})

    def row(self, *path: str) -> FieldRow:
        """The line of the parameter at `path`. Raises KeyError."""
        return self._rows[path]

    def show_first_problem(self) -> None:
        """Focus the first field with an error, or else the first that an error of the whole form names."""
        wrong = [row for row in self._rows.values() if row.error]
        named = [self._rows[(name,)] for name in self._named if (name,) in self._rows]
        row = next((row for row in wrong + named if not row.isHidden()), None)
        if row is None:
            return
        for section in self.sections:
            if row in section.rows:
                section.unfold()
        row.editor.setFocus()

    def validate(self) -> None:
        """Validate what is entered by the model, show its sentences, and show or hide dependent fields.

        A form whose rows are not all built is not validated.
        """
        self._debounce.stop()
        if not self._complete:
            return
        self._show_dependent()
        values = self.values()
        errors = self._errors(values)
        hidden = [path for path in errors if path in self._rows and self._rows[path].isHidden()]
        if hidden:
            # A hidden field does not matter with these values: its default replaces a value with an error.
            for path in hidden:
                _remove(values, path)
            errors = self._errors(values)
        self._problems = []
        for section in self.sections:
            if any(row.path in errors for row in section.rows):
                section.unfold()
        for path, row in self._rows.items():
            text = self._in_titles(errors.pop(path, ""))
            row.show_error(text)
            if text:
                self._problems.append(f"{row.spec.title}: {text}")
        general = " ".join(errors.values())
        self._named = _NAME.findall(general)
        self._problems += [self._in_titles(text) for text in errors.values()]
        self.model_error.setText(self._in_titles(general))
        self.model_error.setVisible(bool(general))
        self.validated.emit()

    def _errors(self, values: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
        """Sentences by the row's path; those of the whole model under a path that has no row."""
        try:
            self._parameters = self._model.model_validate(values)
        except ValidationError as error:
            self._parameters = None
            found: dict[tuple[str, ...], str] = {}
            for entry in error.errors():
                path, place = self._row_path(entry["loc"])
                unit = self._rows[path].spec.unit if path in self._rows else ""
                text = place + sentence(entry, unit)
                found[path] = f"{found[path]} {text}" if path in found else text
            return found
        return {}

    def _in_titles(self, text: str) -> str:
        """The sentence with the fields' titles instead of the names that profiles use."""
        titles = {path[0]: row.spec.title for path, row in self._rows.items() if len(path) == 1}
        return _NAME.sub(lambda name: self.tr("“{0}”").format(titles.get(name[1], name[1])), text)

    def _row_path(self, location: tuple[int | str, ...]) -> tuple[tuple[str, ...], str]:
        """The row that an error's location belongs to, and the place within it (`Row 2, Port: `)."""
        names = tuple(str(part) for part in location)
        for length in range(len(names), 0, -1):
            path = names[:length]
            if path in self._rows:
                rest = [part for part in location[length:] if isinstance(part, int)]
                return path, self.tr("Row {number}: ").format(number=rest[0] + 1) if rest else ""
        return names, ""

    def _focus_changed(self, _before: QWidget | None, now: QWidget | None) -> None:
        """Report the field whose editor has got the focus."""
        widget = now
        while widget is not None and not isinstance(widget, Editor):
            widget = widget.parentWidget()
        row = widget.parentWidget() if widget is not None else None
        if isinstance(row, FieldRow) and self._rows.get(row.path) is row:
            self.field_focused.emit(row.spec)

    def _show_dependent(self) -> None:
        for row in self._rows.values():
            row.setVisible(self._is_relevant(row))
        for section in self.sections:
            section.update_state()

    def _is_relevant(self, row: FieldRow) -> bool:
        wanted = row.spec.shown_if
        return all(self._sibling(row.path, name) in values for name, values in wanted.items())

    def _sibling(self, path: tuple[str, ...], name: str) -> Any:
        for prefix in (path[:-1], ()):
            other = (*prefix, name)
            row = self._rows.get(other)
            if row is not None:
                return row.value()
            if other in self._first_values:
                return self._first_values[other]
        return None

    def _add_section(
        self, title: str, entries: list[tuple[FieldSpec, tuple[str, ...]]], base: Mapping[str, Any] | None
    ) -> Iterator[None]:
        # From the top down: a widget that gets its parent late is styled again with all its children.
        is_more = any(row.spec.group == "" for shown in self.sections[:1] for row in shown.rows)
        folded = is_more or len(self.sections) >= OPEN_SECTIONS
        section = FormSection(title, self._theme, self, folded=folded)
        section.set_columns(self._columns)
        self.sections.append(section)
        rows = widgets = 0
        for number, (spec, path) in enumerate(entries, 1):
            row = FieldRow(spec, path, self._theme, section.body, self._editors.get(spec.name))
            known, value = _lookup(base or {}, path)
            row.start(self._first_values[path], base=value if known else spec.default, of_preset=base is not None)
            row.edited.connect(self._debounce.start)
            self._rows[path] = row
            matters = self._is_relevant(row)
            if not matters:
                row.hide()
            section.add_row(row)
            row.setVisible(matters)
            if number == 1:
                self._column.addWidget(section)
            rows, widgets = rows + 1, widgets + len(row.findChildren(QWidget))
            if rows == ROWS_IN_A_PIECE or widgets >= WIDGETS_IN_A_PIECE or number == len(entries):
                section.update_state()
                yield
                rows = widgets = 0


def _grouped(specs: tuple[FieldSpec, ...]) -> dict[str, list[tuple[FieldSpec, tuple[str, ...]]]]:
    """The fields with their paths by the title of their section; those without a group come first."""
    groups: dict[str, list[tuple[FieldSpec, tuple[str, ...]]]] = {}
    if any(not spec.group and spec.kind is not FieldKind.GROUP for spec in specs):
        groups[""] = []
    for spec in specs:
        if spec.kind is FieldKind.GROUP:
            entries = groups.setdefault(spec.title, [])
            entries += [(inner, (spec.name, inner.name)) for inner in spec.fields]
        else:
            groups.setdefault(spec.group, []).append((spec, (spec.name,)))
    return groups


def _nested(flat: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for path, value in flat.items():
        target = values
        for name in path[:-1]:
            target = target.setdefault(name, {})
        target[path[-1]] = value
    return values


def _lookup(values: Mapping[str, Any], path: tuple[str, ...]) -> tuple[bool, Any]:
    value: Any = values
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return False, None
        value = value[name]
    return True, value


def _remove(values: dict[str, Any], path: tuple[str, ...]) -> None:
    for name in path[:-1]:
        values = values[name]
    values.pop(path[-1], None)


def sentence(error: Mapping[str, Any], unit: str) -> str:
    """The sentence for an entry of `pydantic.ValidationError.errors()`; `unit` follows its bound."""
    context: Mapping[str, Any] = error.get("ctx", {})
    template = _templates().get(error["type"])
    if template is None:
        return _validator_message(str(error["msg"]))
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


def _validator_message(message: str) -> str:
    """A validator's own sentence, without pydantic's prefix."""
    text = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
