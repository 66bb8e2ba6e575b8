"""A command that a trial lets the operator send into a run in progress: its name, its parameters, and its receiver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr, ValidationError

from labconsole.errors import UserError
from labconsole.model.parameters import Parameters
from labconsole.model.validation_faults import annotation_types


@dataclass(frozen=True)
class TrialCommand:
    """A command of a trial: `title` is its label in menu and dialog, `description` its effect.

    `roles` are the names of the roles to one of which it is sent, with `*` and `?` as in file names (`station-*`);
    without any it goes to the trial's own `run`. Raises ValueError for a parameter that is a secret: commands are
    recorded.
    """

    name: str
    title: str
    description: str
    parameters: type[Parameters] = Parameters
    roles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if secrets := list(_secrets(self.parameters)):
            raise ValueError(
                f"command {self.name}: {', '.join(secrets)} is a secret, and commands are recorded with their "
                "parameters; declare it in `Trial.secrets`"
            )

    def takes(self, role: str) -> bool:
        """Whether the command may be sent to the role of this name."""
        return any(fnmatchcase(role, pattern) for pattern in self.roles)

    def validated(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters as plain JSON, as the model has them. Raises UserError."""
        try:
            return self.parameters.model_validate(dict(parameters)).model_dump(mode="json")
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise UserError(f"{self.title} was not delivered: {where or 'its parameters'}: {first['msg']}.") from error
        except Exception as error:  # a validator is foreign code, and must not end the reading thread
            raise UserError(f"{self.title} was not delivered: {type(error).__name__}: {error}.") from error


def _secrets(model: type[BaseModel]) -> Iterator[str]:
    """Names of the model's fields that hold a secret, those of nested models included."""
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        types = list(annotation_types(field.annotation))
        marked = str(extra.get("kind", "")).startswith("secret") or bool(extra.get("secret"))
        if marked or any(one in (SecretStr, SecretBytes) for one in types):
            yield name
        for one in types:
            if issubclass(one, BaseModel):
                yield from (f"{name}.{inner}" for inner in _secrets(one))
