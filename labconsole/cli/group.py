"""A group of commands (`labconsole hsm ...`), which shows its help when it is called alone."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from labconsole.cli.exit_codes import FINISHED

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # what `add_subparsers` returns has no public name

AddCommand = Callable[..., argparse.ArgumentParser]
"""Adds a command to a group: name, `help` and what else a parser takes; returns the command's parser."""


def add_group(commands: Commands, name: str, help: str) -> AddCommand:
    """Add the group `name` to `commands`, and return what adds commands to it."""
    parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
    parser.set_defaults(command=f"{__name__}:show_help", group=parser)
    return parser.add_subparsers(metavar="COMMAND").add_parser


def show_help(arguments: argparse.Namespace) -> int:
    """Print the help of the group that was called without a command."""
    arguments.group.print_help()
    return FINISHED
