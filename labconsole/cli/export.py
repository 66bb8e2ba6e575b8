"""`labconsole export`: runs as CSV, Parquet and JSON files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.progress import Progress as Bars

from labconsole.cli.database import chosen_runs, open_database
from labconsole.cli.exit_codes import BAD_USAGE, FINISHED
from labconsole.cli.terminal import output
from labconsole.model.plugin import Plugins
from labconsole.output.bundle_import import import_bundle
from labconsole.output.csv_export import export_run, export_runs
from labconsole.output.export_contents import Progress
from labconsole.output.parquet import export_parquet
from labconsole.output.run_json import export_json
from labconsole.paths import database_path


def export(arguments: argparse.Namespace) -> int:
    """Write the runs in every format that was asked for, and print the files' names."""
    if arguments.csv is None and arguments.parquet is None and arguments.json is None:
        print("labconsole: say how to export: --csv DIR, --parquet DIR or --json FILE|DIR.", file=sys.stderr)
        return BAD_USAGE
    plugins = Plugins.discover()
    console = output(stderr=True)
    files = []
    with (
        open_database(arguments.db) as reader,
        Bars(console=console, transient=True, disable=not console.is_terminal) as bars,
    ):
        run_ids = chosen_runs(reader, arguments.run, campaign=arguments.campaign)
        if arguments.csv is not None and len(run_ids) == 1:
            files += export_run(reader, run_ids[0], arguments.csv, plugins, _bar(bars, "CSV"))
        elif arguments.csv is not None:
            files += export_runs(reader, run_ids, arguments.csv, plugins, _bar(bars, "CSV"))
        if arguments.parquet is not None:
            files += export_parquet(reader, run_ids, arguments.parquet, plugins, _bar(bars, "Parquet"))
        if arguments.json is not None:
            files += export_json(reader, run_ids, arguments.json)
    for path in files:
        print(path)
    return FINISHED


def _bar(bars: Bars, title: str) -> Progress:
    task = bars.add_task(title, total=None)
    return lambda done, total: bars.update(task, completed=done, total=total)


def import_runs(arguments: argparse.Namespace) -> int:
    """Import the runs of a bundle into the database. Raises StoreError and BundleError."""
    database: Path = arguments.db or database_path()
    result = import_bundle(database, arguments.file, signed_only=arguments.signed)
    console = output()
    if result.signer is not None:
        console.print(result.signer.sentence, soft_wrap=True)
    for run_id in result.imported:
        console.print(f"Run {run_id} was imported.")
    for uuid in result.skipped:
        console.print(f"Run {uuid} was there already, and is left as it is.", soft_wrap=True)
    return FINISHED
