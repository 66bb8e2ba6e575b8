"""The commands of operations, and those that plugins add: in a group of the console, of their own, or in none."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from labconsole.cli.command import AddCommand, Command, add_group
from labconsole.model.plugin import Plugin, Plugins, load_dotted

if TYPE_CHECKING:
    from labconsole.cli.command import Commands
    from labconsole.model.operation import Operation


def add_plugin_commands(commands: Commands, own: Mapping[str, AddCommand], given: Sequence[str]) -> None:
    """Add the plugins' groups to `commands`; `own` are the console's groups.

    Of the group that the arguments `given` name its commands are added, too, and of the command its arguments. One that
    cannot be loaded is named, and the others are still added.
    """
    group, name = (*given[:2], "", "")[:2]
    providers = Plugins.discover().providers
    groups = dict(own)
    for plugin in providers:
        for brought, help in plugin.command_groups.items():
            if brought in commands.choices:
                _complain(f"the group {brought} of {plugin.title} is broken (there is a command of that name)")
            else:
                groups[brought] = add_group(commands, brought, help)
    for plugin in providers:
        _add_commands(plugin, "", commands.add_parser, group)
        if group in groups:
            _add_commands(plugin, group, groups[group], name)


def _add_commands(plugin: Plugin, group: str, add: AddCommand, given: str) -> None:
    """Add the commands of the group `group` ("": those without one); the arguments of the command `given` alone, since
    they import much."""
    for words, dotted in plugin.commands.items():
        named_group, _, named = words.rpartition(" ")
        if named_group != group:
            continue
        try:
            command: Command = load_dotted(dotted)
            parser = add(named, help=command.help, description=f"{command.help[0].upper()}{command.help[1:]}.")
            if named == given:
                command.add_arguments(parser)
        except Exception as error:  # noqa: BLE001 - foreign code: anything may be raised
            _complain(f"the command {words} of {plugin.title} is broken ({error})")
            continue
        parser.set_defaults(command=command.run)
    for name, entry in plugin.operations.items():
        named_group, _, named = entry.command.rpartition(" ")
        if not entry.command or named_group != group:
            continue
        parser = add(named, help=entry.help)
        parser.set_defaults(command="labconsole.cli.operation_command:command", operation=name)
        if named == given:
            try:
                _describe(parser, load_dotted(entry.target))
            except Exception as error:  # noqa: BLE001 - foreign code: anything may be raised
                _complain(f"the command {entry.command} of {plugin.title} is broken ({error})")


def _describe(parser: argparse.ArgumentParser, operation: type[Operation[Any]]) -> None:
    """Add description and arguments of the operation to the parser of its command."""
    from labconsole.cli.operation_arguments import add_arguments  # lazy: imports pydantic

    parser.description = operation.description
    add_arguments(parser, operation.parameters)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _complain(what: str) -> None:
    print(f"labconsole: {what}.", file=sys.stderr)
