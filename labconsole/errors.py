"""The one error that an operator reads."""

from __future__ import annotations


class UserError(Exception):
    """What cannot be done; the message is one sentence for the operator: cause first, remedy second."""


class BadInput(UserError):  # noqa: N818 - it names what is bad, as the operator reads it
    """Something from outside cannot be taken; the message is one sentence: what is wrong, what to do."""
