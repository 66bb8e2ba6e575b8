"""The parameters of the simulation: one sentence for each mistake, and the service that they describe."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from labconsole.model.validation_faults import fault_sentence
from labconsole.profiles.timing_profile import load_timing, timing_names
from labconsole_keypool.choices import LABELS, SignTime
from labconsole_keypool.service.keypool_parameters import KeypoolParameters
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.shares.share_operations import ExportParameters
from labconsole_keypool.simulation.simulation_parameters import SimulationParameters

LUNA = load_timing("luna-sa-1700")
NAMES = ", ".join(timing_names())


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"timing": "luna"},
            f"timing: no timing profile is called luna; there are: {NAMES}.",
        ),
        (
            {"timing": ""},
            f"timing: a simulation needs a timing profile; there are: {NAMES}.",
        ),
        ({"threads": 0}, "threads: input should be greater than or equal to 1 (it is 0)."),
        ({"threads": 51}, "threads: input should be less than or equal to 50 (it is 51)."),
        ({"rate": 0}, "rate: input should be greater than 0 (it is 0)."),
        ({"time_scale": -1}, "time_scale: input should be greater than 0 (it is -1)."),
        (
            {"sign": "oslo"},
            "sign: timing profile luna-sa-1700 has no signing time oslo; there are: malmo, stockholm-base-rate, "
            "stockholm, while-unwrapping.",
        ),
        (
            {"arrivals": "csv"},
            "csv: arrivals from a CSV file need its path: set `csv`, or choose other `arrivals`.",
        ),
        (
            {"keys_at_start": 12_034},
            "keys_at_start: the RAM of this device holds 12,033 key pairs: enter fewer.",
        ),
        ({"store_keys": 20_001}, "store_keys: the store of this device holds 20,000 key pairs: enter fewer."),
        (
            {"low_water": 12_033, "batch": 1},
            "batch: `low_water` and `batch` together are more than the 12,033 key pairs that the RAM of this device "
            "holds: lower one of them.",
        ),
        ({"thread": 2}, "there is no key thread; did you mean threads?"),
    ],
)
def test_each_mistake_is_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        SimulationParameters.model_validate(settings)
    assert fault_sentence(caught.value, SimulationParameters) == sentence


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"token_use": "split"},
            "token_use: one token to generate and another one to sign are two: name one in `further_tokens`.",
        ),
        (
            {"further_tokens": "lab-2, lab"},
            "further_tokens: each token is named once, the first one under `token`.",
        ),
        (
            {"further_tokens": "lab 2"},
            "further_tokens: 'lab 2' is not a name of a token: write names with commas between them.",
        ),
        ({"signers": 2}, "signers: each signer needs a thread at least: raise `threads`, or have fewer signers."),
        (
            {"key_store": "../elsewhere"},
            "key_store: the name of a key store has letters, digits, - and _, and begins with a letter or digit.",
        ),
        (
            {"token_capacity": 29},
            "token_capacity: `low_water` and `batch` together are 30 key pairs, more than this token holds: enter "
            "fewer.",
        ),
        (
            {"keys_at_start": 12_034},
            "token_capacity: `keys_at_start` is 12,034 key pairs, more than this token holds: enter fewer.",
        ),
    ],
)
def test_each_mistake_of_a_live_scenario_is_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ServiceParameters.model_validate(settings)
    assert fault_sentence(caught.value, ServiceParameters) == sentence


def test_live_scenario_names_the_tokens_that_sign_and_generate() -> None:
    two = {"token": "office", "further_tokens": "lab, lab-2"}
    both, split = ServiceParameters(**two), ServiceParameters(**two, token_use="split")
    assert both.generating_tokens == both.signing_tokens == ("office", "lab", "lab-2")
    assert (split.generating_tokens, split.signing_tokens) == (("office",), ("lab", "lab-2"))


@pytest.mark.parametrize(
    "settings",
    [
        {"keys_at_start": 12_033, "store_keys": 20_000},
        {"low_water": 12_032, "batch": 1},
        {"refill": "when-empty", "low_water": 12_033, "batch": 12_033},
        {"keys": "generated", "keys_at_start": 99_999, "batch": 99_999},
    ],
)
def test_limits_and_parameters_without_effect_are_accepted(settings: dict[str, Any]) -> None:
    SimulationParameters.model_validate(settings)


@pytest.mark.parametrize("model", [SimulationParameters, ServiceParameters])
def test_a_form_can_be_made_of_every_parameter(model: type[KeypoolParameters]) -> None:
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict)
        assert field.title and field.description and extra["group"], name


def test_every_choice_has_a_label() -> None:
    models = (SimulationParameters, ServiceParameters, ExportParameters)
    fields = {name: field for model in models for name, field in model.model_fields.items()}
    for name, labels in LABELS.items():
        annotation = SignTime if name == "sign" else fields[name].annotation
        assert annotation is not None and set(labels) == {entry.value for entry in annotation}


@pytest.mark.parametrize(("sign", "ms"), [("malmo", 20), ("stockholm", 43), ("while-unwrapping", 21.432)])
def test_the_service_has_the_profile_s_times(sign: str, ms: float) -> None:
    assert SimulationParameters(sign=sign).service_model().sign_ms == ms


def test_more_threads_and_another_profile_make_another_service() -> None:
    alone = SimulationParameters().service_model()
    four = SimulationParameters(threads=4).service_model()
    assert four.threads == 4
    assert four.sign_ms / 4 == pytest.approx(alone.sign_ms * 6.9 / 43), "Table 2-10"
    longest = SimulationParameters(key_generation="longest").service_model()
    assert (alone.key_generation_ms, longest.key_generation_ms) == (588, 673)
    assert SimulationParameters(timing="luna-sa-1700-fig4-1").service_model().key_generation_ms == 769


def test_a_stored_run_can_be_evaluated_when_its_timing_profile_is_gone() -> None:
    stored = {"timing": "of last year", "sign": "normal", "keys_at_start": 5}
    with pytest.raises(ValidationError, match="no timing profile is called of last year"):
        SimulationParameters.model_validate(stored)
    assert SimulationParameters.of_stored(stored).sign == "normal"
    assert ServiceParameters.of_stored(stored).timing == "of last year"
