"""The key pool's commands of the terminal: `labconsole hsm ...`."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole.cli.command import Command


def _verify_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", nargs="?", metavar="NAME|PATH", help="key store (default: that of RUN, or lab)")
    known = parser.add_mutually_exclusive_group()
    known.add_argument("--run", type=int, metavar="RUN", help="hold it against the head that this run has noted")
    known.add_argument("--head", metavar="ROWS:LINK", help="hold it against this head, as this command prints it")
    parser.add_argument("--db", type=Path, metavar="FILE", help="run database (default: in your data directory)")


VERIFY_STORE = Command(
    help="check that a key store is as it was written",
    add_arguments=_verify_store,
    run="labconsole_keypool.store.store_command:verify",
)
