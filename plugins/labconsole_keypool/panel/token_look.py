"""What the window knows of a token, which it never opens: asked of processes of their own. No Qt."""

from __future__ import annotations

from dataclasses import dataclass

from labconsole.paths import tokens_dir
from labconsole.security.secrets import Secret
from labconsole.security.token.choice import choose_mechanism
from labconsole.security.token.configuration import is_lab
from labconsole.security.token.errors import MechanismMissingError
from labconsole.security.token.inspection import Inspection, inspect_token
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import find_configuration


@dataclass(frozen=True)
class TokenLook:
    """A token by its name. `inspection` is None for one of the console's own that was not made yet.

    Without having tried it with its PIN, nothing is known of its mechanisms' behaviour.
    """

    name: str
    pin: str = ""
    """Where its PIN lies."""
    inspection: Inspection | None = None
    tried: bool = False

    @property
    def problem(self) -> str:
        """What is wrong, in one sentence; empty while nothing is known to be."""
        if self.inspection is None:
            return ""
        if self.inspection.overview is None or self.tried:
            return self.inspection.problem
        return ""

    @property
    def pin_warning(self) -> str:
        """That tries of the PIN were lost, as far as the token tells."""
        overview = None if self.inspection is None else self.inspection.overview
        return "" if overview is None or overview.pin_warning is None else overview.pin_warning

    def wrapping(self, kind: KeyKind) -> str:
        """The mechanism that wraps keys of this kind; empty if the token was not tried, or has none."""
        if self.inspection is None or self.inspection.findings is None:
            return ""
        try:
            mechanism = choose_mechanism(self.inspection.findings.wrapping, kind)
        except MechanismMissingError:
            return ""
        return mechanism.title


def look_at(name: str) -> TokenLook:
    """Look at a token without its PIN; makes none. Takes a third of a second. Raises UserError: none has the name."""
    if is_lab(name) and not (tokens_dir() / name).is_dir():
        return TokenLook(name)
    configuration = find_configuration(name)
    return TokenLook(name, configuration.pin.describe(), inspect_token(name, configuration, None))


def try_out(name: str, entered: Secret | None) -> TokenLook:
    """Log in once and try what a key pool needs; one of the console's own is made if it is not there.

    Takes a second. Raises UserError: there is none of the name, or its PIN is nowhere to be had.
    """
    configuration = find_configuration(name)
    pin = entered or configuration.pin_request(name).resolve()
    return TokenLook(name, configuration.pin.describe(), inspect_token(name, configuration, pin), tried=True)
