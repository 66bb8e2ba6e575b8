"""A command of the terminal that a plugin brings, by its manifest's field `commands`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from labconsole.cli.exit_codes import FINISHED


class Command(NamedTuple):  # every call of the terminal imports this: `dataclasses` takes 10 ms more
    """A command: its line in the help, its arguments, and its function.

    Define it in a module that imports little: the help of its group loads that. `run` is loaded when it is called.
    """

    help: str
    """One line, without a full stop."""
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: str
    """Function (`package.module:function`) that takes the arguments and returns an exit code; raises UserError."""


if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # what `add_subparsers` returns has no public name

AddCommand = Callable[..., argparse.ArgumentParser]
"""Adds a command to a group: name, `help` and further keywords of a parser; returns the command's parser."""


def add_group(commands: Commands, name: str, help: str) -> AddCommand:
    """Add the group `name` to `commands`, and return the function that adds commands to it."""
    parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
    parser.set_defaults(command=f"{__name__}:show_help", group=parser)
    return parser.add_subparsers(metavar="COMMAND").add_parser


def show_help(arguments: argparse.Namespace) -> int:
    """Print the help of the group that was called without a command."""
    arguments.group.print_help()
    return FINISHED
