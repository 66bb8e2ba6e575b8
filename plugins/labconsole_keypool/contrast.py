"""What a scenario does differently from another: which two make a fair pair, and how a sentence names it."""

from __future__ import annotations

from labconsole.analysis.parameters import in_effect
from labconsole_keypool.choices import KeySource
from labconsole_keypool.parameters import SimulationParameters


def words(reference: SimulationParameters, other: SimulationParameters) -> str:
    """ "Key pool against keys generated on the fly" where that alone sets the two apart; nothing otherwise."""
    if (reference.keys, other.keys) != (KeySource.GENERATED, KeySource.POOL):
        return ""
    one, two = reference.model_dump(mode="json"), other.model_dump(mode="json")
    unlike = (
        name
        for name in one.keys() - {"keys"}
        if one[name] != two[name] and all(in_effect(name, values, SimulationParameters) for values in (one, two))
    )
    return "" if any(unlike) else "Key pool against keys generated on the fly"
