"""What a faulty sign request is refused with."""

from __future__ import annotations

from labconsole.errors import UserError


class SignRequestError(UserError):
    """A sign request cannot be served; the message says what is wrong with it and what to do."""
