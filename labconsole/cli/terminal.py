"""Standard output and error for people: as wide as the terminal, and as wide as needed in a pipe or a file."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from labconsole.safe_text import shown_lines

_UNBOUNDED = 10_000


def output(*, stderr: bool = False, bounded: bool = False) -> Console:
    """The console on standard output or error: no markup, control characters spelt out; nothing is cut in a pipe.

    One that is `bounded` is there, too, as wide as the terminal from which the command was started (`COLUMNS`), or as
    80 characters: for tables that are broken into parts which fit.
    """
    console = _SafeConsole(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal and not bounded:
        console.width = _UNBOUNDED
    return console


class _SafeConsole(Console):
    """Escapes control sequences in all texts; its own colours and cursor movements stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments of `renderable`, of which each text is safe to show."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else shown_lines(text), style, control)
