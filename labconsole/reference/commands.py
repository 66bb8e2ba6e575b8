"""The reference pages of the terminal's commands, from the parsers themselves, and of all operations."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from labconsole.cli.arguments import command_parser
from labconsole.model.operation import Operation
from labconsole.model.plugin import OperationEntry, Plugin, load_dotted
from labconsole.reference.markdown import code, page, sentence, table
from labconsole.reference.parameters import parameter_tables

_PARAMETER = "parameter "
"""Before the name of a parameter in the `dest` of an argument that is made from a model."""
Parsers = Mapping[str, argparse.ArgumentParser]


def command_pages(plugins: tuple[Plugin, ...]) -> dict[str, str]:
    """Page -> text: the commands without a group, and a page for each group of commands."""
    groups: dict[str, list[str]] = {}
    top = _commands_of(command_parser(["-"]))
    helps = _helps(command_parser(["-"]))
    for name in top:
        inner = _commands_of(_commands_of(command_parser([name]))[name])
        if inner:
            groups[name] = list(inner)
    operations = {entry.command: name for plugin in plugins for name, entry in plugin.operations.items()}
    single = [name for name in top if name not in groups]
    index = [
        (f"[{name}](commands-{name}.md)", f"{len(inner)} commands: {helps[name]}") for name, inner in groups.items()
    ]
    index += [(f"[{name}](#{name})", helps[name]) for name in single]
    pages = {
        "reference/commands.md": page(
            "# Commands",
            "All commands of `labconsole`. [The terminal](terminal.md) has the conventions and the exit codes.",
            table(("Command", "What it does"), index),
            *(part for name in single for part in _command([name], operations)),
        )
    }
    for group, names in groups.items():
        pages[f"reference/commands-{group}.md"] = page(
            f"# Commands: {group}",
            f"`labconsole {group}`: {sentence(helps[group])} Where a parameter is named, `labconsole action NAME --set "
            "PARAMETER=VALUE` sets the same.",
            *(part for name in names for part in _command([group, name], operations)),
        )
    return pages


def _command(words: list[str], operations: Mapping[str, str]) -> Iterator[str]:
    parser = command_parser(words)
    for word in words:
        helps, parser = _helps(parser), _commands_of(parser)[word]
    yield f"## {' '.join(words)}"
    operation = operations.get(" ".join(words))
    named = f" Operation: {code(operation)}." if operation else ""
    yield f"{sentence(parser.description or helps[words[-1]])}{named}"
    yield table(("Argument", "Parameter", "Meaning"), _arguments(parser))


def _arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, str]]:
    formatter = parser._get_formatter()
    for action in (*parser._get_positional_actions(), *parser._get_optional_actions()):
        if action.help == argparse.SUPPRESS or action.dest == "help":
            continue
        parameter = action.dest.removeprefix(_PARAMETER) if action.dest.startswith(_PARAMETER) else ""
        help = formatter._expand_help(action) if action.help else ""
        required = " Required." if action.required and action.option_strings else ""
        yield _spelling(action), code(parameter), f"{sentence(help)}{required}"


def _spelling(action: argparse.Action) -> str:
    value = ""
    if action.nargs != 0:
        value = str(
            action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest.upper())
        )
    if not action.option_strings:
        return code({"?": f"[{value}]", "*": f"[{value} ...]", "+": f"{value} ..."}.get(str(action.nargs), value))
    value = f"[{value}]" if action.nargs == "?" else value
    return ", ".join(code(f"{option} {value}".strip()) for option in action.option_strings)


def _choices(parser: argparse.ArgumentParser) -> argparse._SubParsersAction[argparse.ArgumentParser] | None:
    return next((action for action in parser._actions if isinstance(action, argparse._SubParsersAction)), None)


def _commands_of(parser: argparse.ArgumentParser) -> Parsers:
    found = _choices(parser)
    return {} if found is None else found.choices


def _helps(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The line of each command in the help."""
    found = _choices(parser)
    return {} if found is None else {choice.dest: choice.help or "" for choice in found._choices_actions}


def operations_page(plugins: tuple[Plugin, ...]) -> str:
    """A table of operations for each plugin, and the parameters of those that have no command."""
    return page(
        "# Operations",
        "An operation is work that is not a trial. The window shows it as a dialog; `labconsole action NAME --set "
        "KEY=VALUE` runs it on the terminal, and most have a command of their own, whose page has the parameters.",
        *(part for plugin in plugins if plugin.operations for part in _operations_of(plugin)),
    )


def _operations_of(plugin: Plugin) -> Iterator[str]:
    known = {name: (entry, load_dotted(entry.target)) for name, entry in plugin.operations.items()}
    yield f"## {plugin.title}"
    yield table(
        ("Operation", "Title", "Command", "What it does", "Changes"),
        (_operation_row(name, entry, operation) for name, (entry, operation) in known.items()),
    )
    for name, (entry, operation) in known.items():
        if not entry.command:
            yield f"### {name}"
            yield sentence(operation.description)
            yield parameter_tables(operation.parameters).replace("### ", "#### ")


def _operation_row(name: str, entry: OperationEntry, operation: type[Operation[Any]]) -> tuple[str, ...]:
    group, _, command = entry.command.rpartition(" ")
    page_name = f"commands-{group}.md" if group else "commands.md"
    anchor = entry.command.replace(" ", "-")
    link = f"[{entry.command}]({page_name}#{anchor})" if command else f"[parameters](#{name.replace('.', '')})"
    return code(name), operation.title, link, sentence(operation.description), ", ".join(operation.writes)
