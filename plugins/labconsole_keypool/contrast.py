"""What a scenario does differently from another: which two make a fair pair, and how a sentence names it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labconsole.analysis.parameters import describe_parameters, in_effect
from labconsole_keypool.choices import KeySource
from labconsole_keypool.labels import LABELS
from labconsole_keypool.parameters import KeypoolParameters

_LOAD = frozenset({"arrivals", "requests", "rate", "csv", "time_scale", "tail_requests", "tail_rate"})
"""How requests arrive: two services are compared under one load."""


def words(reference: KeypoolParameters, other: KeypoolParameters) -> str:
    """ "Key pool against keys generated on the fly", "Queue limit: 50 against 0" where one parameter that matters in
    both sets two services apart, and requests arrive alike; nothing otherwise. Both are of one trial."""
    model = type(reference)
    one, two = reference.model_dump(mode="json"), other.model_dump(mode="json")
    unlike = [
        name for name in one if one[name] != two[name] and all(in_effect(name, values, model) for values in (one, two))
    ]
    if unlike == ["keys"]:
        return "Key pool against keys generated on the fly" if other.keys is KeySource.POOL else ""
    if len(unlike) != 1 or unlike[0] in _LOAD:
        return ""
    (name,) = unlike
    title = model.model_fields[name].title
    return f"{title}: {_shown(name, two, model)} against {_shown(name, one, model)}"


def _shown(name: str, values: Mapping[str, Any], model: type[KeypoolParameters]) -> str:
    """A value as the form shows it."""
    label = LABELS.get(name, {}).get(str(values[name]))
    return label or describe_parameters({name: values[name]}, model)[0].text
