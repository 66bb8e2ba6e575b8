"""Initialises a token: every key in it is destroyed, unless it was never initialised before."""

from __future__ import annotations

from typing import Annotated, ClassVar

from labconsole.model.operation import Confirmation, Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole.operations.configured_tokens import token_name
from labconsole.security.secrets import Secret, SecretRequest, SecretSource
from labconsole.security.token.configuration import LAB, is_lab
from labconsole.security.token.errors import TokenError
from labconsole.security.token.lab_token import create_token, initialise_token, lab_so_pin
from labconsole.security.token.named_tokens import find_configuration

SO_PIN, NEW_PIN, NEW_PIN_AGAIN = "so-pin", "new-pin", "new-pin-again"


class InitialiseParameters(Parameters):
    """The token to initialise."""

    token: Annotated[str, token_name(positional=True, required=True, metavar="NAME")] = LAB
    new: bool = parameter(
        "Never initialised",
        "A token that was never initialised: the first empty one of the module; no key is destroyed",
        default=False,
    )


class InitialiseToken(Operation[InitialiseParameters]):
    """Initialises a token: every key in it is destroyed, wrapper keys as well."""

    name: ClassVar[str] = "keypool.initialise-token"
    title: ClassVar[str] = "Initialise the token"
    description: ClassVar[str] = (
        "Reinitialises the token, with a new PIN. Built-in tokens keep their PINs; for others the PIN of the "
        "security officer and the new PIN are asked for."
    )
    parameters: ClassVar[type[Parameters]] = InitialiseParameters
    writes: ClassVar[tuple[str, ...]] = ("tokens",)

    def confirmation(self, parameters: InitialiseParameters) -> Confirmation | None:
        if parameters.new:
            return None
        return Confirmation(
            find_configuration(parameters.token).label,
            f"Every key in the token {parameters.token} will be destroyed. Key pairs that its wrapper keys have "
            "wrapped can never be loaded again, unless their wrapper keys were exported.",
        )

    def secrets(self, parameters: InitialiseParameters) -> tuple[SecretRequest, ...]:
        name = parameters.token
        if is_lab(name):
            return ()
        find_configuration(name)
        return tuple(
            SecretRequest(key, purpose, SecretSource())
            for key, purpose in (
                (SO_PIN, f"the security officer of the token {name}"),
                (NEW_PIN, f"the token {name} from now on"),
                (NEW_PIN_AGAIN, f"the token {name} from now on, once more"),
            )
        )

    def run(self, parameters: InitialiseParameters, context: OperationContext) -> Result:
        name = parameters.token
        if is_lab(name) and parameters.new:
            raise TokenError(
                f"The token {name} is built-in and is initialised when it is created, on first use: "
                "initialise it as one that is there."
            )
        configuration = find_configuration(name)
        if is_lab(name):
            so_pin = lab_so_pin(name=name).resolve(f"the security officer of the token {name}")
            initialise_token(
                name, configuration, configuration.label, so_pin, configuration.pin_request(name).resolve()
            )
            return Result((f"The token {name} is empty now.",), {"token": name})
        so_pin, pin = _entered_pins(name, context)
        expected = f"is expected {configuration.pin.describe()}."
        if parameters.new:
            create_token(name, configuration, so_pin, pin)
            return Result((f"The token {name} is initialised. Its PIN {expected}",), {"token": name})
        initialise_token(name, configuration, configuration.label, so_pin, pin)
        return Result((f"The token {name} is empty now. Its new PIN {expected}",), {"token": name})


def _entered_pins(name: str, context: OperationContext) -> tuple[Secret, Secret]:
    """The security officer's PIN and the new one. Raises TokenError: one is missing, or was typed in two ways."""
    so_pin, pin, again = (context.secret(key) for key in (SO_PIN, NEW_PIN, NEW_PIN_AGAIN))
    if so_pin is None or pin is None or again is None:
        raise TokenError(f"To initialise the token {name}, its PINs are asked for: do it where you can type them.")
    if pin.reveal() != again.reveal():
        raise TokenError(f"The token {name} was not initialised: the new PIN was typed in two ways.")
    return so_pin, pin
