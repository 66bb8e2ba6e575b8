"""Base of the parameter models of trials; offered by `labconsole.model.trial`, which imports it on demand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

STORED = "stored"
"""In the context of a validator: the parameters are those of a run of the database."""


class Parameters(BaseModel):
    """Base of every trial's parameter model: unknown keys are refused, values cannot change.

    Fields carry `title`, `description` and bounds; their unit, group, and what they depend on stand in
    `json_schema_extra` (`{"unit": "msg/s", "group": "Load", "shown_if": {"loop": "open"}}`): the form is made of them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> Self:
        """The parameters of a run as they were stored: what they name, such as a file, may be gone by now, and a
        validator sees `STORED` in its `info.context`. Raises ValidationError."""
        return cls.model_validate(dict(values), context={STORED: True})
