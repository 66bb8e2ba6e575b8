"""Forms of the actions of the exchange between States: trust bundles, and the proof by a handshake."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labconsole.trial import Parameters
from labconsole_certificates.actions.fields import Days, SavedTo, StateName


class MakeBundleParameters(Parameters):
    """A trust bundle that is to be signed."""

    state: StateName
    valid_days: Days = 30
    file: SavedTo


class ProveParameters(Parameters):
    """Two States that are to connect to each other, both ways."""

    state_a: Annotated[str, Field(title="One State", description="Name of a State of this console", min_length=1)]
    state_b: Annotated[str, Field(title="Other State", description="Name of a State of this console", min_length=1)]
