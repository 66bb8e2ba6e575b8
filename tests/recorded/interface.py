"""Collects what scripts, profiles and fingers rely on: commands, options, exit codes, parameters, metrics, JSON keys.

Everything is plain JSON, so that what version 0.1.0 offered is a file (`interface-0.1.0.json`) that is compared with
what the console offers today.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from labconsole.cli import exit_codes
from labconsole.cli.arguments import command_parser
from labconsole.cli.main import main
from labconsole.model.parameters import Parameters
from labconsole.model.plugin import Plugins, load_dotted
from labconsole.profiles.profile import list_profiles, load_profile
from labconsole.profiles.profile_file import ProfileFile

GOLDEN = Path(__file__).parents[1] / "labconsole_amqp" / "golden" / "definitions-1.db"
"""Three runs that version 0.1.0 recorded."""
JSON_COMMANDS = {
    "show": ["show", "1", "--json"],
    "compare": ["compare", "1", "2", "--json"],
    "compare published": ["compare", "1", "--published", "swim-within-malaysia-small", "--json"],
    "export": ["export", "1", "--json", "run.json"],
}
"""The commands that write JSON; `run --json` writes the document of `show --json`, and another test holds that."""
BOUNDS = ("ge", "gt", "le", "lt", "min_length", "max_length", "pattern")
Json = dict[str, Any]


def interface(folder: Path) -> Json:
    """All of it but the window's menus; `folder` is for files of this call."""
    plugins = Plugins.discover()
    return {
        "commands": dict(commands()),
        "exit codes": {name: value for name, value in vars(exit_codes).items() if name.isupper()},
        "trials": {kind: trial(plugins, kind) for kind in plugins.kinds()},
        "actions": {
            name: fields(load_dotted(entry.target).parameters)
            for plugin in plugins.providers
            for name, entry in plugin.operations.items()
        },
        "profiles": profiles(plugins),
        "profile keys": sorted(ProfileFile.model_fields),
        "published": sorted(name for plugin in plugins.found for name in plugin.published),
        "JSON keys": json_keys(folder),
    }


def commands() -> Iterator[tuple[str, Json]]:
    """Each command of the terminal with its arguments: options by all of their spellings, positions by their order."""
    for name in _choices(command_parser(["-"])):
        inner = _choices(_choices(command_parser([name]))[name])
        for path in [[name, command] for command in inner] or [[name]]:
            parser = command_parser(path)
            for word in path:
                parser = _choices(parser)[word]
            yield " ".join(path), dict(_arguments(parser))


def _choices(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return found[0].choices if found else {}


def _arguments(parser: argparse.ArgumentParser) -> Iterator[tuple[str, Json]]:
    for place, action in enumerate(parser._get_positional_actions()):
        yield f"position {place}", {"nargs": action.nargs, "choices": _plain(action.choices)}
    for action in parser._get_optional_actions():
        if action.dest != "help":
            seen = {"nargs": action.nargs, "choices": _plain(action.choices), "default": _plain(action.default)}
            for spelling in action.option_strings:
                yield (
                    spelling,
                    {**seen, "required": action.required, "flag": action.const is not None, "dest": action.dest},
                )


def trial(plugins: Plugins, kind: str) -> Json:
    """What is stored, typed or read by scripts of a trial: its names, not its titles."""
    described = plugins.trial(kind)
    return {
        "parameters": fields(described.parameters),
        "metrics": {metric.name: [metric.unit, metric.direction] for metric in described.metrics},
        "series": {one.name: {column.name: column.dtype for column in one.columns} for one in described.series},
        "live": {channel.name: channel.unit for channel in described.live},
    }


def fields(model: type[Parameters]) -> Json:
    """Key -> default, bounds and named values, of each parameter."""
    found: Json = {}
    for name, field in model.model_fields.items():
        values = {one.value for kind in _types(field.annotation) if issubclass(kind, Enum) for one in kind}
        bounds = {key: getattr(one, key) for one in field.metadata for key in BOUNDS if hasattr(one, key)}
        found[name] = {"default": _default(field), **_plain(bounds), **({"values": _plain(values)} if values else {})}
    return found


def _types(annotation: Any) -> list[type]:
    inner = [one for part in get_args(annotation) for one in _types(part)]
    return [annotation, *inner] if isinstance(annotation, type) and not get_args(annotation) else inner


def _default(field: FieldInfo) -> Any:
    value = field.get_default(call_default_factory=not field.is_required())
    return "required" if value is PydanticUndefined else _plain(value)


def profiles(plugins: Plugins) -> Json:
    """Each profile with its scenarios, and what they set to another value than the default."""
    loaded = {info.name: load_profile(info.name, plugins) for info in list_profiles() if info.builtin}
    defaults = {kind: trial(plugins, kind)["parameters"] for kind in plugins.kinds()}
    return {
        name: {
            "kind": one.kind,
            "repeats": one.repeats,
            "scenarios": {
                scenario.name: {
                    key: value
                    for key, value in _plain(scenario.parameters).items()
                    if value != defaults[one.kind][key]["default"]
                }
                for scenario in one.scenarios
            },
        }
        for name, one in loaded.items()
    }


def json_keys(folder: Path) -> dict[str, list[str]]:
    """Command -> paths of the keys in what it writes as JSON about runs of version 0.1.0, lists as `[]`."""
    database = folder / "interface.db"
    shutil.copy(GOLDEN, database)
    found = {}
    for name, words in JSON_COMMANDS.items():
        written = io.StringIO()
        arguments = [str(folder / word) if word.endswith(".json") else word for word in words]
        with contextlib.redirect_stdout(written):
            code = main([*arguments, "--db", str(database)])
        assert code == exit_codes.FINISHED, written.getvalue()
        files = [Path(word) for word in arguments if word.endswith(".json")]
        found[name] = sorted(set(_paths(json.loads(files[0].read_text() if files else written.getvalue()))))
    return found


def _paths(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}"
            yield from _paths(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{path}[]")


def _plain(value: Any) -> Any:
    """As JSON would bring it back."""
    if isinstance(value, range | frozenset | set):
        value = sorted(value)
    return json.loads(json.dumps(value, default=str))


def written(recorded: Json) -> str:
    """As JSON with one line for each command, trial and so on, so that a difference shows which one has changed."""
    sections = []
    for section, entries in sorted(recorded.items()):
        if isinstance(entries, dict):
            lines = [f"  {json.dumps(name)}: {json.dumps(entries[name], sort_keys=True)}" for name in sorted(entries)]
            sections.append(f" {json.dumps(section)}: {{\n" + ",\n".join(lines) + "\n }")
        else:
            sections.append(f" {json.dumps(section)}: {json.dumps(entries)}")
    return "{\n" + ",\n".join(sections) + "\n}\n"
