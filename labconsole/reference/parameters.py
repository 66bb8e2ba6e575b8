"""The parameters of a model as a table of Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from labconsole.model.field_spec import FieldKind, FieldSpec, fields_of
from labconsole.reference.markdown import code, sentence, table

_HEADINGS = ("Parameter", "Title", "Values", "Default", "Meaning")
_KINDS = {
    FieldKind.TEXT: "text",
    FieldKind.HOST: "host name or address",
    FieldKind.FILE: "path of a file",
    FieldKind.NEW_FILE: "path of a new file",
    FieldKind.SECRET_FILE: "path of a file",
    FieldKind.FOLDER: "path of a folder",
    FieldKind.INTEGER: "whole number",
    FieldKind.PORT: "port",
    FieldKind.NUMBER: "number",
    FieldKind.FLAG: "`true`, `false`",
    FieldKind.LIST: "list",
    FieldKind.TABLE: "table",
}


def parameter_tables(model: type[BaseModel]) -> str:
    """A table for each group of the form, below its title; one table where there are no groups."""
    groups: dict[str, list[FieldSpec]] = {}
    for spec in _flat(fields_of(model)):
        groups.setdefault(spec.group, []).append(spec)
    parts = []
    for title, specs in groups.items():
        parts += [f"### {title}"] if title else []
        parts.append(table(_HEADINGS, map(_row, specs)))
    return "\n\n".join(parts)


def _flat(specs: Iterable[FieldSpec], path: str = "", group: str = "") -> Iterator[FieldSpec]:
    """The fields, those of nested models under the names that a profile gives them: `sender.key`."""
    for spec in specs:
        spec = replace(spec, name=f"{path}{spec.name}", group=spec.group or group)
        if spec.kind is FieldKind.GROUP:
            yield from _flat(spec.fields, f"{spec.name}.", spec.group or spec.title)
        else:
            yield spec


def _row(spec: FieldSpec) -> tuple[str, str, str, str, str]:
    return code(spec.name), spec.title, _values(spec), _default(spec), f"{sentence(spec.description)}{_condition(spec)}"


def _values(spec: FieldSpec) -> str:
    if spec.choices:
        offered = [_choice(value, label) for value, label in spec.choices if value not in (None, "")]
        if spec.kind is FieldKind.OPEN_CHOICE:
            offered.append("or a text")
        return ", ".join(offered)
    if spec.kind is FieldKind.TABLE:
        return f"table of {', '.join(field.name for field in spec.fields)}"
    kind = spec.bounds or _KINDS.get(spec.kind, str(spec.kind))
    return f"{kind} {spec.unit}".strip()


def _choice(value: Any, label: str) -> str:
    plain = str(value).replace("-", " ").replace("_", " ").lower()
    return code(str(value)) if label.lower() in (plain, str(value).lower()) else f"{code(str(value))} ({label})"


def _default(spec: FieldSpec) -> str:
    if spec.default in (None, "", []):
        return ""
    return code(spec.default if isinstance(spec.default, str) else json.dumps(spec.default))


def _condition(spec: FieldSpec) -> str:
    """With which values of other parameters it matters."""
    parts = [
        f"{code(name)} is {' or '.join(code(json.dumps(value)) for value in values)}"
        for name, values in spec.shown_if.items()
        if values
    ]
    return f" Only if {' and '.join(parts)}." if parts else ""
