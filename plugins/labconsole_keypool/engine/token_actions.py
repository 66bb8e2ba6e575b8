"""Long work on tokens that is no trial: initialise one, add one.

The console's process imports this for forms and questions; modules are loaded in processes of their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, ValidationError

from labconsole.operation import Confirmation, Operation, OperationContext
from labconsole.profile_file import fault_sentence
from labconsole.security.secrets import Secret, SecretRequest, SecretSource
from labconsole.security.token.configuration import LAB, TokenConfiguration, is_lab
from labconsole.security.token.errors import TokenError
from labconsole.security.token.inspection import inspect_token
from labconsole.security.token.lab_token import initialise_token, lab_so_pin
from labconsole.security.token.named_tokens import find_configuration, save_configuration
from labconsole.trial import Parameters
from labconsole_keypool.engine.actions import TokenName

SO_PIN, NEW_PIN, NEW_PIN_AGAIN = "so-pin", "new-pin", "new-pin-again"


class InitialiseParameters(Parameters):
    """Which token is made anew."""

    token: TokenName = LAB


class InitialiseToken(Operation[InitialiseParameters]):
    """Makes a token anew: every key in it is destroyed, wrapper keys as well."""

    name: ClassVar[str] = "keypool.initialise-token"
    title: ClassVar[str] = "Initialise the token"
    description: ClassVar[str] = (
        "Makes the token anew, with a new PIN. The console's own tokens keep their PINs; for others the PIN of the "
        "security officer and the new PIN are asked for."
    )
    parameters: ClassVar[type[Parameters]] = InitialiseParameters

    def confirmation(self, parameters: InitialiseParameters) -> Confirmation:
        return Confirmation(
            find_configuration(parameters.token).label,
            f"Every key in the token {parameters.token} will be destroyed. Key pairs that its wrapper keys have "
            "wrapped can never be loaded again, unless their wrapper keys were exported.",
        )

    def secrets(self, parameters: InitialiseParameters) -> tuple[SecretRequest, ...]:
        name = parameters.token
        if is_lab(name):
            return ()
        return tuple(
            SecretRequest(key, purpose, SecretSource())
            for key, purpose in (
                (SO_PIN, f"the security officer of the token {name}"),
                (NEW_PIN, f"the token {name} from now on"),
                (NEW_PIN_AGAIN, f"the token {name} from now on, once more"),
            )
        )

    def run(self, parameters: InitialiseParameters, context: OperationContext) -> str:
        name, configuration = parameters.token, find_configuration(parameters.token)
        if is_lab(name):
            so_pin = lab_so_pin(name=name).resolve(f"the security officer of the token {name}")
            pin, where = configuration.pin_request(name).resolve(), ""
        else:
            so_pin, pin = _entered_pins(name, context)
            where = f" Its new PIN is expected {configuration.pin.describe()}."
        context.say(f"Initialising the token {name} ...")
        initialise_token(name, configuration, configuration.label, so_pin, pin)
        return f"The token {name} is empty now.{where}"


class AddTokenParameters(Parameters):
    """Where another token is; its PIN is never among the parameters."""

    token: Annotated[
        str, Field(title="Name", description="What the console calls the token", pattern="[A-Za-z0-9][A-Za-z0-9_-]*")
    ] = "hsm"
    module: Annotated[Path | None, Field(title="Module", description="The PKCS#11 library of the token's maker")] = None
    label: Annotated[str, Field(title="Label", description="Label of the token", max_length=32)] = ""
    serial: Annotated[
        str, Field(title="Serial number", description="Needed only if another token has the same label")
    ] = ""
    parameters: Annotated[
        str, Field(title="NSS parameters", description="For NSS softokn alone: its configdir='sql:...' string")
    ] = ""
    keyring_entry: Annotated[
        str | None,
        Field(title="PIN in the keyring", description="Entry of the OS keyring with the PIN"),
    ] = None
    passphrase_file: Annotated[
        Path | None,
        Field(title="PIN in a file", description="File with the PIN, readable by its owner alone (0600)"),
    ] = None


class AddToken(Operation[AddTokenParameters]):
    """Tells the console of a token, and looks whether it is there."""

    name: ClassVar[str] = "keypool.add-token"
    title: ClassVar[str] = "Add a token"
    description: ClassVar[str] = (
        "Tells the console where a PKCS#11 token is, so that scenarios can name it. Nothing in the token changes."
    )
    parameters: ClassVar[type[Parameters]] = AddTokenParameters

    def run(self, parameters: AddTokenParameters, context: OperationContext) -> str:
        name = parameters.token
        if parameters.module is None or not parameters.label:
            raise TokenError("Name the PKCS#11 module of the token's maker, and the label that the token has.")
        said = parameters.model_dump(exclude={"token", "keyring_entry", "passphrase_file"})
        source = parameters.model_dump(include={"keyring_entry", "passphrase_file"})
        try:
            configuration = TokenConfiguration.model_validate(
                {**said, "module": parameters.module.expanduser(), "pin": source}
            )
        except ValidationError as error:
            raise TokenError(f"The token {name} was not added: {fault_sentence(error, TokenConfiguration)}") from error
        context.say(f"Looking for the token {configuration.label} ...")
        inspection = inspect_token(name, configuration, None)
        if inspection.overview is None:
            raise TokenError(f"The token {name} was not added. {inspection.problem}")
        save_configuration(name, configuration)
        return f"The token {name} was added. Its PIN is expected {configuration.pin.describe()}."


def _entered_pins(name: str, context: OperationContext) -> tuple[Secret, Secret]:
    """The security officer's PIN and the new one. Raises TokenError: one is missing, or was typed in two ways."""
    so_pin, pin, again = (context.secret(key) for key in (SO_PIN, NEW_PIN, NEW_PIN_AGAIN))
    if so_pin is None or pin is None or again is None:
        raise TokenError(f"To initialise the token {name}, its PINs are asked for: do it where you can type them.")
    if pin.reveal() != again.reveal():
        raise TokenError(f"The token {name} was not initialised: the new PIN was typed in two ways.")
    return so_pin, pin
