"""The one error that an operator reads."""

from __future__ import annotations


class UserError(Exception):
    """An operation that cannot be done; the message is for the operator: cause first, remedy second."""


class BadInput(UserError):  # noqa: N818 - named as the operator sees it
    """Input from outside that cannot be accepted; the message is one sentence: cause and remedy."""
