"""`labconsole run`: runs a profile in the terminal, with progress on stderr and results on stdout."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Literal

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from labconsole.analysis.answers import answers
from labconsole.analysis.comparison import compare, group_repeats
from labconsole.analysis.number_format import format_duration
from labconsole.cli.arguments import parse_settings
from labconsole.cli.comparison_table import print_answers, print_comparison
from labconsole.cli.exit_codes import BAD_USAGE, CANCELLED, CHECK_FAILED, FAILED, FINISHED
from labconsole.cli.interrupts import interrupts
from labconsole.cli.secret_prompts import ask_secrets
from labconsole.cli.terminal import output
from labconsole.clock import wall_now
from labconsole.engine.protocol import LiveFrame
from labconsole.engine.queue import QueueItem, QueueState, RunQueue
from labconsole.engine.run_end import PREFIX
from labconsole.model.plugin import Plugins
from labconsole.model.series import Event, Level
from labconsole.output import run_json
from labconsole.output.csv_export import export_runs
from labconsole.paths import data_dir, database_path
from labconsole.profiles.campaign_run import run_campaign
from labconsole.profiles.host_list import read_host_list
from labconsole.profiles.profile import campaign_of, load_profile
from labconsole.safe_text import shown_lines
from labconsole.store.backups import back_up
from labconsole.store.errors import StoreError
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, RunStatus

_LIVE_HZ = 4.0


def run(arguments: argparse.Namespace) -> int:
    """Run a whole profile, and return its exit code."""
    overrides = parse_settings(arguments.settings)
    if overrides is None:
        return BAD_USAGE
    plugins = Plugins.discover()
    hosts = None if arguments.hosts is None else read_host_list(arguments.hosts)
    profile = load_profile(arguments.profile, plugins, overrides, arguments.repeat, hosts)
    campaign = campaign_of(profile)
    try:
        secrets = ask_secrets(campaign, plugins)
    except KeyboardInterrupt:
        return CANCELLED
    _wait_for_agreed_start(profile.name)
    database: Path = arguments.db or database_path()
    wakeup = threading.Event()
    queue = RunQueue(database, live_hz=_LIVE_HZ, wake=wakeup.set)
    reader = Reader(database)
    try:
        queue.recover()
        with (
            _Progress(queue, reader, as_json=arguments.json) as progress,
            interrupts(wakeup) as cancelled,
        ):
            progress.begin(len(campaign.order), profile.description)
            run_ids = run_campaign(queue, campaign, secrets, progress, lambda: cancelled, wakeup)
        details = [reader.run(run_id) for run_id in run_ids]
        if not arguments.json:
            _summary(details, plugins, database, arguments.csv, reader)
    finally:
        reader.close()
        queue.close()
    _back_up(database)
    return CANCELLED if cancelled else _exit_code(details)


def _wait_for_agreed_start(profile: str) -> None:
    """Wait until the agreement with another owner begins whose scenario this profile is, if it has a time.

    Raises KeyboardInterrupt, and UserError: the agreement's files are damaged.
    """
    if not (data_dir() / "agreements").exists():
        return
    from labconsole.agreements.agreement_files import agreed_start  # it needs the certificate layer, which runs do not

    starts = agreed_start(profile)
    if starts is None or starts <= wall_now():
        return
    left = format_duration((starts - wall_now()).total_seconds())
    print(
        f"The agreement {profile} begins at {starts:%Y-%m-%d %H:%M:%S} UTC, in {left}: waiting, Ctrl+C cancels.",
        file=sys.stderr,
        flush=True,
    )
    while (remaining := (starts - wall_now()).total_seconds()) > 0:  # asked each second: the wall clock may be set
        time.sleep(min(remaining, 1.0))


def _back_up(database: Path) -> None:
    """Keep a copy of the database next to it; a failure does not fail the runs, but is reported."""
    try:
        back_up(database)
    except StoreError as error:
        print(shown_lines(f"labconsole: no backup was made. {error}"), file=sys.stderr)


def _exit_code(details: list[RunDetail]) -> int:
    statuses = {detail.row.status for detail in details}
    if statuses - {RunStatus.FINISHED, RunStatus.CANCELLED}:
        return FAILED
    if RunStatus.CANCELLED in statuses:
        return CANCELLED
    missed = any(
        verdict.name.startswith(PREFIX) and verdict.result != "pass"
        for detail in details
        for verdict in detail.verdicts
    )
    return CHECK_FAILED if missed or any(detail.row.failed_checks for detail in details) else FINISHED


class _Progress:
    """`CampaignListener` that shows progress on stderr, and results as they come."""

    def __init__(self, queue: RunQueue, reader: Reader, *, as_json: bool) -> None:
        self._queue = queue
        self._reader = reader
        self._as_json = as_json
        self._console = output(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            console=self._console,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not self._console.is_terminal,
        )
        self._tasks: dict[int, TaskID] = {}
        self._waited_for = 0

    def __enter__(self) -> _Progress:
        self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._progress.stop()

    def waiting_for(self, other: QueueItem | None) -> None:
        """Report once for each run of another console that has to finish first."""
        if other is None or other.console is None or other.run_id == self._waited_for:
            return
        self._waited_for = other.run_id
        console = other.console
        self._progress.print(
            f"Waiting for run {other.run_id} ({other.scenario}) of another console (process {console.pid} on "
            f"{console.host}): two at a time would disturb each other's figures.",
            style="yellow",
            soft_wrap=True,
        )

    def begin(self, runs: int, description: str) -> None:
        """Print the profile that is about to run, and its expected time where that is known."""
        if not self._as_json:
            number = "1 run" if runs == 1 else f"{runs} runs"
            self._progress.print(f"{number}. {' '.join(description.split())}".strip())

    def report(self, run_id: int, item: QueueItem | None) -> None:
        """Report the end of one run."""
        detail = self._reader.run(run_id)
        if self._as_json:
            print(json.dumps(run_json.summary(detail), ensure_ascii=False), flush=True)
        row = detail.row
        ended = row if row.status.final or item is None else item
        if ended.status is not RunStatus.FINISHED:
            self._progress.print(f"Run {row.id} ({row.scenario}) {ended.status}: {ended.reason}", style="red")
        elif row.failed_checks:
            reasons = " ".join(row.failed_checks)
            self._progress.print(
                f"Run {row.id} ({row.scenario}) finished, but its data fail a check: {reasons}", style="red"
            )
        elif not self._console.is_terminal and not self._as_json:
            self._console.print(f"Run {row.id} ({row.scenario}, repeat {row.repeat}) finished.")

    def items_changed(self) -> None:
        for item in self._queue.items:
            if item.state is QueueState.WAITING:
                continue
            if item.run_id not in self._tasks:
                title = item.scenario if item.repeats == 1 else f"{item.scenario} ({item.repeat}/{item.repeats})"
                self._tasks[item.run_id] = self._progress.add_task(title, total=None, rate="")
            if item.state is QueueState.DONE:
                total = max(item.total, 1)
                done = total if item.status is RunStatus.FINISHED else item.done
                self._progress.update(self._tasks[item.run_id], completed=done, total=total, rate=item.status.value)

    def live(self, run_id: int, frame: LiveFrame) -> None:
        item = next(item for item in self._queue.items if item.run_id == run_id)
        rate = f"{item.rate:,.0f}/s" if item.rate else ""
        self._progress.update(self._tasks[run_id], completed=frame.done, total=frame.total or None, rate=rate)

    def event(self, run_id: int, event: Event) -> None:
        if event.level is not Level.INFO:
            self._progress.print(f"Run {run_id}: {event.message}", style="yellow")

    def log(self, run_id: int, line: str) -> None:
        self._progress.print(f"Run {run_id}: {line}", style="dim")

    def finished(self, run_id: int, status: RunStatus) -> None:
        return


def _summary(
    details: list[RunDetail], plugins: Plugins, database: Path, csv: Path | Literal[True] | None, reader: Reader
) -> None:
    """The comparison table, and the paths of the results; `csv` True is a folder in the data directory."""
    console = output(bounded=True)
    rows = [detail.row for detail in details if detail.metrics]
    if rows:
        trial = plugins.trial(rows[0].kind)
        comparison = compare(group_repeats(rows), trial)
        verdicts = {detail.row.id: detail.verdicts for detail in details}
        print_answers(console, answers(comparison, trial, verdicts))
        elsewhere = f" --db {shlex.quote(str(database))}" if database != database_path() else ""
        more = f"labconsole compare {rows[0].id} --campaign --all{elsewhere}"
        print_comparison(console, comparison, trial, more)
    console.print(f"{_runs([detail.row.id for detail in details])} in {database}", soft_wrap=True)
    if csv is not None:
        directory = (
            data_dir() / "exports" / f"{details[0].row.profile}-{datetime.now():%Y%m%d-%H%M%S}" if csv is True else csv
        )
        export_runs(reader, [detail.row.id for detail in details], directory, plugins)
        console.print(f"CSV files are in {directory}", soft_wrap=True)


def _runs(run_ids: list[int]) -> str:
    return f"Run {run_ids[0]} is" if len(run_ids) == 1 else f"Runs {run_ids[0]}-{run_ids[-1]} are"
