"""A command that a trial lets the operator send into a run in progress: its name, its parameters, and its receiver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pydantic import ValidationError

from labconsole.errors import UserError
from labconsole.model.parameters import Parameters, secret_fields


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
        if secrets := list(secret_fields(self.parameters, with_files=True)):
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
