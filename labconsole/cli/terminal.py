"""Standard output and error for people: as wide as the terminal, and as wide as needed in a pipe or a file."""

from __future__ import annotations

from rich.console import Console

_UNBOUNDED = 10_000


def output(*, stderr: bool = False, bounded: bool = False) -> Console:
    """The console on standard output or error: texts stand as they are; in a pipe or a file nothing is cut.

    One that is `bounded` is there, too, as wide as the terminal from which the command was started (`COLUMNS`), or as
    80 characters: for tables that are broken into parts which fit.
    """
    console = Console(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal and not bounded:
        console.width = _UNBOUNDED
    return console
