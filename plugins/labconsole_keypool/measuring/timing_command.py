"""`labconsole hsm timing`: a timing profile of an own device, from the runs that timed its steps."""

from __future__ import annotations

import argparse

from labconsole.cli.exit_codes import FINISHED
from labconsole.cli.opening import chosen_runs, open_database
from labconsole.cli.terminal import output
from labconsole.errors import UserError
from labconsole.store.errors import StoreError
from labconsole.timing_profile import save_timing
from labconsole_keypool.measuring.timing_of_runs import METRICS, timing_of_runs


def make_timing(arguments: argparse.Namespace) -> int:
    """Write the profile. Raises UserError: the runs do not make one, or the name is taken."""
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
        raise UserError(f"Timing profile {arguments.name} cannot be written: {error.strerror or error}.") from error
    output().print(f"The timing profile {arguments.name} is in {path}.", soft_wrap=True)
    return FINISHED
