"""Each operation has the same parameters, defaults and refusals on the terminal and in the window's dialog."""

from __future__ import annotations

import argparse
from enum import Enum
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from labconsole.cli.operation_arguments import add_arguments, parameters_of
from labconsole.model.field_spec import FieldSpec, fields_of
from labconsole.model.operation import Operation
from labconsole.model.plugin import Plugins
from labconsole_ui.form.parameter_form import ParameterForm
from labconsole_ui.theme.theme import Theme

PLUGINS = Plugins.discover()
FILLED_IN: dict[Any, str] = {str: "State A", int: "1", float: "1", tuple[int, ...]: "1", tuple[str, ...]: "A"}
"""Values for parameters without default, on the terminal and in the form."""


def _required(operation: Operation[Any]) -> dict[str, str]:
    """A value for each parameter that must be given, as text."""
    needed = [
        (name, info)
        for name, info in operation.parameters.model_fields.items()
        if info.is_required() or (isinstance(info.json_schema_extra, dict) and info.json_schema_extra.get("required"))
    ]
    return {name: _filled_in(info.annotation or str) for name, info in needed}


def _filled_in(annotation: Any) -> str:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return str(next(iter(annotation)).value)
    return FILLED_IN.get(annotation, "file.pem")


def _typed(operation: Operation[Any], values: dict[str, str]) -> object:
    """The parameters of a command line with these values. Raises ValueError."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser, operation.parameters)
    options: list[str] = []
    positional: list[str] = []
    for action in parser._actions:
        value = values.get(action.dest.removeprefix("parameter "))
        if value is not None:
            options += [f"{action.option_strings[0]}={value}"] if action.option_strings else []
            positional += [] if action.option_strings else [value]
    return parameters_of(
        parser.parse_args([*options, *(["--", *positional] if positional else [])]), operation.parameters
    )


def _beyond_bounds(operation: Operation[Any]) -> list[tuple[FieldSpec, float]]:
    """Parameters with a value beyond each of their bounds."""
    specs = fields_of(operation.parameters)
    below = [(spec, spec.minimum - 1) for spec in specs if spec.minimum is not None]
    return below + [(spec, spec.maximum + 1) for spec in specs if spec.maximum is not None]


WITH_BOUNDS = [name for name in PLUGINS.operations() if _beyond_bounds(PLUGINS.operation(name))]


@pytest.mark.parametrize("name", PLUGINS.operations())
def test_terminal_and_window_have_the_same_parameters(qtbot: QtBot, theme: Theme, name: str) -> None:
    operation = PLUGINS.operation(name)
    required = _required(operation)
    form = ParameterForm(operation.parameters, theme)
    qtbot.addWidget(form)
    form.set_values(required)

    try:
        by_terminal: object = _typed(operation, required)
    except ValueError as error:
        by_terminal = None
        assert form.problems, f"only the terminal refuses it: {error}"
    assert form.parameters == by_terminal, form.problems


@pytest.mark.parametrize("name", WITH_BOUNDS)
def test_terminal_and_window_refuse_the_same_numbers(qtbot: QtBot, theme: Theme, name: str) -> None:
    """In one form, which has the values of its first state again before each number."""
    operation = PLUGINS.operation(name)
    form = ParameterForm(operation.parameters, theme)
    qtbot.addWidget(form)
    values = {**form.values(), **_required(operation)}
    for spec, value in _beyond_bounds(operation):
        needed = {name: when[0] for name, when in spec.shown_if.items()}
        form.set_values({**values, **needed})
        assert not any(problem.startswith(f"{spec.title}: ") for problem in form.problems), form.problems
        form.set_values({**values, **needed, spec.name: value})
        assert any(problem.startswith(f"{spec.title}: ") for problem in form.problems), (spec.name, value)
        with pytest.raises(ValueError, match=r"input should be (greater|less) than"):
            _typed(operation, {**_required(operation), spec.name: f"{value:.20g}"})
