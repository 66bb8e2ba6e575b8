"""The one error that an operator reads."""

from __future__ import annotations


class UserError(Exception):
    """What cannot be done; the message is one sentence for the operator: cause first, remedy second."""
