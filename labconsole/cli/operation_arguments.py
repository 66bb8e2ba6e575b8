"""The arguments of an operation's command, made from its parameter model, and the parameters from the parsed arguments.

A field becomes an option named after it. Its `json_schema_extra` may say otherwise: `option` (`"--days"`), `aliases`,
`positional`, `metavar`, `given` (the value of an option without one, of a field that is not a flag),
`required` (it must be typed, though the form begins with the default), `choices` (which values of an enumeration are
offered).
"""

from __future__ import annotations

import argparse
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from labconsole.model.parameters import Parameters
from labconsole.model.validation_faults import fault_sentence


@dataclass(frozen=True)
class _Argument:
    """A field as an argument; `path` is where its value belongs in the parameters."""

    path: tuple[str, ...]
    info: FieldInfo
    kind: Any
    """The annotation, without None and `Annotated`."""

    @property
    def extra(self) -> Mapping[str, Any]:
        return self.info.json_schema_extra if isinstance(self.info.json_schema_extra, dict) else {}

    @property
    def destination(self) -> str:
        return "parameter " + ".".join(self.path)

    @property
    def option(self) -> str:
        """Its name on the terminal: `--days`, or `STATE` for a positional one."""
        if self.extra.get("positional"):
            return self.metavar
        return str(self.extra.get("option", "--" + "-".join(self.path).replace("_", "-")))

    @property
    def metavar(self) -> str:
        if "metavar" in self.extra:
            return str(self.extra["metavar"])
        if self.extra.get("positional") or self.choices:
            return self.path[-1].upper()
        kind = self.item or self.kind
        if isinstance(kind, type) and issubclass(kind, Path):
            return "DIR" if self.extra.get("kind") == "folder" else "FILE"
        return "N" if kind in (int, float) else "TEXT"

    @property
    def item(self) -> Any:
        """The type of the entries of a list; None for other types."""
        return _bare(typing.get_args(self.kind)[0]) if typing.get_origin(self.kind) in (tuple, list) else None

    @property
    def choices(self) -> tuple[str, ...]:
        kind = self.item or self.kind
        if typing.get_origin(kind) is typing.Literal:
            return tuple(map(str, typing.get_args(kind)))
        if not isinstance(kind, type) or not issubclass(kind, Enum):
            return ()
        return tuple(map(str, self.extra.get("choices", [one.value for one in kind])))

    @property
    def default(self) -> Any:
        """As plain JSON."""
        value = self.info.get_default(call_default_factory=True, validated_data={})
        return None if value is PydanticUndefined else to_jsonable_python(value)


def add_arguments(parser: argparse.ArgumentParser, model: type[Parameters]) -> None:
    """Add an argument for each field of `model`; those of a group of the form are below its title in the help."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for argument in _arguments(model):
        extra, default = argument.extra, argument.default
        about: dict[str, Any] = {"default": default, "help": _help(argument)}
        required = argument.info.is_required() or bool(extra.get("required"))
        if extra.get("positional"):
            nargs = {(True, True): "+", (True, False): "*", (False, False): "?"}.get((bool(argument.item), required))
            about |= {"metavar": argument.metavar} | ({"nargs": nargs} if nargs else {})
            about |= {"choices": argument.choices} if argument.choices and not argument.item else {}
            parser.add_argument(argument.destination, **about)
            continue
        about |= {"dest": argument.destination, "required": required}
        if argument.kind is bool:
            about["action"] = "store_true"
        elif "given" in extra:
            about |= {"action": "store_const", "const": extra["given"], "default": False}
        else:
            about |= {"metavar": argument.metavar} | ({"action": "append"} if argument.item else {})
            if argument.choices:
                about["choices"] = argument.choices
        group = str(extra.get("group", ""))
        if group and group not in groups:
            groups[group] = parser.add_argument_group(group)
        groups.get(group, parser).add_argument(argument.option, *extra.get("aliases", ()), **about)


def parameters_of(arguments: argparse.Namespace, model: type[Parameters]) -> Parameters:
    """The parameters that were typed. Raises ValueError: the sentence names the argument as it is typed."""
    values: dict[str, Any] = {}
    known = list(_arguments(model))
    for argument in known:
        value = getattr(arguments, argument.destination)
        if value is not None and not (value is False and "given" in argument.extra):
            inner = values
            for part in argument.path[:-1]:
                inner = inner.setdefault(part, {})
            inner[argument.path[-1]] = value
    try:
        return model.model_validate(values)
    except ValidationError as error:
        sentence = fault_sentence(error, model)
        for argument in known:
            name = re.escape(".".join(argument.path))
            sentence = re.sub(rf"\b{name}(\.\d+)?: ", f"{argument.option}: ", sentence, count=1)
        raise ValueError(sentence) from error


def _arguments(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[_Argument]:
    for name, info in model.model_fields.items():
        kind = _bare(info.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _arguments(kind, (*path, name))
        else:
            yield _Argument((*path, name), info, kind)


def _bare(annotation: Any) -> Any:
    """The type within `Annotated` and `| None`."""
    while typing.get_origin(annotation) in (typing.Annotated, typing.Union, types.UnionType):
        inner, *others = [part for part in typing.get_args(annotation) if part is not type(None)]
        if others and typing.get_origin(annotation) is not typing.Annotated:
            return annotation
        annotation = inner
    return annotation


def _help(argument: _Argument) -> str:
    about = (argument.info.description or argument.info.title or "").replace("%", "%%")
    about = about[:1].lower() + about[1:] if about[1:2].islower() else about
    if argument.choices and "given" not in argument.extra:
        about = f"{about}: {', '.join(argument.choices)}"
    if argument.item and not argument.extra.get("positional"):
        about = f"{about}; may be repeated"
    default = argument.default
    silent = default in (None, "", [], False) or argument.extra.get("required")
    return about if silent else f"{about} (default: {default})"
