"""A token configuration: module, label and where the PIN comes from; it holds no secret."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from labconsole.security.secrets import SecretRequest, SecretSource
from labconsole.security.token.mechanisms import WrapMechanism

LAB = "lab"
"""Name of the built-in token; needs no entry in the file."""

_LAB_NAME = re.compile(rf"{LAB}(-([2-9]|[1-9][0-9]))?")

_LONGEST_LABEL = 32
"""Bytes in UTF-8: CK_TOKEN_INFO pads a label with blanks to this length (PKCS#11 v2.40, section 3.2)."""

_SECRET_ENDINGS = ("PIN", "PASSWORD", "PASSPHRASE", "SECRET")


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("give the whole path of the PKCS#11 library, beginning at the root")
    return path


def _fit_for_a_token(text: str) -> str:
    if not text or text != text.strip():
        raise ValueError("a label has a character at least, and no blank at its ends")
    if len(text.encode()) > _LONGEST_LABEL:
        raise ValueError(f"a label has {_LONGEST_LABEL} bytes in UTF-8 at most (this one has {len(text.encode())})")
    return text


def _no_pin(given: object) -> object:
    if isinstance(given, str | int):
        raise ValueError(
            "name the source of the PIN (keyring_entry or passphrase_file); the PIN itself is never part of it"
        )
    return given


def _free_of_secrets(variables: dict[str, str]) -> dict[str, str]:
    for name in variables:
        if name.upper().endswith(_SECRET_ENDINGS):
            raise ValueError(
                f"the variable {name} looks like a secret, and a configuration holds no secrets: name it under pin"
            )
    return variables


def _mechanisms(numbers: tuple[int, ...]) -> tuple[int, ...]:
    for number in numbers:
        try:
            WrapMechanism(number)
        except ValueError as error:
            raise ValueError(
                f"0x{number:X} is not a mechanism that wraps keys: name 0x1087 (AES-GCM), or a maker's own (0x80000000 "
                "or more)"
            ) from error
    return numbers


def is_lab(name: str) -> bool:
    """Whether `name` is the built-in token or one of its further ones, `lab-2` to `lab-99`."""
    return _LAB_NAME.fullmatch(name) is not None


class TokenConfiguration(BaseModel):
    """How to reach one token. Roles receive it as JSON: paths and names, no secret."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)

    module: Annotated[Path, AfterValidator(_absolute)] = Field(
        title="Module", description="The PKCS#11 library of the token's maker."
    )
    label: Annotated[str, AfterValidator(_fit_for_a_token)] = Field(
        title="Label", description="Label of the token, as it was given when the token was initialised."
    )
    pin: Annotated[SecretSource, BeforeValidator(_no_pin)] = Field(
        default=SecretSource(), title="PIN", description="Source of the user's PIN; without one the operator is asked."
    )
    serial: str = Field(
        default="", title="Serial number", description="Needed only where two tokens of a module have one label."
    )
    parameters: str = Field(
        default="", title="Parameters", description="NSS's configdir='sql:...' string; empty for every other module."
    )
    environment: Annotated[dict[str, str], AfterValidator(_free_of_secrets)] = Field(
        default={},
        title="Environment",
        description="Variables that the module reads while it starts, such as SOFTHSM2_CONF.",
    )

    wrap_mechanisms: Annotated[tuple[int, ...], AfterValidator(_mechanisms)] = Field(
        default=(),
        title="Wrap mechanisms",
        description="Numbers of mechanisms that are preferred for wrapping where a probe shows that they do it safely: "
        "0x1087 (AES-GCM), or a maker's own without a parameter, from 0x80000000 on.",
    )

    def pin_request(self, name: str) -> SecretRequest:
        """The user's PIN of the token called `name`, as `Trial.secrets` names it."""
        return SecretRequest(f"pin {name}", f"token {self.label}", self.pin)
