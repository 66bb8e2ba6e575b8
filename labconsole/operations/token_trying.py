"""Looks at a token, logs in, and tries what it does: `labconsole hsm doctor`."""

from __future__ import annotations

from typing import Annotated, ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.trial import Parameters
from labconsole.operations.configured_tokens import token_name
from labconsole.operations.token_doctor import all_needed_is_there, report, report_data
from labconsole.security.secrets import Secret, SecretRequest
from labconsole.security.token.configuration import LAB, is_lab
from labconsole.security.token.errors import TokenError
from labconsole.security.token.inspection import inspect_token
from labconsole.security.token.named_tokens import find_configuration


class TryTokenParameters(Parameters):
    """Which token is tried."""

    token: Annotated[str, token_name(positional=True, metavar="NAME")] = LAB


class TryToken(Operation[TryTokenParameters]):
    """Looks at a token and tries it."""

    name: ClassVar[str] = "tokens.doctor"
    title: ClassVar[str] = "Try a token"
    description: ClassVar[str] = (
        "Looks at a token, logs in, and tries what a key pool needs. What it creates in the token for that is gone "
        "afterwards."
    )
    parameters: ClassVar[type[Parameters]] = TryTokenParameters

    def secrets(self, parameters: TryTokenParameters) -> tuple[SecretRequest, ...]:
        name = parameters.token
        # Nobody knows the PIN of a lab token, which is random.
        return () if is_lab(name) else (find_configuration(name).pin_request(name),)

    def run(self, parameters: TryTokenParameters, context: OperationContext) -> Result:
        name = parameters.token
        configuration = find_configuration(name)
        request = configuration.pin_request(name)
        pin: Secret | None = context.secret(request.key)
        no_pin = ""
        try:
            pin = pin or request.resolve()
        except UserError as error:
            no_pin = str(error)
        inspection = inspect_token(name, configuration, pin)
        if inspection.overview is None:
            raise TokenError(inspection.problem)
        warnings = (f"{inspection.problem} {no_pin}".rstrip(),) if inspection.problem else ()
        return Result(report(inspection), report_data(inspection), warnings, passed=all_needed_is_there(inspection))
