"""The arguments of `labconsole`: its own commands, and those that plugins add."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from labconsole import __version__
from labconsole.cli.command import add_group

# The console speaks English: argparse would search the disk for a translation of three texts of each parser, which took
# 16 of the 37 ms in which the parsers of `labconsole pki` are built.
argparse._ = str  # type: ignore[attr-defined]

_LONGEST_NUMBER = 18
"""Digits that a run's number may have: the database holds no more."""


def command_parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """A parser of the arguments `given`; plugins are asked for theirs only where the command may be one of them."""
    parser = argparse.ArgumentParser(prog="labconsole", description="Secure messaging trials: run, watch, compare.")
    parser.add_argument("--version", action="version", version=f"labconsole {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    database = argparse.ArgumentParser(add_help=False)
    database.add_argument("--db", type=Path, metavar="FILE", help="run database (default: in your data directory)")
    campaign = argparse.ArgumentParser(add_help=False)
    campaign.add_argument("--campaign", action="store_true", help="the whole campaign that the runs belong to")
    settings = argparse.ArgumentParser(add_help=False)
    settings.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings", help="set a parameter"
    )
    columns = _columns()

    window = commands.add_parser("gui", parents=[database], help="open the window")
    window.set_defaults(command="labconsole.cli.gui:gui")

    profiles = commands.add_parser("profiles", help="list the profiles that can be run")
    profiles.set_defaults(command="labconsole.cli.lists:profiles")

    trials = commands.add_parser("trials", help="list the kinds of trials, their parameters and metrics")
    trials.add_argument("kind", nargs="?", help="show one kind in full")
    trials.set_defaults(command="labconsole.cli.lists:trials")

    start = commands.add_parser(
        "run", parents=[database, settings], help="run a profile: one scenario or a whole campaign"
    )
    start.add_argument("profile", metavar="PROFILE", help="name of a profile, or path of a TOML file")
    start.add_argument("--repeat", type=int, metavar="N", help="number of repeats of each scenario")
    start.add_argument(
        "--hosts", type=Path, metavar="FILE", help="host list: run the roles there, in place of the profile's hosts"
    )
    output = start.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="one JSON object per run and line on standard output")
    output.add_argument(
        "--csv",
        nargs="?",
        type=Path,
        const=True,
        metavar="DIR",
        help="also export CSV (default: your data directory)",
    )
    start.set_defaults(command="labconsole.cli.run:run")

    history = commands.add_parser("runs", parents=[database], help="list the runs in the database")
    history.set_defaults(command="labconsole.cli.runs:runs")

    show = commands.add_parser("show", parents=[database], help="show one run")
    show.add_argument("run", type=_run_number, metavar="RUN", help="number of the run")
    show.add_argument("--json", action="store_true", help="everything but the samples, as one JSON object")
    show.set_defaults(command="labconsole.cli.runs:show")

    compare = commands.add_parser(
        "compare", parents=[database, campaign, columns], help="put runs and published figures side by side"
    )
    compare.add_argument("--each", action="store_true", help="every run as a column of its own")
    compare.add_argument("--all", action="store_true", help="also all that is not judged, each with its reason")
    compare.add_argument("--csv", type=Path, metavar="FILE", help="also write the table as CSV")
    compare.add_argument("--json", action="store_true", help="everything as one JSON object")
    compare.set_defaults(command="labconsole.cli.compare:compare_runs")

    export = commands.add_parser("export", parents=[database, campaign], help="write runs as CSV, Parquet or JSON")
    export.add_argument("run", type=_run_number, nargs="+", metavar="RUN", help="numbers of the runs")
    export.add_argument("--csv", type=Path, metavar="DIR", help="everything as CSV: a folder for each of several runs")
    export.add_argument("--parquet", type=Path, metavar="DIR", help="the samples as Parquet files")
    export.add_argument("--json", type=Path, metavar="FILE|DIR", help="everything but the samples as JSON")
    export.set_defaults(command="labconsole.cli.export:export")

    report = commands.add_parser(
        "report", parents=[database, campaign, columns], help="report on runs as PDF, and as CSV"
    )
    _add_report(report)
    report.set_defaults(command="labconsole.cli.report:report")

    verify = commands.add_parser("verify", parents=[database], help="check that runs are as they were sealed")
    verify.add_argument("run", type=_run_number, nargs="+", metavar="RUN", help="numbers of the runs")
    verify.set_defaults(command="labconsole.cli.database:verify_runs")

    import_runs = commands.add_parser("import", parents=[database], help="take the runs of a bundle into the database")
    import_runs.add_argument("file", type=Path, metavar="FILE", help="bundle that `labconsole bundle` wrote (.lcz)")
    import_runs.add_argument(
        "--signed", action="store_true", help="refuse a bundle without the signature of a trusted State (FILE.p7s)"
    )
    import_runs.set_defaults(command="labconsole.cli.export:import_runs")

    restore = commands.add_parser("restore", parents=[database], help="make a new database of the newest backup")
    restore.set_defaults(command="labconsole.cli.database:restore")

    hsm = add_group(commands, "hsm", "tokens (HSM): list, add and remove them, see what they can do")

    work = commands.add_parser(
        "action", parents=[settings], help="list the actions (long work that is not a run), or do one"
    )
    work.add_argument("name", nargs="?", metavar="NAME", help="name of an action")
    work.set_defaults(command="labconsole.cli.operation_command:action")

    doctor = commands.add_parser("doctor", help="check this machine, and say what is missing for what")
    doctor.set_defaults(command="labconsole.cli.lists:doctor")

    if not given or given[0] == "hsm" or given[0] not in commands.choices:
        from labconsole.cli.plugin_commands import add_plugin_commands  # the built-in commands do not need it

        add_plugin_commands(commands, {"hsm": hsm}, given)
    return parser


def _columns() -> argparse.ArgumentParser:
    """Adds the arguments on columns: runs, published figures, and which of them is the baseline."""
    columns = argparse.ArgumentParser(add_help=False)
    columns.add_argument(
        "run", type=_run_number, nargs="+", metavar="RUN", help="numbers of the runs; repeats are one column"
    )
    columns.add_argument(
        "--baseline",
        type=_run_or_name,
        metavar="RUN|NAME",
        help="run, or published column, the others are compared with",
    )
    columns.add_argument(
        "--published", action="append", default=[], metavar="NAME", help="published table, or one column of it"
    )
    return columns


def _run_number(text: str) -> int:
    if not (text.isdecimal() and len(text) <= _LONGEST_NUMBER and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not the number of a run")
    return int(text)


def _run_or_name(text: str) -> int | str:
    """The number of a run, or else the name of something published: none of those is a number."""
    return _run_number(text) if text.isdecimal() else text


def _add_report(report: argparse.ArgumentParser) -> None:
    report.add_argument("--pdf", type=Path, metavar="FILE", help="PDF to be written")
    report.add_argument("--csv", type=Path, metavar="DIR", help="also the runs and their comparison as CSV")
    report.add_argument(
        "--outline",
        default="",
        metavar="NAME",
        help="runs of several trials and campaigns in the chapters of this outline, which a plugin brings",
    )
    report.add_argument("--paper", choices=("a4", "letter"), default="a4", help="size of the pages (default: a4)")
    for name, what in (("title", "title"), ("author", "who prepared it"), ("place", "where the trial took place")):
        report.add_argument(f"--{name}", default="", metavar="TEXT", help=what)
    report.add_argument("--sign", type=Path, metavar="KEY", help="sign the PDF with this key (PEM, or PKCS#12: .p12)")
    report.add_argument(
        "--certificate", type=Path, metavar="FILE", help="certificate of a PEM key and its issuers' (default: KEY)"
    )
    report.add_argument("--passphrase-file", type=Path, metavar="FILE", help="file with the key's passphrase (0600)")
    report.add_argument("--keyring-entry", metavar="NAME", help="entry of the OS keyring with the key's passphrase")


def parse_settings(settings: Iterable[str]) -> dict[str, str] | None:
    """The values by their keys; None after a complaint on standard error about one of another form."""
    values = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            print(f"labconsole: --set {setting} is not of the form KEY=VALUE.", file=sys.stderr)
            return None
        values[key.strip()] = value.strip()
    return values
