"""What a faulty sign request is refused with."""

from __future__ import annotations

from labconsole.trial import TrialError


class SignRequestError(TrialError):
    """A sign request cannot be served; the message says what is wrong with it and what to do."""
