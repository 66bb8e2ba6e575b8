"""Each operation has the same parameters and defaults on the terminal and in the window's dialog."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from labconsole.cli.operation_arguments import add_arguments, parameters_of
from labconsole.model.operation import Operation
from labconsole.model.plugin import Plugins
from labconsole_ui.form.parameter_form import ParameterForm
from labconsole_ui.theme.theme import Theme

PLUGINS = Plugins.discover()
FILLED_IN: dict[type, str] = {str: "State A", int: "1"}
"""Values for parameters without default, on the terminal and in the form."""


def _required(operation: Operation[Any]) -> dict[str, str]:
    """A value for each parameter that must be given, as text."""
    needed = [
        (name, info)
        for name, info in operation.parameters.model_fields.items()
        if info.is_required() or (isinstance(info.json_schema_extra, dict) and info.json_schema_extra.get("required"))
    ]
    return {name: FILLED_IN.get(info.annotation or str, "file.pem") for name, info in needed}


@pytest.mark.parametrize("name", PLUGINS.operations())
def test_terminal_and_window_have_the_same_parameters(qtbot: QtBot, theme: Theme, name: str) -> None:
    operation = PLUGINS.operation(name)
    required = _required(operation)
    form = ParameterForm(operation.parameters, theme)
    qtbot.addWidget(form)
    form.set_values(required)

    parser = argparse.ArgumentParser()
    add_arguments(parser, operation.parameters)
    typed: list[str] = []
    for action in parser._actions:
        field = action.dest.removeprefix("parameter ")
        if field in required:
            typed += [*action.option_strings[:1], required[field]]
    try:
        by_terminal: object = parameters_of(parser.parse_args(typed), operation.parameters)
    except ValueError as error:
        by_terminal = None
        assert form.problems, f"only the terminal refuses it: {error}"
    assert form.parameters == by_terminal, form.problems
