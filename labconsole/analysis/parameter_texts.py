"""A run's parameters as text for people: titles and units from the trial's model, values as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from labconsole.analysis.number_format import format_number


@dataclass(frozen=True)
class ParameterValue:
    """One parameter of a run. `name` is dotted where models are nested; `changed` is whether it differs from the
    default."""

    name: str
    title: str
    unit: str
    description: str
    group: str
    text: str
    changed: bool


def value_text(value: Any) -> str:
    """A parameter's value as text: `yes`/`no`, numbers with separators, lists with commas, nothing as `–`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value == "":
        return "–"
    if isinstance(value, int | float):
        return format_number(value)
    if isinstance(value, list | tuple):
        return ", ".join(value_text(item) for item in value) or "–"
    return str(value)


def in_effect(name: str, parameters: Mapping[str, Any], model: type[BaseModel]) -> bool:
    """Whether `name` has an effect in a scenario with these `parameters` (as stored): its `shown_if` holds."""
    field = model.model_fields.get(name)
    extra = field.json_schema_extra if field is not None else None
    conditions: Any = extra.get("shown_if", {}) if isinstance(extra, dict) else {}
    return all(
        parameters.get(other) in (wanted if isinstance(wanted, list | tuple) else [wanted])
        for other, wanted in ((other, listed(wanted)) for other, wanted in conditions.items())
    )


def listed(values: Any) -> Any:
    """The present values of a field's `choices` or `shown_if`: a function returns those that change while a form is
    used."""
    return values() if callable(values) else values


def describe_parameters(
    parameters: Mapping[str, Any], model: type[BaseModel] | None = None
) -> tuple[ParameterValue, ...]:
    """All `parameters` in the model's order; unknown ones (of an older trial, say) follow under their own name."""
    return tuple(_describe(parameters, model, "", ""))


def describe_hosts(hosts: str) -> ParameterValue:
    """The hosts that a scenario asks for, in words (`RunRow.hosts`), as they are shown next to its parameters."""
    return ParameterValue(
        "hosts",
        "Hosts",
        "",
        "Hosts that the roles ask for; other roles run on the console's computer",
        "",
        hosts or "this computer",
        bool(hosts),
    )


def _describe(
    parameters: Mapping[str, Any], model: type[BaseModel] | None, prefix: str, heading: str
) -> Iterator[ParameterValue]:
    fields = model.model_fields if model is not None else {}
    names = [name for name in fields if name in parameters] + [name for name in parameters if name not in fields]
    for name in names:
        value = parameters[name]
        field = fields.get(name)
        title = (field.title if field is not None else None) or name.replace("_", " ")
        if isinstance(value, Mapping):
            annotation: Any = field.annotation if field is not None else None
            nested = annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
            yield from _describe(value, nested, f"{prefix}{name}.", f"{heading}{title}: ")
            continue
        extra = field.json_schema_extra if field is not None else None
        extra = extra if isinstance(extra, dict) else {}
        default = field.get_default(call_default_factory=True, validated_data={}) if field else PydanticUndefined
        yield ParameterValue(
            f"{prefix}{name}",
            f"{heading}{title}",
            str(extra.get("unit", "")),
            (field.description if field is not None else None) or "",
            str(extra.get("group", "")),
            str(value) if extra.get("kind") == "port" else value_text(value),
            default is not PydanticUndefined and _plain(default) != _plain(value),
        )


def _plain(value: Any) -> Any:
    """`value` as it is in stored JSON."""
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return str(value) if not isinstance(value, bool | int | float | None) else value
