"""`labconsole profiles`, `trials` and `doctor`: the profiles and trials to run, and the checks of this machine."""

from __future__ import annotations

import argparse
import sys

from rich.table import Table
from rich.text import Text

from labconsole import doctor as doctor_checks
from labconsole.analysis.parameter_texts import describe_parameters
from labconsole.cli.exit_codes import BAD_USAGE, FAILED, FINISHED
from labconsole.cli.terminal import output
from labconsole.model.plugin import Plugins, load_dotted
from labconsole.profiles.profile import list_profiles


def profiles(arguments: argparse.Namespace) -> int:
    """List the profiles."""
    table = Table("Profile", "Title", "Trial", "Where", box=None, pad_edge=False)
    for profile in list_profiles():
        where = "built-in" if profile.builtin else str(profile.path)
        table.add_row(profile.name, profile.error or profile.title, profile.kind, where)
    output().print(table)
    return FINISHED


def trials(arguments: argparse.Namespace) -> int:
    """List the trials, or show one with parameters and metrics."""
    console, plugins = output(), Plugins.discover()
    if arguments.kind is None:
        table = Table("Trial", "Title", "Plugin", box=None, pad_edge=False)
        for kind in plugins.kinds():
            try:
                title = plugins.trial(kind).title
            except Exception as error:  # noqa: BLE001 - foreign code: shown as broken, the others are still listed
                title = f"broken: {type(error).__name__}: {error}"
            table.add_row(kind, title, plugins.of_kind(kind).title)
        console.print(table)
        for broken in plugins.broken:
            console.print(f"Plugin {broken.name} is broken: {broken.error}", style="red")
        return FINISHED
    if arguments.kind not in plugins.kinds():
        known = ", ".join(plugins.kinds())
        print(f"labconsole: no trial is called {arguments.kind}; there are: {known}.", file=sys.stderr)
        return BAD_USAGE
    trial = plugins.trial(arguments.kind)
    console.print(trial.title, style="bold")
    console.print(f"{trial.description}\n")
    table = Table("Parameter", "Default", "Unit", "Meaning", title="Parameters", title_justify="left", box=None)
    fields = trial.parameters.model_fields
    for value in describe_parameters(trial.parameters().model_dump(mode="json"), trial.parameters):
        table.add_row(value.name, value.text, value.unit, fields[value.name].description)
    console.print(table)
    table = Table("Metric", "Unit", "Better", "Definition", title="Metrics", title_justify="left", box=None)
    for metric in trial.metrics:
        table.add_row(metric.name, metric.unit, metric.direction, metric.description)
    console.print(table)
    return FINISHED


def doctor(arguments: argparse.Namespace) -> int:
    """Check this machine; exit code 1 if something is missing."""
    checks = doctor_checks.checks()
    plugins = Plugins.discover()
    for plugin in plugins.found:
        for dotted in plugin.doctor_checks:
            try:
                checks += load_dotted(dotted)()
            except Exception as error:  # noqa: BLE001 - foreign code: shown as missing, the others are still checked
                found = f"{type(error).__name__}: {error}"
                checks.append(doctor_checks.Check(dotted, False, found, f"plugin {plugin.name}", "repair or remove it"))
    table = Table("", "What", "Found", "Needed for", "To do", box=None, pad_edge=False)
    for check in checks:
        mark = Text("ok", "green") if check.ok else Text("missing", "red")
        table.add_row(mark, check.name, check.found, check.needed_for, check.remedy)
    for broken in plugins.broken:
        table.add_row(Text("broken", "red"), f"plugin {broken.name}", broken.error, "its trials", "repair or remove it")
    output().print(table)
    return FINISHED if all(check.ok for check in checks) and not plugins.broken else FAILED
