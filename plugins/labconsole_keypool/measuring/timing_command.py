"""`labconsole hsm timing`: a timing profile of an own device, from the runs that timed its steps."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole.cli.command import Command
from labconsole.cli.exit_codes import FINISHED
from labconsole.cli.opening import chosen_runs, open_database
from labconsole.cli.terminal import output
from labconsole.store.errors import StoreError
from labconsole.timing_profile import save_timing
from labconsole.trial import TrialError
from labconsole_keypool.measuring.timing_of_runs import KIND, METRICS, timing_of_runs


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="name of the profile, as scenarios and the planner name it")
    parser.add_argument("run", type=int, nargs="+", metavar="RUN", help=f"numbers of runs of {KIND}")
    parser.add_argument("--campaign", action="store_true", help="the whole campaign that the runs belong to")
    parser.add_argument("--title", default="", metavar="TEXT", help="what the device is called")
    parser.add_argument("--ram", type=_keys, metavar="N", help="key pairs that its RAM holds: runs do not measure it")
    parser.add_argument("--store", type=_keys, metavar="N", help="key pairs that its store holds")
    parser.add_argument("--replace", action="store_true", help="replace a profile of that name")
    parser.add_argument("--db", type=Path, metavar="FILE", help="run database (default: in your data directory)")


TIMING = Command(
    help="make a timing profile of your own device from its runs of keypool.step-times",
    add_arguments=_add_arguments,
    run="labconsole_keypool.measuring.timing_command:make_timing",
)


def make_timing(arguments: argparse.Namespace) -> int:
    """Write the profile. Raises TrialError: the runs do not make one, or the name is taken."""
    with open_database(arguments) as reader:
        rows = {run.id: run for run in reader.runs(metrics=METRICS)}
        chosen = chosen_runs(arguments, reader)
        missing = next((number for number in chosen if number not in rows), None)
        if missing is not None:
            raise StoreError(f"There is no run {missing} in {reader.path}.")
        profile = timing_of_runs(
            reader, [rows[number] for number in chosen], arguments.title, arguments.ram, arguments.store
        )
    try:
        path = save_timing(arguments.name, profile, replace=arguments.replace)
    except OSError as error:
        raise TrialError(f"Timing profile {arguments.name} cannot be written: {error.strerror or error}.") from error
    output().print(f"The timing profile {arguments.name} is in {path}.", soft_wrap=True)
    return FINISHED


def _keys(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a number of key pairs from 1 on, not {text!r}")
    return int(text)
