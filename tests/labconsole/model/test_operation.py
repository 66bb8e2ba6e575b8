"""Operations as they are declared: what their parameters may not hold."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, SecretStr

from labconsole.model.operation import Operation, OperationContext
from labconsole.model.parameters import Parameters


class _Login(BaseModel):
    password: SecretStr = SecretStr("")


class _Plain(Parameters):
    pin: SecretStr | None = None


class _Nested(Parameters):
    logins: tuple[_Login, ...] = ()


class _File(Parameters):
    pin_file: str = Field("", json_schema_extra={"kind": "secret-file"})


def _declare(model: type[Parameters]) -> type[Operation[Parameters]]:
    class Declared(Operation[Parameters]):
        name, title, description, parameters = "test.declared", "Declared", "Does nothing.", model

        def run(self, parameters: Parameters, context: OperationContext) -> str:
            return ""

    return Declared


@pytest.mark.parametrize(("model", "field"), [(_Plain, "pin"), (_Nested, "logins.password")])
def test_a_secret_is_refused_as_a_parameter_of_an_operation(model: type[Parameters], field: str) -> None:
    with pytest.raises(TypeError, match=rf"Declared: {field} is a secret.*Operation.secrets"):
        _declare(model)


def test_an_operation_may_have_the_file_of_a_secret_as_parameter() -> None:
    assert _declare(_File).parameters is _File
