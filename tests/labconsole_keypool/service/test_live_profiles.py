"""The profiles of the live trial: each has the load of its title, and the keys that its requests need."""

from __future__ import annotations

import pytest

from labconsole.model.plugin import Plugins
from labconsole.profiles.profile import load_profile
from labconsole_keypool.choices import GenerateWhen, KeySource
from labconsole_keypool.service.service_parameters import ServiceParameters
from labconsole_keypool.trials.service_trial import ServiceTrial

LIVE = (
    "keypool-base-rate",
    "keypool-key-source",
    "keypool-live-demo",
    "keypool-queue-limit",
    "keypool-recovery",
    "keypool-table-4-1",
    "keypool-threads",
    "keypool-two-tokens",
)


def scenarios(name: str) -> dict[str, ServiceParameters]:
    """Its scenarios by name."""
    profile = load_profile(name, Plugins.discover())
    assert (profile.kind, profile.repeats) == (ServiceTrial.kind, 1)
    return {one.name: ServiceParameters.model_validate(dict(one.parameters)) for one in profile.scenarios}


def test_all_of_them_belong_to_the_plugin() -> None:
    (plugin,) = (plugin for plugin in Plugins.discover().found if plugin.name == "keypool")
    assert set(LIVE) <= set(plugin.profiles)


@pytest.mark.parametrize("name", LIVE)
def test_no_scenario_leans_on_keys_that_another_one_left(name: str) -> None:
    for title, parameters in scenarios(name).items():
        if parameters.keys is KeySource.POOL:
            loaded = parameters.keys_at_start + parameters.store_keys
            assert parameters.pool_at_start >= loaded, title
            assert parameters.generate is not GenerateWhen.NEVER, title


@pytest.mark.parametrize("name", LIVE)
def test_emulated_profile_states_its_device_and_speed(name: str) -> None:
    profile = load_profile(name, Plugins.discover())
    for title, parameters in scenarios(name).items():
        assert ("emulated" in profile.description) == bool(parameters.timing), title
        if parameters.speed > 1:
            assert f"{parameters.speed:g} times" in profile.description, title


def test_pool_and_no_pool_of_the_demo_make_a_fair_pair() -> None:
    without, pool = scenarios("keypool-live-demo")["Without pool"], scenarios("keypool-live-demo")["With pool"]
    assert ServiceTrial().contrast(without, pool) == "Key pool against keys generated on the fly"
    assert ServiceTrial().contrast(without, pool.model_copy(update={"rate": 9.0})) == ""
