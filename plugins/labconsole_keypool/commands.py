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


def _timing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the profile, as scenarios and the planner name it")
    parser.add_argument("run", type=int, nargs="+", metavar="RUN", help="numbers of runs of keypool.step-times")
    parser.add_argument("--campaign", action="store_true", help="the whole campaign that the runs belong to")
    parser.add_argument("--title", default="", metavar="TEXT", help="what the device is called")
    parser.add_argument("--ram", type=_keys, metavar="N", help="key pairs that its RAM holds: runs do not measure it")
    parser.add_argument("--store", type=_keys, metavar="N", help="key pairs that its store holds")
    parser.add_argument("--replace", action="store_true", help="replace a profile of that name")
    parser.add_argument("--db", type=Path, metavar="FILE", help="run database (default: in your data directory)")


TIMING = Command(
    help="make a timing profile of your own device from its runs of keypool.step-times",
    add_arguments=_timing,
    run="labconsole_keypool.measuring.timing_command:make_timing",
)


def _keys(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of key pairs from 1 on, not {text!r}")
    return int(text)
