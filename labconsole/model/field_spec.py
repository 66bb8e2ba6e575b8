"""Description of each parameter for forms and reference pages, read from the pydantic model."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from labconsole.analysis.parameter_texts import listed


class FieldKind(enum.StrEnum):
    """How a parameter is entered."""

    INTEGER = "integer"
    PORT = "port"
    """A whole number that is a name: written without separators."""
    NUMBER = "number"
    TEXT = "text"
    HOST = "host"
    FILE = "file"
    NEW_FILE = "new-file"
    """A file to write; one that exists stays as it is."""
    SECRET_FILE = "secret-file"
    FOLDER = "folder"
    CHOICE = "choice"
    OPEN_CHOICE = "open-choice"
    """One of the suggestions, or the path of a file."""
    FLAG = "flag"
    GROUP = "group"
    TABLE = "table"
    LIST = "list"


@dataclass(frozen=True)
class FieldSpec:
    """One parameter as the form shows it; `default` is plain JSON.

    `minimum` and `maximum` are inclusive unless the matching `exclusive_*` says otherwise. `shown_if` maps names of
    fields to the values with which this one matters. `fields` are those of a nested model or of a table's row.
    """

    name: str
    title: str
    description: str
    kind: FieldKind
    default: Any
    unit: str = ""
    group: str = ""
    optional: bool = False
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    choices: tuple[tuple[Any, str], ...] = ()
    shown_if: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    fields: tuple[FieldSpec, ...] = ()
    empty: str = ""
    """The meaning of an empty field, shown in it."""

    @property
    def bounds(self) -> str:
        """The permitted range as `1 – 100,000`, `≥ 1`, or nothing."""
        write = str if self.kind is FieldKind.PORT else "{:,.15g}".format  # exact, unlike figures
        low = "" if self.minimum is None else write(self.minimum)
        high = "" if self.maximum is None else write(self.maximum)
        if low and high and not (self.exclusive_minimum or self.exclusive_maximum):
            return f"{low} – {high}"
        parts = []
        if low:
            parts.append(f"{'>' if self.exclusive_minimum else '≥'} {low}")
        if high:
            parts.append(f"{'<' if self.exclusive_maximum else '≤'} {high}")
        return ", ".join(parts)


def fields_of(model: type[BaseModel]) -> tuple[FieldSpec, ...]:
    """The parameters of `model` in their order. Raises TypeError for a type that no form can show.

    One that is `terminal_only` (a confirmation, for which the window has its own question) is left out.
    """
    return tuple(
        _spec(name, info) for name, info in model.model_fields.items() if not _extra(info).get("terminal_only")
    )


def _spec(name: str, info: FieldInfo) -> FieldSpec:
    extra = _extra(info)
    annotation, optional = _without_none(info.annotation)
    metadata = list(info.metadata)
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, *more = typing.get_args(annotation)
        metadata += more
    kind, choices, rows = _kind(annotation, extra)
    bounds = _bounds(metadata)
    return FieldSpec(
        name=name,
        title=info.title or name.replace("_", " ").capitalize(),
        description=info.description or "",
        kind=kind,
        default=_default(info),
        unit=str(extra.get("unit", "")),
        group=str(extra.get("group", "")),
        empty=str(extra.get("empty", "")),
        optional=optional,
        choices=tuple((None, str(extra.get("empty", "—"))) for _ in range(optional and kind is FieldKind.CHOICE))
        + choices,
        shown_if={other: _values(wanted) for other, wanted in extra.get("shown_if", {}).items()},
        fields=rows,
        **bounds,
    )


def _extra(info: FieldInfo) -> Mapping[str, Any]:
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def _kind(
    annotation: Any, extra: Mapping[str, Any]
) -> tuple[FieldKind, tuple[tuple[Any, str], ...], tuple[FieldSpec, ...]]:
    """How a value of this type is entered; its choices; the fields within it."""
    origin = typing.get_origin(annotation)
    labels: Mapping[str, str] = extra.get("labels", {})
    if origin is typing.Literal:
        return FieldKind.CHOICE, tuple((value, _label(value, labels)) for value in typing.get_args(annotation)), ()
    if origin in (list, tuple, Sequence):
        item = typing.get_args(annotation)[0]
        if typing.get_origin(item) is typing.Annotated:
            item = typing.get_args(item)[0]
        if isinstance(item, type) and issubclass(item, BaseModel):
            return FieldKind.TABLE, (), fields_of(item)
        kind, choices, _ = _kind(item, {})
        return FieldKind.LIST, (), (FieldSpec("value", "", "", kind, "", choices=choices),)
    if annotation is str and "choices" in extra:
        kind = FieldKind(extra.get("kind", FieldKind.OPEN_CHOICE))
        return kind, tuple((value, labels.get(value, str(value))) for value in listed(extra["choices"])), ()
    if not isinstance(annotation, type):
        raise TypeError(f"no form for a parameter of type {annotation}")
    if issubclass(annotation, BaseModel):
        return FieldKind.GROUP, (), fields_of(annotation)
    if issubclass(annotation, enum.Enum):
        offered = extra.get("choices", [entry.value for entry in annotation])
        return FieldKind.CHOICE, tuple((value, _label(value, labels)) for value in listed(offered)), ()
    if issubclass(annotation, Path):
        return FieldKind(extra.get("kind", "file")), (), ()
    for python_type, kind in (
        (bool, FieldKind.FLAG),
        (int, FieldKind.PORT if extra.get("kind") == "port" else FieldKind.INTEGER),
        (float, FieldKind.NUMBER),
        (str, FieldKind(extra.get("kind", "text"))),
    ):
        if issubclass(annotation, python_type):
            return kind, (), ()
    raise TypeError(f"no form for a parameter of type {annotation}")


def _without_none(annotation: Any) -> tuple[Any, bool]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        others = [part for part in typing.get_args(annotation) if part is not type(None)]
        if len(others) == 1:
            return others[0], True
    return annotation, False


def _bounds(metadata: Sequence[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in metadata:
        if isinstance(entry, annotated_types.Ge):
            found["minimum"] = entry.ge
        elif isinstance(entry, annotated_types.Gt):
            found |= {"minimum": entry.gt, "exclusive_minimum": True}
        elif isinstance(entry, annotated_types.Le):
            found["maximum"] = entry.le
        elif isinstance(entry, annotated_types.Lt):
            found |= {"maximum": entry.lt, "exclusive_maximum": True}
    return found


def _default(info: FieldInfo) -> Any:
    value = info.get_default(call_default_factory=True, validated_data={})
    return None if value is PydanticUndefined else to_jsonable_python(value)


def _values(wanted: Any) -> tuple[Any, ...]:
    wanted = listed(wanted)
    return tuple(wanted) if isinstance(wanted, list | tuple) else (wanted,)


def _label(value: Any, labels: Mapping[str, str]) -> str:
    if str(value) in labels:
        return labels[str(value)]
    text = str(value).replace("_", " ")
    return text[:1].upper() + text[1:]
