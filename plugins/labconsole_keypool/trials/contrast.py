"""The difference between two scenarios: whether they make a fair pair, and its text in a sentence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from labconsole.analysis.parameter_texts import describe_parameters, in_effect
from labconsole.model.trial import Parameters, Question
from labconsole_keypool.choices import KeySource
from labconsole_keypool.service.keypool_parameters import KeypoolParameters

_LOAD = frozenset({"arrivals", "requests", "rate", "csv", "time_scale", "tail_requests", "tail_rate"})
"""Parameters of the arrivals: two services are compared under one load."""


def contrast_label(reference: KeypoolParameters, other: KeypoolParameters) -> str:
    """ "Key pool against keys generated on the fly", "Queue limit: 50 against 0" where one parameter that matters in
    both sets two services apart, and requests arrive alike; nothing otherwise. Both are of one trial."""
    if _unlike(reference, other) == ["keys"]:
        return "Key pool against keys generated on the fly" if other.keys is KeySource.POOL else ""
    return difference(reference, other, _LOAD)


def questions(reference: KeypoolParameters, other: KeypoolParameters) -> tuple[Question, ...]:
    """The question that two services answer that differ only in the source of their keys."""
    if _unlike(reference, other) != ["keys"] or other.keys is not KeySource.POOL:
        return ()
    return (Question("How long does a request take?", "latency_mean", "With a key pool"),)


def same_load(reference: KeypoolParameters, other: KeypoolParameters) -> bool:
    """Whether requests arrive alike in both, which are of one trial."""
    return _LOAD.isdisjoint(_unlike(reference, other))


def difference(reference: Parameters, other: Parameters, of_load: Collection[str]) -> str:
    """ "Queue limit: 50 against 0" where one parameter that matters in both sets two scenarios of a trial apart.

    Nothing where that is one `of_load`: figures under different loads are not comparable.
    """
    unlike = _unlike(reference, other)
    if len(unlike) != 1 or unlike[0] in of_load:
        return ""
    (name,), model = unlike, type(reference)
    one, two = (_shown(name, values.model_dump(mode="json"), model) for values in (reference, other))
    return f"{model.model_fields[name].title}: {two} against {one}"


def _unlike(reference: Parameters, other: Parameters) -> list[str]:
    """Names of parameters that differ and do something in both."""
    one, two = reference.model_dump(mode="json"), other.model_dump(mode="json")
    return [
        name
        for name in one
        if one[name] != two[name] and all(in_effect(name, values, type(reference)) for values in (one, two))
    ]


def _shown(name: str, values: Mapping[str, Any], model: type[Parameters]) -> str:
    """A value as the form shows it."""
    extra = model.model_fields[name].json_schema_extra
    labels: Any = extra.get("labels", {}) if isinstance(extra, dict) else {}
    return labels.get(str(values[name])) or describe_parameters({name: values[name]}, model)[0].text
