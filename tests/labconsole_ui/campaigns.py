"""Campaigns for the tests of the window."""

from __future__ import annotations

from labconsole.model.plugin import Plugins
from labconsole.store.records import NewCampaign, NewScenario

KIND = "amqp.messaging"


def campaign(*names: str, **parameters: object) -> NewCampaign:
    model = Plugins.discover().trial(KIND).parameters
    values = model.model_validate({"count": 100, **parameters}).model_dump(mode="json")
    scenarios = tuple(NewScenario(name, KIND, values) for name in names)
    return NewCampaign("mine", "Mine", "", 1, scenarios, tuple((index, 1) for index in range(len(names))))


def endless() -> NewCampaign:
    return campaign("Long", loop="open", rate=10, count=100_000)
