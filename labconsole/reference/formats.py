"""The reference pages of file formats: profiles, timing profiles, published figures, the JSON of a run."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterable, Iterator
from enum import Enum
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from labconsole.analysis import published_figures
from labconsole.model.plugin import Plugins
from labconsole.output import run_json
from labconsole.profiles import host_list, profile, timing_profile
from labconsole.profiles.profile import list_profiles, load_profile
from labconsole.profiles.profile_file import ProfileFile
from labconsole.profiles.timing_profile import TimingProfile
from labconsole.reference.markdown import code, page, sentence, table


def format_pages(plugins: Plugins) -> dict[str, str]:
    """Page -> text of each format, and of the profiles that come with the console."""
    return {
        "reference/profiles.md": _profiles_page(plugins),
        "reference/profile-format.md": page(
            "# Profile format",
            _docstring(profile),
            "[Write a profile](../how-to/write-a-profile.md) has the steps. All keys:",
            _key_tables(ProfileFile),
            "## Host lists",
            _docstring(host_list),
        ),
        "reference/timing-profile-format.md": page(
            "# Timing profile format",
            _docstring(timing_profile),
            "[Emulate your own device](../how-to/emulate-your-device.md) creates one from measurements. All keys:",
            _key_tables(TimingProfile),
        ),
        "reference/published-format.md": page(
            "# Format of published figures",
            _docstring(published_figures),
            "## Tables that come with the console",
            table(("Table", "Title", "Reference"), _published_rows(plugins)),
        ),
        "reference/run-json.md": page("# Keys of the JSON export", _docstring(run_json)),
    }


def _docstring(module: ModuleType) -> str:
    """What the module says of its format."""
    text = inspect.cleandoc(module.__doc__ or "")
    return text if text.startswith("```") else sentence(text.partition("\n")[0]) + "\n" + text.partition("\n")[2]


def _profiles_page(plugins: Plugins) -> str:
    rows = []
    for info in sorted(filter(lambda info: info.builtin, list_profiles()), key=lambda info: (info.kind, info.name)):
        loaded = load_profile(info.name, plugins)
        runs = f"{len(loaded.scenarios)} x {loaded.repeats}"
        rows.append((code(info.name), info.title, code(info.kind), runs, sentence(loaded.description)))
    return page(
        "# Profiles that come with the console",
        "`labconsole run NAME` runs one; in the window each is a preset of its trial. Runs are scenarios x repeats.",
        table(("Profile", "Title", "Trial", "Runs", "What it does"), rows),
    )


def _published_rows(plugins: Plugins) -> Iterator[tuple[str, ...]]:
    for one in published_figures.published_tables(plugins):
        yield code(one.name), one.title, one.reference


def _key_tables(model: type[BaseModel]) -> str:
    """The keys of a model, then those of the tables in it, each once."""
    known: list[type[BaseModel]] = [model]
    parts = []
    for one in known:
        for inner in _models_in(one):
            known += [inner] if inner not in known else []
        if one is not model:
            parts += [f"### {one.__name__}", inspect.cleandoc(one.__doc__ or "")]
        parts.append(table(("Key", "Type", "Default", "Meaning"), _key_rows(one)))
    return "\n\n".join(parts)


def _key_rows(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    for name, info in model.model_fields.items():
        default = "" if info.is_required() or info.default in (None, "", {}, [], ()) else code(_plain(info.default))
        required = "required" if info.is_required() else ""
        yield code(name), _type_text(info.annotation), default or required, info.description or ""


def _plain(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)


def _type_text(annotation: Any) -> str:
    arguments = [one for one in typing.get_args(annotation) if one is not type(None)]
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType, typing.Annotated):
        return _type_text(arguments[0])
    if origin in (list, tuple):
        return f"list of {_type_text(arguments[0])}"
    if origin is dict:
        inner = _type_text(arguments[1])
        return "table" if inner == "any value" else f"table of {inner}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(code(str(one.value)) for one in annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
    names = {str: "text", int: "whole number", float: "number", bool: "`true`, `false`"}
    return names.get(annotation, "any value")


def _models_in(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for info in model.model_fields.values():
        yield from _models_of(info.annotation)


def _models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    inner: Iterable[Any] = typing.get_args(annotation)
    for one in inner:
        yield from _models_of(one)
