"""`labconsole bundle` and `import`: runs from one database to another."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole.cli.database import open_database
from labconsole.cli.exit_codes import FINISHED
from labconsole.cli.terminal import output
from labconsole.output.bundle_import import import_bundle
from labconsole.output.bundle_writer import write_bundle
from labconsole.paths import database_path


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
