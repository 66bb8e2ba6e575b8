"""`labconsole pki demo`: builds the States, has them exchange, proves all pairs, prints the matrix and the times."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from labconsole.cli.exit_codes import FAILED, FINISHED
from labconsole.cli.terminal import output
from labconsole.errors import UserError
from labconsole.security.x509.handshake import Handshake
from labconsole.security.x509.key_types import TITLES, KeyType
from labconsole_certificates.demo.matrix_table import LEGEND, matrix_table
from labconsole_certificates.demo.play import Played, play

_SHOWN = 5
"""Pairs with a fault that are told of, at most."""


def demo(arguments: argparse.Namespace) -> int:
    """Run the demo. Raises UserError: the folder to keep is there already, or cannot be written."""
    console, count, type = output(), arguments.states, KeyType(arguments.key_type)
    console.print(f"{count} States, {TITLES[type]}, each with a console and a CA of its own.\n")
    pairs = count * (count - 1)
    times = _Times(console)
    with _directory(arguments.keep) as directory:
        played = play(directory, count, type, times)
    _print_matrix(console, played)
    for fault in played.faults[:_SHOWN]:
        console.print(fault, style="red", soft_wrap=True)
    times.print()
    proven = sum(each.ok for each in played.handshakes.values())
    console.print(f"\n{proven} of {pairs} directed pairs proven by a handshake; {times.total_s:.1f} s in all.")
    if arguments.keep is not None:
        console.print(f"Consoles and handed-over files are kept in {arguments.keep}", soft_wrap=True)
    return FAILED if played.faults else FINISHED


class _Times:
    """The phases of the demo, how long each took, and what is being done now."""

    def __init__(self, console: Console) -> None:
        self.total_s = 0.0
        self._console = console
        self._table = Table(box=None, pad_edge=False)
        self._table.add_column("Phase")
        for title in ("Number", "Time", "Each"):
            self._table.add_column(title, justify="right")

    @contextmanager
    def phase(self, title: str, count: int) -> Iterator[None]:
        """What is done `count` times within the context."""
        begun = time.perf_counter()
        with self._console.status(f"{title} ..."):
            yield
        duration_s = time.perf_counter() - begun
        self.total_s += duration_s
        self._table.add_row(title, f"{count:,}", f"{duration_s:.2f} s", f"{duration_s * 1000 / count:.1f} ms")

    def founded(self, name: str) -> None:
        """The terminal shows phases only."""

    def trusted(self, truster: str, trusted: str) -> None:
        """The terminal shows phases only."""

    def proven(self, client: str, server: str, handshake: Handshake) -> None:
        """The terminal shows phases only."""

    def print(self) -> None:
        """Print all phases."""
        self._console.print(self._table)


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    """A temporary folder, removed in the end, or the one to keep. Raises UserError."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="labconsole-pki-demo-") as temporary:
            yield Path(temporary)
        return
    try:
        keep.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        raise UserError(f"{keep} is there already: name a folder that is not there yet.") from error
    except OSError as error:
        raise UserError(f"{keep} cannot be made ({error.strerror or error}): name another folder.") from error
    yield keep


def _print_matrix(console: Console, played: Played) -> None:
    console.print(matrix_table(played.names, played.seen, played.handshakes))
    console.print(LEGEND)
    durations_ms = [each.duration_ns / 1e6 for each in played.handshakes.values() if each.ok]
    if durations_ms:
        console.print(
            f"Handshake: median {median(durations_ms):.1f} ms, longest {max(durations_ms):.1f} ms, measured.\n"
        )
