"""`labconsole action`: lists the actions, or does one in a process of its own, with its progress on stderr."""

from __future__ import annotations

import argparse
import sys
import threading
from typing import Any

from pydantic import ValidationError
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from labconsole.action import Action
from labconsole.analysis.figures import format_duration
from labconsole.cli.asking import ask, enter_openly, has_terminal
from labconsole.cli.exit_codes import BAD_USAGE, CANCELLED, FAILED, FINISHED
from labconsole.cli.interrupts import interrupts
from labconsole.cli.settings import parse_settings
from labconsole.cli.terminal import output
from labconsole.engine.action_process import ActionEnd, ActionProcess, Outcome
from labconsole.errors import UserError
from labconsole.plugin import Plugins
from labconsole.profile import override
from labconsole.profile_file import fault_sentence, nearest
from labconsole.shown_text import shown_lines
from labconsole.trial import Parameters

_EXIT_CODES = {Outcome.DONE: FINISHED, Outcome.CANCELLED: CANCELLED, Outcome.FAILED: FAILED}
_STEP_S = 0.25


def action(arguments: argparse.Namespace) -> int:
    """List the actions, or do one; the exit code says how it ended. Raises UserError, KeyboardInterrupt."""
    plugins = Plugins.discover()
    if arguments.name is None:
        return _list(plugins)
    values = parse_settings(arguments.settings)
    if values is None:
        return BAD_USAGE
    if arguments.name not in plugins.actions():
        known = nearest(arguments.name, plugins.actions())
        print(f"labconsole: no action is called {arguments.name}{known}", file=sys.stderr)
        return BAD_USAGE
    chosen = plugins.action(arguments.name)
    try:
        parameters = chosen.parameters.model_validate(
            {key: override(text, key, chosen.parameters) for key, text in values.items()}
        )
    except ValidationError as error:
        print(shown_lines(f"labconsole: {fault_sentence(error, chosen.parameters)}"), file=sys.stderr)
        return BAD_USAGE
    end = _do(chosen, parameters)
    if end.outcome is Outcome.DONE:
        output().print(end.sentence, soft_wrap=True)
    else:
        print(shown_lines(f"labconsole: {end.sentence}"), file=sys.stderr)
    return _EXIT_CODES[end.outcome]


def _list(plugins: Plugins) -> int:
    table = Table("Action", "Title", "Parameters", box=None, pad_edge=False)
    for name in plugins.actions():
        try:
            found = plugins.action(name)
            title, keys = found.title, ", ".join(found.parameters.model_fields)
        except Exception as error:  # noqa: BLE001 - foreign code: shown as broken, and the others all the same
            title, keys = f"broken: {type(error).__name__}: {error}", ""
        table.add_row(name, title, keys)
    output().print(table)
    return FINISHED


def _do(chosen: Action[Any], parameters: Parameters) -> ActionEnd:
    """Ask what must be asked, and do it. Raises UserError, KeyboardInterrupt."""
    typed = _confirm(chosen, parameters)
    secrets = ask(chosen.secrets(parameters))
    wakeup = threading.Event()
    values = parameters.model_dump(mode="json")
    with interrupts(wakeup) as interrupted:
        process = ActionProcess(chosen.name, values, wakeup.set, secrets, typed)
        try:
            with _Progress(chosen.title) as progress:
                while process.end is None:
                    if interrupted and not process.cancelled:
                        process.cancel()
                    process.pump()
                    progress.show(process)
                    wakeup.wait(0 if process.end else _STEP_S)
                    wakeup.clear()
        finally:
            process.close()
    return process.end


def _confirm(chosen: Action[Any], parameters: Parameters) -> str:
    confirmation = chosen.confirmation(parameters)
    if confirmation is None:
        return ""
    if not has_terminal():
        raise UserError(f"{chosen.title} must be confirmed by typing a label: do it on a terminal.")
    print(f"{confirmation.loss} To go on, type {confirmation.text}.", file=sys.stderr)
    return enter_openly("> ")


class _Progress:
    """Progress, ETA and what the action says on standard error; secrets handed over go to standard output alone."""

    def __init__(self, title: str) -> None:
        self._console = output(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            console=self._console,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(title, total=None, count="")
        self._said = ""
        self._lines = 0

    def __enter__(self) -> _Progress:
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()

    def show(self, process: ActionProcess) -> None:
        """What is new."""
        for line in process.take_log():
            self._bar.print(line, style="dim")
        if process.said != self._said:
            self._said = process.said
            self._bar.print(self._said)
        for title, secret in process.take_handed_over():
            print(f"{title}\n{secret.reveal()}\n", flush=True)
        if process.progress is not None:
            done, total, eta_s = process.progress.done, process.progress.total, process.progress.eta_s
            left = "" if eta_s is None or done >= total else f", {format_duration(eta_s)} left"
            self._bar.update(self._task, completed=done, total=total, count=f"{done:,} of {total:,}{left}")
