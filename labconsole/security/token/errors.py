"""What a token refuses, in one sentence that says what to do."""

from __future__ import annotations

from labconsole.errors import UserError
from labconsole.security.secrets import SecretRefusedError


class TokenError(UserError):
    """A token refuses, is missing or full; the message says what to do."""


class WrongPinError(TokenError, SecretRefusedError):
    """The PIN is wrong or locked; it was tried once."""


class TamperedKeyError(TokenError):
    """A wrapped key was changed, or wrapped by another key."""


class MechanismMissingError(TokenError):
    """The module does not offer the mechanism that is needed."""


class KeyMissingError(TokenError):
    """The token has no such key."""


class TokenGoneError(TokenError):
    """The token was removed, or its device does not answer any more."""


class TokenFullError(TokenError):
    """The token has no room for another object."""
