"""Entry of `labconsole`: runs the command that the arguments name, and prints an error as one sentence."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from labconsole.cli.exit_codes import BAD_USAGE, CANCELLED, FAILED
from labconsole.cli.interrupts import exit_when_interrupted, raise_when_interrupted

if TYPE_CHECKING:
    import argparse


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code (`labconsole.cli.exit_codes`); signals are those of its process."""
    process = argv is None
    given = sys.argv[1:] if argv is None else argv
    if process:
        os.umask(0o077)  # new files are private to the operator, also in directories that others may read
        exit_when_interrupted()
    # Imported only now, when an interrupt may come, and only what this command needs: the help comes at once.
    import importlib

    from labconsole.cli.arguments import command_parser

    arguments = command_parser(given).parse_args(given)
    module, _, function = arguments.command.partition(":")
    command = getattr(importlib.import_module(module), function)
    try:
        if process:
            raise_when_interrupted()
        code = _exit_code_of(command, arguments)
        if process:
            exit_when_interrupted()
    except KeyboardInterrupt:
        if process:
            exit_when_interrupted()
        return CANCELLED
    return code


def _exit_code_of(command: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Run a command; an error is a sentence on standard error. Raises KeyboardInterrupt."""
    from labconsole.errors import UserError
    from labconsole.profiles.profile_file import ProfileError
    from labconsole.safe_text import shown_lines

    try:
        return command(arguments)
    except ProfileError as error:
        print(shown_lines(f"labconsole: {error}"), file=sys.stderr)
        return BAD_USAGE
    except UserError as error:
        print(shown_lines(f"labconsole: {error}"), file=sys.stderr)
        return FAILED
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # raised on any access to such a path, before it is known to be missing
            print(shown_lines(f"labconsole: The file name {error.filename} is too long: shorten it."), file=sys.stderr)
            return FAILED
        if not isinstance(error, BrokenPipeError):
            raise
        sys.stderr.close()  # the reader of our output has exited; the interpreter must not complain about it at exit
        return FAILED


if __name__ == "__main__":
    raise SystemExit(main())
