"""What a scenario does differently from another: which two make a fair pair, and how a sentence names it."""

from __future__ import annotations

from labconsole.analysis.parameters import describe_parameters, in_effect
from labconsole_keypool.choices import KeySource
from labconsole_keypool.simulation_parameters import SimulationParameters


def words(reference: SimulationParameters, other: SimulationParameters) -> str:
    """ "Key pool against keys generated on the fly", "Rate 50 against 40" where one parameter that matters in both
    sets the two apart; nothing otherwise."""
    one, two = reference.model_dump(mode="json"), other.model_dump(mode="json")
    unlike = [
        name
        for name in one
        if one[name] != two[name] and all(in_effect(name, values, SimulationParameters) for values in (one, two))
    ]
    if unlike == ["keys"]:
        return "Key pool against keys generated on the fly" if other.keys is KeySource.POOL else ""
    if len(unlike) != 1:
        return ""
    before, after = (
        describe_parameters({unlike[0]: values[unlike[0]]}, SimulationParameters)[0] for values in (one, two)
    )
    return f"{after.title} {after.text} against {before.text}"
