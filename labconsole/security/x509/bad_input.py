"""The one exception of the gate: what came from outside is not what it should be."""

from __future__ import annotations

from labconsole.errors import UserError


class BadInput(UserError):  # noqa: N818 - it names what is bad, as the operator reads it
    """Something from outside cannot be taken; the message is one sentence: what is wrong, what to do."""
