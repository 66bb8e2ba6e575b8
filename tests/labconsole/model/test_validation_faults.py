"""Values of a wrong kind are refused in words of the console, not of Python."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from labconsole.model.validation_faults import fault_sentence


class _Values(BaseModel):
    model_config = ConfigDict(strict=True)

    count: int = 0
    rate: float = 0.0
    capture: bool = False
    name: str = ""
    hosts: tuple[str, ...] = ()
    ports: list[int] = []


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("count", 1.5, "count: input should be a whole number (it is 1.5)."),
        ("rate", "fast", "rate: input should be a number (it is 'fast')."),
        ("capture", "maybe", "capture: input should be true or false (it is 'maybe')."),
        ("name", 7, "name: input should be a text (it is 7)."),
        ("hosts", "a", "hosts: input should be a list, such as [1, 2] or [\"a\"] (it is 'a')."),
        ("ports", 7, 'ports: input should be a list, such as [1, 2] or ["a"] (it is 7).'),
    ],
)
def test_value_of_a_wrong_kind_is_refused_in_plain_words(key: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        _Values.model_validate({key: value})
    assert fault_sentence(caught.value, _Values) == sentence
