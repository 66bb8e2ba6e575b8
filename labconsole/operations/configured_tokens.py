"""Tokens that the console knows by name: list them, add one, remove one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ValidationError

from labconsole.model.operation import HomePath, Operation, OperationContext, Result, TextTable
from labconsole.model.parameters import Parameters, parameter
from labconsole.model.validation_faults import fault_sentence
from labconsole.security.token.configuration import LAB, TokenConfiguration
from labconsole.security.token.errors import TokenError
from labconsole.security.token.inspection import check_empty_slot, inspect_token
from labconsole.security.token.named_tokens import (
    check_new_name,
    forget_configuration,
    load_configurations,
    save_configuration,
)


def token_name(**more: Any) -> Any:
    """The field of a token's name; `more` is what its form needs besides the type."""
    return parameter(
        "Token",
        "Name of the token, as `labconsole hsm tokens` lists it; `lab` is the built-in one",
        min_length=1,
        **more,
    )


class NoParameters(Parameters):
    """No parameters."""


class ListTokens(Operation[NoParameters]):
    """Lists the tokens."""

    name: ClassVar[str] = "tokens.list"
    title: ClassVar[str] = "Tokens"
    description: ClassVar[str] = "Lists the tokens that the console knows by name."
    parameters: ClassVar[type[Parameters]] = NoParameters

    def run(self, parameters: NoParameters, context: OperationContext) -> Result:
        of_lab = f"with the token, which is created on first use; so is {LAB}-2 ..."
        rows = [(LAB, "labconsole", "SoftHSM2", of_lab)]
        found = [{"token": LAB, "label": "labconsole", "module": None, "pin": of_lab}]
        for name, one in load_configurations().items():
            rows.append((name, one.label, str(one.module), one.pin.describe()))
            found.append({"token": name, "label": one.label, "module": str(one.module), "pin": one.pin.describe()})
        return Result((TextTable(("Token", "Label", "Module", "PIN source"), tuple(rows)),), {"tokens": found})


class AddTokenParameters(Parameters):
    """Where another token is; its PIN is never among the parameters."""

    token: str = parameter(
        "Name",
        "What the console calls the token",
        default="hsm",
        pattern="[A-Za-z0-9][A-Za-z0-9_-]*",
        positional=True,
        required=True,
        metavar="NAME",
    )
    module: HomePath | None = parameter(
        "Module", "The PKCS#11 library of the token's maker", default=None, required=True
    )
    label: str = parameter("Label", "Label of the token", default="", max_length=32, required=True)
    serial: str = parameter("Serial number", "Needed only if another token has the same label", default="")
    new: bool = parameter(
        "Not initialised yet",
        "It was never initialised and has no label yet: the module must have an empty slot for it",
        default=False,
    )
    parameters: str = parameter("NSS parameters", "For NSS softokn alone: its configdir='sql:...' string", default="")
    environment: tuple[str, ...] = parameter(
        "Environment",
        "KEY=VALUE: a variable that the module reads, such as KRYOPTIC_CONF; never a secret",
        default=(),
        metavar="KEY=VALUE",
        empty="None",
    )
    wrap_mechanisms: tuple[str, ...] = parameter(
        "Wrap mechanisms",
        "Number of a mechanism to be preferred for wrapping: 0x1087 (AES-GCM), or a maker's own",
        default=(),
        option="--wrap-mechanism",
        metavar="NUMBER",
        empty="Those that the console tries",
    )
    keyring_entry: str | None = parameter(
        "PIN in the keyring", "Entry of the OS keyring with the PIN", default=None, metavar="NAME"
    )
    passphrase_file: HomePath | None = parameter(
        "PIN in a file", "File with the PIN, readable by its owner alone (0600)", default=None
    )

    def configuration(self) -> TokenConfiguration:
        """The configuration of the token, as it is stored. Raises TokenError: a value is missing or faulty."""
        not_added = f"The token {self.token} was not added"
        check_new_name(not_added, self.token)
        if self.module is None or not self.label:
            raise TokenError("Name the PKCS#11 module of the token's maker, and the label that the token has.")
        file: Path | None = self.passphrase_file
        said = {
            "module": self.module.absolute(),
            "label": self.label,
            "serial": self.serial,
            "parameters": self.parameters,
            "environment": _variables(not_added, self.environment),
            "wrap_mechanisms": _numbers(not_added, self.wrap_mechanisms),
            "pin": {"keyring_entry": self.keyring_entry, "passphrase_file": file and file.absolute()},
        }
        try:
            return TokenConfiguration.model_validate(said)
        except ValidationError as error:
            raise TokenError(f"{not_added}: {fault_sentence(error, TokenConfiguration)}") from error


class AddToken(Operation[AddTokenParameters]):
    """Adds a token, and checks that it is there."""

    name: ClassVar[str] = "keypool.add-token"
    title: ClassVar[str] = "Add a token"
    description: ClassVar[str] = (
        "Tells the console where a PKCS#11 token is, so that scenarios can name it, or replaces its configuration. It "
        "is added if its module can be loaded and the token is there. Nothing in the token changes."
    )
    parameters: ClassVar[type[Parameters]] = AddTokenParameters
    writes: ClassVar[tuple[str, ...]] = ("tokens",)

    def run(self, parameters: AddTokenParameters, context: OperationContext) -> Result:
        name, configuration = parameters.token, parameters.configuration()
        _require_token(name, configuration, new=parameters.new)
        save_configuration(name, configuration)
        next_step = (
            f"labconsole hsm init {name} --new initialises it."
            if parameters.new
            else f"labconsole hsm doctor {name} shows whether it works."
        )
        text = f"The token {name} was added. Its PIN is expected {configuration.pin.describe()}."
        data = {"token": name, "label": configuration.label, "module": str(configuration.module)}
        return Result((text, next_step), data)


class RemoveTokenParameters(Parameters):
    """The token whose configuration is removed."""

    token: Annotated[str, token_name(positional=True, metavar="NAME")]


class RemoveToken(Operation[RemoveTokenParameters]):
    """Removes a token's configuration."""

    name: ClassVar[str] = "tokens.remove"
    title: ClassVar[str] = "Remove a token"
    description: ClassVar[str] = (
        "Removes a token from those that the console knows. The token itself, and its PIN, stay as they are."
    )
    parameters: ClassVar[type[Parameters]] = RemoveTokenParameters
    writes: ClassVar[tuple[str, ...]] = ("tokens",)

    def run(self, parameters: RemoveTokenParameters, context: OperationContext) -> Result:
        name = parameters.token
        forget_configuration(name)
        return Result((f"{name} is removed; the token itself, and its PIN, stay as they are.",), {"token": name})


def _require_token(name: str, configuration: TokenConfiguration, *, new: bool) -> None:
    """Raises TokenError: the module cannot be loaded, or has no such token (if it is `new`: no empty slot)."""
    if new:
        try:
            check_empty_slot(name, configuration)
        except TokenError as error:
            raise TokenError(f"The token {name} was not added. {error}") from error
        return
    inspection = inspect_token(name, configuration, None)
    if inspection.overview is None:
        raise TokenError(f"The token {name} was not added. {inspection.problem}")


def _variables(not_added: str, given: Sequence[str]) -> dict[str, str]:
    """The variables of the module. Raises TokenError: one of them is not KEY=VALUE."""
    wrong = next((text for text in given if "=" not in text.lstrip("=")), None)
    if wrong is not None:
        raise TokenError(f"{not_added}: write a variable of its environment as KEY=VALUE, not {wrong!r}.")
    return dict(text.split("=", 1) for text in given)


def _numbers(not_added: str, given: Sequence[str]) -> list[int]:
    """The numbers of mechanisms, hexadecimal or decimal. Raises TokenError: one of them is not a number."""
    try:
        return [int(text, 0) for text in given]
    except ValueError as error:
        raise TokenError(f"{not_added}: write a wrap mechanism as a number such as 0x1087 ({error}).") from error
