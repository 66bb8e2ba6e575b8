"""`labconsole bundle` and `import`: runs from one database to another."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole.cli.exit_codes import FINISHED
from labconsole.cli.opening import open_database
from labconsole.cli.terminal import output
from labconsole.locations import database_path
from labconsole.report.bundle import write_bundle
from labconsole.report.bundle_import import import_bundle


def bundle(arguments: argparse.Namespace) -> int:
    """Write runs to a bundle. Raises StoreError and ExportError."""
    with open_database(arguments.db) as reader:
        write_bundle(reader, arguments.run, arguments.file)
    output().print(arguments.file, soft_wrap=True)
    return FINISHED


def take_in(arguments: argparse.Namespace) -> int:
    """Take the runs of a bundle into the database. Raises StoreError and BundleError."""
    database: Path = arguments.db or database_path()
    result = import_bundle(database, arguments.file)
    console = output()
    for run_id in result.imported:
        console.print(f"Run {run_id} was imported.")
    for uuid in result.skipped:
        console.print(f"Run {uuid} was there already, and is left as it is.", soft_wrap=True)
    return FINISHED
