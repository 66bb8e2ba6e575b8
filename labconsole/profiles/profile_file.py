"""The form of a profile file: its keys, the profile that it extends, and overrides."""

from __future__ import annotations

import pickle
import tomllib
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from labconsole.errors import UserError
from labconsole.model.placement import Placement

FORMAT = 1
_KEPT_FILES = 256


class ProfileError(UserError):
    """A profile cannot be used; the message names the file, the key, and the nearest right name."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Threshold(_Strict):
    """Bounds of one metric, in the metric's unit; at least one of them."""

    min: Annotated[float | None, Field(description="The metric must not be lower")] = None
    max: Annotated[float | None, Field(description="The metric must not be higher")] = None

    @model_validator(mode="after")
    def _can_be_met(self) -> Threshold:
        if self.min is None and self.max is None:
            raise ValueError("give min, max or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min:g} is above max {self.max:g}")
        return self


class Site(_Strict):
    """One row of the source's resource table."""

    name: Annotated[str, Field(description="The site, as in Malaysia")]
    endpoint: Annotated[str, Field(description="Address of the service")] = ""
    host_name: Annotated[str, Field(description="Host name")] = ""
    tls_port: Annotated[int | None, Field(description="Port with TLS")] = None
    plain_port: Annotated[int | None, Field(description="Port without TLS")] = None
    server: Annotated[str, Field(description="Software of the broker")] = ""
    infrastructure: Annotated[str, Field(description="Computer and network")] = ""
    remarks: Annotated[str, Field(description="Anything else")] = ""


def with_roles(placement: Placement | None) -> Placement | None:
    """The placement; raises ValueError for one that asks for hosts and names no roles, which would have no effect."""
    if placement is not None and placement.model_fields_set - {"roles"} and not placement.roles:
        asked = " and ".join(sorted(placement.model_fields_set - {"roles"}))
        raise ValueError(f"{asked} has no effect without roles; name them in [[hosts.roles]]")
    return placement


class ScenarioTable(_Strict):
    """One of `[[scenarios]]`."""

    name: Annotated[str, Field(description="What lists of runs show")]
    parameters: Annotated[dict[str, Any], Field(description="Parameters that this scenario sets")] = {}
    thresholds: Annotated[dict[str, Threshold], Field(description="Bounds of metrics in this scenario, by metric")] = {}
    hosts: Annotated[
        Placement | None,
        AfterValidator(with_roles),
        Field(description="Hosts of this scenario's roles, in place of all that the profile asks for"),
    ] = None


class Order(StrEnum):
    """The order of the scenarios in each round of a campaign; every round has each of them once."""

    SHUFFLED = "shuffled"
    """As in the profile, then drawn by the seed."""
    ROTATED = "rotated"
    """Each round begins with the next scenario: with as many rounds as scenarios, each is at each place once."""


class ProfileFile(_Strict):
    """The form of a profile file, after `extends` was followed."""

    format: Annotated[int, Field(description="Version of the format: 1")]
    kind: Annotated[str, Field(description="Kind of trial")]
    name: Annotated[str, Field(description="Name for `labconsole run`; by default that of the file")] = ""
    title: Annotated[str, Field(description="What lists of profiles show")] = ""
    description: Annotated[str, Field(description="One sentence")] = ""
    repeats: Annotated[int, Field(description="Repeats of each scenario, 1 to 1,000", ge=1, le=1000)] = 1
    seed: Annotated[int, Field(description="Seed of the order, and of all randomness in the runs")] = 1
    order: Annotated[Order, Field(description="Order of the scenarios in each round")] = Order.SHUFFLED
    parameters: Annotated[dict[str, Any], Field(description="Parameters of all scenarios")] = {}
    matrix: Annotated[
        dict[str, Annotated[list[Any], Field(min_length=1)]],
        Field(description="Parameter -> its values: every combination becomes a scenario"),
    ] = {}
    scenarios: Annotated[list[ScenarioTable], Field(description="Scenarios by name")] = []
    thresholds: Annotated[dict[str, Threshold], Field(description="Bounds of metrics in all scenarios, by metric")] = {}
    hosts: Annotated[
        Placement | None, AfterValidator(with_roles), Field(description="Hosts of the roles; else this computer")
    ] = None
    sites: Annotated[list[Site], Field(description="Where it was run, as the source's resource table has it")] = []


def merged_tables(path: Path, base_of: Callable[[Path, str], Path], seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The tables of a profile file over those it extends; `base_of(path, name)` finds them. Raises ProfileError."""
    data = _read(path)
    base_name = data.pop("extends", None)
    if base_name is None:
        return {"name": path.stem, **data}
    base_path = base_of(path, str(base_name)).resolve()
    seen = (*seen, path.resolve())
    if base_path in seen:
        raise ProfileError(f"The profile {path} extends itself by way of {base_name}; take one of the `extends` out.")
    base = merged_tables(base_path, base_of, seen)
    merged = {**base, "name": path.stem, **data}
    for table in ("parameters", "matrix", "thresholds"):
        merged[table] = {**_table(base_path, base, table), **_table(path, data, table)}
    # A parameter that one profile fixes and the other varies: the extending profile wins.
    for table, other in (("parameters", "matrix"), ("matrix", "parameters")):
        kept = _without(_table(path, data, table), _table(path, data, other))
        merged[other] = _without(merged[other], kept)
    return merged


def _table(path: Path, data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise ProfileError(f"Profile {path.name}: {name} must be a table, as in [{name}] (it is {table!r}).")
    return table


@lru_cache(maxsize=_KEPT_FILES)
def _parsed(text: str) -> bytes:
    """The tables of a TOML file, pickled, so that each reader gets its own. Raises TOMLDecodeError."""
    return pickle.dumps(tomllib.loads(text))


def _read(path: Path) -> dict[str, Any]:
    try:
        # Start page and panels list all profiles: to parse them each time took 80 ms of the window's thread.
        data: dict[str, Any] = pickle.loads(_parsed(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ProfileError(f"The profile {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"The profile {path} is not valid TOML: {error}.") from error
    if data.get("format") != FORMAT:
        found = data.get("format", "none")
        raise ProfileError(f"The profile {path} has format {found}; this console reads `format = {FORMAT}`.")
    return data


def with_overrides(file: ProfileFile, fixed: Mapping[str, Any], repeats: int | None) -> ProfileFile:
    """The profile with parameters that have one value in all scenarios."""
    scenarios = [
        scenario.model_copy(update={"parameters": _without(scenario.parameters, fixed)}) for scenario in file.scenarios
    ]
    return file.model_copy(
        update={
            "parameters": {**file.parameters, **fixed},
            "matrix": _without(file.matrix, fixed),
            "scenarios": scenarios,
            "repeats": repeats or file.repeats,
        }
    )


def with_hosts(file: ProfileFile, hosts: Placement) -> ProfileFile:
    """The profile with the same hosts in all scenarios."""
    scenarios = [scenario.model_copy(update={"hosts": None}) for scenario in file.scenarios]
    return file.model_copy(update={"hosts": hosts, "scenarios": scenarios})


def _without(table: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}
