"""Makes the trust bundle of a State of this console."""

from __future__ import annotations

from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt

DAYS = 30
"""For how long a bundle is current, if nobody says otherwise."""


def make_bundle(store: PkiStore, state: str, *, days: int = DAYS, prompt: Prompt | None = None) -> bytes:
    """The next bundle of `state` (a local one), signed with the key of its newest root: DER, CMS.

    It is noted in the database as `state`'s own, with the next sequence number. Raises TrialError: the State is not
    local or has no root with a key here, or the key cannot be opened.
    """
    raise NotImplementedError
