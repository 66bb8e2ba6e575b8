"""Operations on the terminal: `labconsole action`, and the commands that are made from their definitions."""

from __future__ import annotations

import argparse
import json
import sys
import threading
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from labconsole.analysis.number_format import format_duration
from labconsole.cli.arguments import parse_settings
from labconsole.cli.exit_codes import BAD_USAGE, CANCELLED, FAILED, FINISHED
from labconsole.cli.interrupts import interrupts
from labconsole.cli.operation_arguments import parameters_of
from labconsole.cli.secret_prompts import ask, has_terminal, prompt_visible
from labconsole.cli.terminal import output
from labconsole.engine.operation_process import OperationEnd, OperationProcess, Outcome
from labconsole.errors import UserError
from labconsole.model.operation import Operation, Result, TextTable, Tone, TonedText, conduct
from labconsole.model.parameters import Parameters
from labconsole.model.plugin import Plugins
from labconsole.model.validation_faults import fault_sentence, nearest
from labconsole.profiles.profile import override
from labconsole.safe_text import shown_lines
from labconsole.security.secrets import Secret

_STEP_S = 0.25
_STYLES = {Tone.GOOD: "green", Tone.WARNING: "yellow", Tone.BAD: "red", Tone.MUTED: "dim"}


def action(arguments: argparse.Namespace) -> int:
    """List the operations, or run one; returns its exit code. Raises UserError, KeyboardInterrupt."""
    plugins = Plugins.discover()
    if arguments.name is None:
        return _list(plugins)
    values = parse_settings(arguments.settings)
    if values is None:
        return BAD_USAGE
    if arguments.name not in plugins.operations():
        known = nearest(arguments.name, plugins.operations())
        print(f"labconsole: no action is called {arguments.name}{known}", file=sys.stderr)
        return BAD_USAGE
    chosen = plugins.operation(arguments.name)
    try:
        parameters = chosen.parameters.model_validate(
            {key: override(text, key, chosen.parameters) for key, text in values.items()}
        )
    except ValidationError as error:
        return _bad_usage(fault_sentence(error, chosen.parameters))
    return _exit_code(_in_process(chosen, parameters), as_json=False)


def command(arguments: argparse.Namespace) -> int:
    """Run the operation whose command was typed. Raises UserError, KeyboardInterrupt."""
    chosen = Plugins.discover().operation(arguments.operation)
    try:
        parameters = parameters_of(arguments, chosen.parameters)
    except ValueError as error:
        return _bad_usage(str(error))
    if chosen.isolated:
        return _exit_code(_in_process(chosen, parameters, as_json=arguments.json), as_json=arguments.json)
    return _exit_code(_here(chosen, parameters, as_json=arguments.json), as_json=arguments.json)


def _list(plugins: Plugins) -> int:
    table = Table("Action", "Title", "Parameters", box=None, pad_edge=False)
    for name in plugins.operations():
        try:
            found = plugins.operation(name)
            title, keys = found.title, ", ".join(found.parameters.model_fields)
        except Exception as error:  # noqa: BLE001 - foreign code: shown as broken, the others are still listed
            title, keys = f"broken: {type(error).__name__}: {error}", ""
        table.add_row(name, title, keys)
    output().print(table)
    return FINISHED


def _bad_usage(sentence: str) -> int:
    print(shown_lines(f"labconsole: {sentence}"), file=sys.stderr)
    return BAD_USAGE


def _exit_code(end: OperationEnd, *, as_json: bool) -> int:
    """Print how it ended, and return the exit code for that."""
    if end.outcome is not Outcome.DONE or end.result is None:
        print(shown_lines(f"labconsole: {end.sentence}"), file=sys.stderr)
        return CANCELLED if end.outcome is Outcome.CANCELLED else FAILED
    for warning in end.result.warnings:
        output(stderr=True).print(f"Warning: {warning}", soft_wrap=True)
    if as_json:
        print(json.dumps(end.result.data, indent=2, ensure_ascii=False))
    else:
        _print(end.result)
    return FINISHED if end.result.passed else FAILED


def _print(result: Result) -> None:
    for part in result.parts:
        if isinstance(part, str):
            output().print(_coloured(part), soft_wrap=True)
        else:
            output().print(_table(part))


def _table(part: TextTable) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0) if part.narrow else (0, 1))
    for column, heading in enumerate(part.headings):
        table.add_column(heading, justify="center" if part.narrow and column else "left")
    for row in part.rows:
        table.add_row(*map(_coloured, row))
    return table


def _coloured(text: str) -> Text:
    return Text(text, _STYLES[text.tone] if isinstance(text, TonedText) else "")


def _in_process(chosen: Operation[Any], parameters: Parameters, *, as_json: bool = False) -> OperationEnd:
    """Ask for confirmation and secrets, and run it in a process of its own. Raises UserError, KeyboardInterrupt."""
    typed = _confirm(chosen, parameters)
    secrets = ask(chosen.secrets(parameters))
    wakeup = threading.Event()
    values = parameters.model_dump(mode="json")
    with interrupts(wakeup) as interrupted:
        process = OperationProcess(chosen.name, values, wakeup.set, secrets, typed)
        try:
            with _Progress(chosen.title, as_json=as_json) as progress:
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


class _TerminalContext:
    """`OperationContext` of an operation that runs in this process."""

    def __init__(self, secrets: Mapping[str, Secret], typed: str, interrupted: list[int], *, as_json: bool) -> None:
        self._secrets = secrets
        self._typed = typed
        self._interrupted = interrupted
        self._as_json = as_json
        self._console = output(stderr=as_json)

    @property
    def typed(self) -> str:
        return self._typed

    @property
    def stop_requested(self) -> bool:
        return bool(self._interrupted)

    def progress(self, done: int, total: int) -> None:
        return  # operations here are short, or report that they wait for a peer

    def say(self, sentence: str) -> None:
        self._console.print(sentence, soft_wrap=True)

    def secret(self, key: str) -> Secret | None:
        return self._secrets.get(key)

    def hand_over(self, title: str, secret: Secret) -> None:
        _show_once(title, secret, as_json=self._as_json)


def _here(chosen: Operation[Any], parameters: Parameters, *, as_json: bool) -> OperationEnd:
    """Ask for confirmation and secrets, and run it in this process. Raises UserError, KeyboardInterrupt."""
    typed = _confirm(chosen, parameters)
    secrets = ask(chosen.secrets(parameters))
    with interrupts(threading.Event(), insistent=True) as interrupted:
        result = conduct(chosen, parameters, _TerminalContext(secrets, typed, interrupted, as_json=as_json))
    cancelled = interrupted and not chosen.runs_until_cancelled
    return OperationEnd(Outcome.CANCELLED if cancelled else Outcome.DONE, result.text, result)


def _confirm(chosen: Operation[Any], parameters: Parameters) -> str:
    confirmation = chosen.confirmation(parameters)
    if confirmation is None:
        return ""
    if confirmation.window_only:
        return confirmation.text
    if not has_terminal():
        raise UserError(confirmation.without_terminal)
    print(shown_lines(f"{confirmation.loss} {confirmation.request}"), file=sys.stderr)
    return prompt_visible("> ")


def _show_once(title: str, secret: Secret, *, as_json: bool) -> None:
    """Show a secret that exists nowhere else: on standard output, unless that is JSON, which a program reads."""
    print(f"{title}\n{secret.reveal()}\n", file=sys.stderr if as_json else sys.stdout, flush=True)


class _Progress:
    """Prints progress, ETA and reports on standard error, and secrets that are shown once."""

    def __init__(self, title: str, *, as_json: bool) -> None:
        self._as_json = as_json
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

    def show(self, process: OperationProcess) -> None:
        """Print what is new."""
        for line in process.take_log():
            self._bar.print(line, style="dim")
        if process.said != self._said:
            self._said = process.said
            self._bar.print(self._said)
        for title, secret in process.take_handed_over():
            _show_once(title, secret, as_json=self._as_json)
        if process.progress is not None:
            done, total, eta_s = process.progress.done, process.progress.total, process.progress.eta_s
            left = "" if eta_s is None or done >= total else f", {format_duration(eta_s)} left"
            self._bar.update(self._task, completed=done, total=total, count=f"{done:,} of {total:,}{left}")
