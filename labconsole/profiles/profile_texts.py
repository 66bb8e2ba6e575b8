"""The TOML text of a profile: of one scenario, or of several of one kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tomli_w

from labconsole.model.placement import Placement
from labconsole.profiles.profile_file import FORMAT, Order, Site
from labconsole.store.records import NewScenario


def profile_text(
    name: str,
    title: str,
    kind: str,
    parameters: Mapping[str, Any],
    repeats: int = 1,
    *,
    seed: int = 1,
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
    placement: Mapping[str, Any] | None = None,
    sites: Sequence[Site] = (),
) -> str:
    """The TOML text of a profile with one scenario; parameters that are None are left out."""
    given = {key: value for key, value in parameters.items() if value is not None}
    table: dict[str, Any] = {"format": FORMAT, "name": name, "title": title, "kind": kind, "repeats": repeats}
    table |= {"seed": seed, "parameters": given}
    if thresholds:
        table["thresholds"] = {metric: dict(bounds) for metric, bounds in thresholds.items()}
    if hosts := hosts_table(placement or {}):
        table["hosts"] = hosts
    if sites:
        table["sites"] = [site.model_dump(exclude_none=True, exclude_defaults=True) for site in sites]
    return tomli_w.dumps(table)


def scenarios_text(
    name: str,
    title: str,
    scenarios: Sequence[NewScenario],
    repeats: int = 1,
    *,
    seed: int = 1,
    sites: Sequence[Site] = (),
    order: Order = Order.SHUFFLED,
) -> str:
    """The TOML text of a profile with several scenarios of one kind; parameters that are None are left out."""
    given = [{key: value for key, value in scenario.parameters.items() if value is not None} for scenario in scenarios]
    common = {key: value for key, value in given[0].items() if all(other.get(key) == value for other in given)}
    table: dict[str, Any] = {"format": FORMAT, "name": name, "title": title, "kind": scenarios[0].kind}
    table |= {"repeats": repeats, "seed": seed, "parameters": common}
    table["scenarios"] = [
        {
            "name": scenario.name,
            "parameters": {key: value for key, value in values.items() if key not in common},
            "thresholds": {metric: dict(bounds) for metric, bounds in scenario.thresholds.items()},
            **({"hosts": hosts} if (hosts := hosts_table(scenario.placement)) else {}),
        }
        for scenario, values in zip(scenarios, given, strict=True)
    ]
    if order is not Order.SHUFFLED:
        table["order"] = order.value
    if sites:
        table["sites"] = [site.model_dump(exclude_none=True, exclude_defaults=True) for site in sites]
    return tomli_w.dumps(table)


def hosts_table(placement: Mapping[str, Any]) -> dict[str, Any]:
    """A stored placement as the table `hosts` of a profile, without defaults; {} where roles stay on this computer."""
    found = Placement.of_stored(placement)
    return {} if found is None else found.model_dump(mode="json", exclude_defaults=True)
