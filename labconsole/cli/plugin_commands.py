"""The commands that plugins add: to a group that the console has, or to one of their own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from labconsole.cli.command import Command
from labconsole.cli.group import AddCommand, add_group
from labconsole.plugin import Plugin, Plugins, load_dotted

if TYPE_CHECKING:
    from labconsole.cli.group import Commands


def add_plugin_commands(commands: Commands, own: Mapping[str, AddCommand], given: str) -> None:
    """Add the plugins' groups to `commands`, and what they bring for the group `given`; `own` are the console's groups.

    What cannot be loaded is named, and takes nothing else down.
    """
    found = Plugins.discover().found
    groups = dict(own)
    for plugin in found:
        for group, help in plugin.command_groups.items():
            if group in commands.choices:
                _complain(f"the group {group} of {plugin.title} is broken (there is a command of that name)")
            else:
                groups[group] = add_group(commands, group, help)
    if given in groups:
        for plugin in found:
            _add_commands(plugin, given, groups[given])


def _add_commands(plugin: Plugin, group: str, add: AddCommand) -> None:
    for name, dotted in plugin.commands.items():
        named_group, _, named = name.partition(" ")
        if named_group != group:
            continue
        try:
            command: Command = load_dotted(dotted)
            parser = add(named, help=command.help, description=f"{command.help[0].upper()}{command.help[1:]}.")
            command.add_arguments(parser)
        except Exception as error:  # noqa: BLE001 - foreign code: anything may come
            _complain(f"the command {name} of {plugin.title} is broken ({error})")
            continue
        parser.set_defaults(command=command.run)


def _complain(what: str) -> None:
    print(f"labconsole: {what}.", file=sys.stderr)
