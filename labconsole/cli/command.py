"""A command of the terminal that a plugin brings, by its manifest's field `commands`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """What a command is called in the help, its arguments, and what it runs.

    It is made in a module that imports little: the help of its group loads that. `run` is loaded when it is called.
    """

    help: str
    """One line, without a full stop."""
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: str
    """Function (`package.module:function`) that takes the arguments and returns an exit code; raises UserError."""
