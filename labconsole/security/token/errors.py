"""Errors of tokens, each with one sentence that names the remedy."""

from __future__ import annotations

from labconsole.errors import UserError
from labconsole.security.secret_value import SecretRefusedError


class TokenError(UserError):
    """A token refuses, is missing or full; the message names the remedy."""


class WrongPinError(TokenError, SecretRefusedError):
    """The PIN is wrong or locked; it was tried once."""


class TamperedKeyError(TokenError):
    """A wrapped key was changed, or wrapped by another key."""


class MechanismMissingError(TokenError):
    """The module does not offer the required mechanism."""


class KeyMissingError(TokenError):
    """The token has no such key."""


class TokenGoneError(TokenError):
    """The token was removed, or its device no longer answers."""


class TokenFullError(TokenError):
    """The token has no room for another object."""
