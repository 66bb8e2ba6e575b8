"""Parameter models of trials and operations: their base class, and the one way to define a field.

`labconsole.model.trial` offers `Parameters` too, and imports it on demand: pydantic is not needed to start a role.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypedDict, Unpack

from pydantic import BaseModel, ConfigDict, Field, SecretBytes, SecretStr

from labconsole.model.validation_faults import annotation_types

STORED = "stored"
"""In the context of a validator: the parameters are those of a run of the database."""


class Parameters(BaseModel):
    """Base of every parameter model: unknown keys are refused, values cannot change. Fields are made by `parameter`."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, defer_build=True)
    """A validator is built when the first values are checked: a role reads the titles of fields alone."""

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> Self:
        """The parameters of a stored run, or of a published one, which none will start here. Raises ValidationError.

        A file that they name may be missing by now: a validator sees `STORED` in its `info.context`.
        """
        return cls.model_validate(dict(values), context={STORED: True})


class Bounds(TypedDict, total=False):
    """Which values a field accepts, as pydantic's `Field` has them."""

    ge: float
    gt: float
    le: float
    lt: float
    min_length: int
    max_length: int
    pattern: str


class Hints(TypedDict, total=False):
    """What form, command and reference know of a field besides its type, title and description.

    Attributes:
        group: The heading below which the form shows it.
        unit: The unit of its value, such as `msg/s`.
        kind: How it is edited: `file`, `folder`, `save-file`, `secret-file`, `host`, `port`, `token`, `choice` ...
        choices: Values to choose from, or a function that lists them.
        labels: The text of each value that is not shown as it is.
        shown_if: Values of other fields with which it has an effect; it is hidden otherwise.
        empty: What the form shows where the value is empty.
        option: Its option on the terminal, where that is not made of its name; `aliases` are further ones.
        positional: It is given on the terminal without an option.
        metavar: Its value in the help of the command.
        required: The command asks for it although it has a default.
        given: The value that its option sets, for an option without a value.
        terminal_only: The form does not show it.
    """

    group: str
    unit: str
    kind: str
    choices: Sequence[str] | Callable[[], Sequence[str]]
    labels: Mapping[Any, str]
    shown_if: Mapping[str, Any]
    empty: str
    option: str
    aliases: Iterable[str]
    positional: bool
    metavar: str
    required: bool
    given: Any
    terminal_only: bool


class FieldSettings(Bounds, Hints, total=False):
    """All keyword arguments of `parameter`."""


def parameter(title: str, description: str, *, default: Any = ..., **settings: Unpack[FieldSettings]) -> Any:
    """The field of a parameter model: `count: int = parameter("Messages", "Messages to send", default=10, ge=1)`.

    Without `default` a value is required, unless a class that uses `Annotated[int, parameter(...)]` gives one.
    """
    bounds: dict[str, Any] = {key: value for key, value in settings.items() if key in Bounds.__annotations__}
    hints: dict[str, Any] = {key: value for key, value in settings.items() if key not in bounds}
    return Field(default, title=title, description=description, json_schema_extra=hints or None, **bounds)


def secret_fields(model: type[BaseModel], *, with_files: bool = False) -> Iterator[str]:
    """Names of the model's fields that hold a secret, those of nested models included.

    `with_files`: also those that name a file with one.
    """
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        types = list(annotation_types(field.annotation))
        marked = bool(extra.get("secret")) or (with_files and str(extra.get("kind", "")).startswith("secret"))
        if marked or any(one in (SecretStr, SecretBytes) for one in types):
            yield name
        for one in types:
            if issubclass(one, BaseModel):
                yield from (f"{name}.{inner}" for inner in secret_fields(one, with_files=with_files))
