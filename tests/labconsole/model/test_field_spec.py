"""What forms and the reference say of a field's bounds: exactly what the model permits."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import Field, create_model

from labconsole.model.field_spec import fields_of


@pytest.mark.parametrize(
    ("kind", "bounds", "shown"),
    [
        (int, {"ge": 1, "le": 100_000}, "1 – 100,000"),
        (float, {"ge": 0.1, "le": 86_400}, "0.1 – 86,400"),
        (float, {"ge": 12_345.678}, "≥ 12,345.678"),
        (float, {"gt": 0, "le": 1_000_000}, "> 0, ≤ 1,000,000"),
        (float, {}, ""),
    ],
)
def test_bounds_are_written_as_they_are(kind: type, bounds: dict[str, float], shown: str) -> None:
    annotated: Any = Annotated[kind, Field(**bounds)]
    [spec] = fields_of(create_model("Example", value=(annotated, 1)))
    assert spec.bounds == shown
