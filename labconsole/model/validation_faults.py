"""Faults of a file or of values as sentences: the key, and the nearest right name for a wrong one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

_WANTED = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), 'a list, such as [1, 2] or ["a"]'),
    "string_type": "a text",
    "model_type": "a table",
}
"""What should have been given, by pydantic's type of the fault: its own sentences speak of Python."""


def nearest(name: str, choices: Iterable[str]) -> str:
    """The end of a sentence on a wrong `name`: the closest of the choices, or all of them."""
    options = sorted(choices)
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; there are: {', '.join(options)}."


def fault_sentence(error: ValidationError, model: type[BaseModel]) -> str:
    """The first fault that pydantic found, as a sentence with the key and the nearest right name."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        *parents, last = first["loc"]
        return f"there is no key {key}{nearest(str(last), _model_at(model, parents).model_fields)}"
    if first["type"] == "missing":
        return f"the key {key} is missing."
    wanted = _WANTED.get(first["type"])
    message = f"input should be {wanted}" if wanted else first["msg"].removeprefix("Value error, ")
    if message[1:2].islower():  # else it begins with a name such as AWS-LC
        message = message[0].lower() + message[1:]
    # The message of the model's own validator is complete, and its input may be a default.
    own = first["type"] == "value_error" or isinstance(first["input"], (dict, list))
    given = "" if own else f" (it is {first['input']!r})"
    return f"{key}: {message}{given}." if key else f"{message}."


def _model_at(model: type[BaseModel], path: Sequence[int | str]) -> type[BaseModel]:
    """The model at `path` (as in `ValidationError.errors`) inside `model`."""
    for part in path:
        field = model.model_fields.get(str(part))
        if field is not None:
            model = next(kind for kind in annotation_types(field.annotation) if issubclass(kind, BaseModel))
    return model


def annotation_types(annotation: Any) -> Iterator[type]:
    """The classes that a type annotation is made of: `dict[str, Threshold]` gives dict, str, Threshold."""
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for argument in get_args(annotation):
        yield from annotation_types(argument)
