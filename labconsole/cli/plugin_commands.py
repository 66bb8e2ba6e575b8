"""The commands that plugins add to a group of commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from labconsole.cli.command import Command
from labconsole.plugin import Plugins, load_dotted


def add_plugin_commands(group: str, add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the plugins' commands of `group`; one that cannot be loaded is named and takes nothing else down."""
    for plugin in Plugins.discover().found:
        for name, dotted in plugin.commands.items():
            named_group, _, named = name.partition(" ")
            if named_group != group:
                continue
            try:
                command: Command = load_dotted(dotted)
                parser = add(named, help=command.help, description=f"{command.help[0].upper()}{command.help[1:]}.")
                command.add_arguments(parser)
            except Exception as error:  # noqa: BLE001 - foreign code: anything may come
                print(f"labconsole: the command {name} of {plugin.title} is broken ({error}).", file=sys.stderr)
                continue
            parser.set_defaults(command=command.run)
