"""The properties and abilities of a token, found by a process of its own: a module that crashes ends only that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labconsole.security.secret_value import Secret
from labconsole.security.token import module_process
from labconsole.security.token.errors import TokenError
from labconsole.security.token.mechanisms import TokenIdentity, WrapProbe

if TYPE_CHECKING:
    from labconsole.security.token.configuration import TokenConfiguration  # not in a module's own process: pydantic

_PROGRAM = "labconsole.security.token.cryptoki.inspection_process"
_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Overview:
    """The report of a module and its token without a PIN.

    `slots` are the labels of the tokens in all slots, empty where a token has none; `mechanisms` their names, numbers
    in hex for vendor-defined ones. `free_memory` is in bytes, None if the token does not report it; `pin_warning` says
    that tries of the PIN were lost, else None.
    """

    identity: TokenIdentity
    slots: tuple[str, ...]
    mechanisms: tuple[str, ...]
    free_memory: int | None
    pin_warning: str | None
    start_s: float


@dataclass(frozen=True)
class Findings:
    """The results of probing the token, logged in; `threads_safe` is None if it could not be tested."""

    wrapping: tuple[WrapProbe, ...]
    threads_safe: bool | None
    login_s: float
    probes_s: float


@dataclass(frozen=True)
class Inspection:
    """A report on the token called `name`. Unknown parts are None, and `problem` says why; else it is empty."""

    name: str
    overview: Overview | None = None
    findings: Findings | None = None
    problem: str = ""


def inspect_token(
    name: str, configuration: TokenConfiguration, secret: Secret | None, timeout_s: float = _TIMEOUT_S
) -> Inspection:
    """The report on the token called `name`; with `secret`, after one login, it is probed, too.

    Two processes do that one after the other, each with `timeout_s`: the first one's results remain when the second
    crashes or hangs. Takes a second on SoftHSM2. Nothing is raised for a module or token that fails.
    """
    from pydantic import TypeAdapter  # late: the process that inspects shares this module, and does without

    overview = None
    try:
        overview = TypeAdapter(Overview).validate_python(_ask(name, configuration, None, timeout_s))
        if secret is None:
            return Inspection(name, overview, problem=f"Without its PIN nothing can be tried in the token {name}.")
        findings = TypeAdapter(Findings).validate_python(_ask(name, configuration, secret, timeout_s))
    except TokenError as error:
        return Inspection(name, overview, problem=str(error))
    return Inspection(name, overview, findings)


def check_empty_slot(name: str, configuration: TokenConfiguration, timeout_s: float = _TIMEOUT_S) -> None:
    """Raises TokenError: the module cannot be loaded, or has no empty slot for the new token called `name`."""
    _ask(name, configuration, None, timeout_s, new=True)


def _ask(
    name: str, configuration: TokenConfiguration, secret: Secret | None, timeout_s: float, *, new: bool = False
) -> dict[str, Any]:
    question = {
        "name": name,
        "configuration": configuration.model_dump(mode="json"),
        "pin": None if secret is None else secret.reveal(),
        "new": new,
    }
    return module_process.ask(_PROGRAM, question, timeout_s, f"The PKCS#11 module {configuration.module}")
