"""Profiles: TOML files that name a trial's scenarios, validated, with `extends` and a matrix of parameters.

```toml
format = 1
name = "my-trial"                    # defaults to the file's name
title = "What the list shows"
description = "One sentence"
extends = "swim-within-malaysia"     # optional: all other values come from there
kind = "amqp.messaging"
repeats = 5                          # interleaved: A B C, B C A, ...
seed = 1
order = "rotated"                    # of each round; "shuffled" (by the seed) by default

[parameters]                         # common to all scenarios
count = 1000

[matrix]                             # every combination becomes a scenario
test = [1, 2]
payload = ["small", "fpl-tac"]

[[scenarios]]                        # or scenarios by name; with a matrix, each is combined with it
name = "fast"
parameters = { batch = 256 }

[thresholds]                         # of all scenarios, or of one in its own table
latency_p99 = { max = 50.0 }

[hosts]                              # where roles run; without it, or for other roles: on this computer
scheduler = "tls://192.0.2.10:8786"

[[hosts.roles]]                      # the first that matches a role counts; or as `hosts` of one scenario
role = "sender-*"
tag = "obu"

[[sites]]                            # the source's resource table
name = "Malaysia"
```
"""

from __future__ import annotations

import itertools
import math
import random
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import TypeAdapter, ValidationError

from labconsole.model.parameters import Parameters
from labconsole.model.placement import Placement
from labconsole.model.plugin import Plugins
from labconsole.model.trial import Trial
from labconsole.model.validation_faults import fault_sentence, nearest
from labconsole.paths import data_dir, profiles_dir
from labconsole.profiles.profile_file import (
    Order,
    ProfileError,
    ProfileFile,
    ScenarioTable,
    Site,
    Threshold,
    merged_tables,
    with_hosts,
    with_overrides,
)
from labconsole.profiles.profile_texts import profile_text, scenarios_text
from labconsole.store.records import NewCampaign, NewScenario

__all__ = [
    "Order",
    "Profile",
    "ProfileError",
    "ProfileInfo",
    "Site",
    "Threshold",
    "campaign_of",
    "list_profiles",
    "load_profile",
    "new_scenario",
    "override",
    "profile_text",
    "rotated",
    "save_profile",
    "scenarios_text",
    "shuffled",
    "user_profiles_dir",
    "with_edits",
]

MOST_RUNS = 10_000
"""A profile with more is refused as a mistake."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True)
class ProfileInfo:
    """A profile as lists show it; `error` is set if it cannot be read."""

    name: str
    title: str
    description: str
    kind: str
    path: Path
    builtin: bool
    error: str = ""


@dataclass(frozen=True)
class Profile:
    """A validated profile: its scenarios with complete parameters, ready to run."""

    name: str
    title: str
    description: str
    kind: str
    text: str
    scenarios: tuple[NewScenario, ...]
    repeats: int
    seed: int
    sites: tuple[Site, ...]
    order: Order = Order.SHUFFLED
    own: tuple[frozenset[str], ...] = ()
    """For each scenario the parameters that it sets itself, in its own table or by the matrix."""

    @property
    def runs(self) -> int:
        """Runs of the whole campaign."""
        return len(self.scenarios) * self.repeats


def user_profiles_dir() -> Path:
    """The directory of the operator's own profiles."""
    return data_dir() / "profiles"


def _files() -> dict[str, Path]:
    """Profile name -> file; the operator's own hide built-in ones of the same name."""
    return {
        path.stem: path for folder in (profiles_dir(), user_profiles_dir()) for path in sorted(folder.glob("*.toml"))
    }


def profile_names() -> list[str]:
    """The names of all profiles, broken ones too, sorted; no file is read."""
    return sorted(_files())


def list_profiles() -> list[ProfileInfo]:
    """All profiles, built-in and the operator's own, sorted by name; broken ones with their error."""
    return [_info(name, path) for name, path in sorted(_files().items())]


def _info(name: str, path: Path) -> ProfileInfo:
    builtin = path.parent == profiles_dir()
    try:
        data = merged_tables(path, _base_of)
    except ProfileError as error:
        return ProfileInfo(name, name, "", "", path, builtin, str(error))
    return ProfileInfo(
        name, str(data.get("title", name)), str(data.get("description", "")), str(data.get("kind", "")), path, builtin
    )


def load_profile(
    name_or_path: str,
    plugins: Plugins,
    overrides: Mapping[str, str] | None = None,
    repeats: int | None = None,
    hosts: Placement | None = None,
) -> Profile:
    """Read and validate a profile by name or path.

    `overrides` sets parameters of all scenarios (text as on the command line: TOML values, or plain words), and
    `hosts` replaces the hosts of all of them. Raises ProfileError.
    """
    path = _find(name_or_path)
    return _validated(merged_tables(path, _base_of), path, plugins, overrides or {}, repeats, hosts)


def _find(name_or_path: str) -> Path:
    files = _files()
    if name_or_path in files:
        return files[name_or_path]
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.parent != Path():
        if path.is_file():
            return path
        raise ProfileError(f"The profile {name_or_path} does not exist; `labconsole profiles` lists those there are.")
    raise ProfileError(f"No profile is called {name_or_path}{nearest(name_or_path, files)}")


def _base_of(path: Path, name: str) -> Path:
    """The file that `path` extends: next to it, else by name; one's own `demo` may extend the built-in `demo`."""
    neighbour, builtin = path.parent / f"{name}.toml", profiles_dir() / f"{name}.toml"
    if name == path.stem:
        return builtin if builtin.is_file() and not builtin.samefile(path) else path
    return neighbour if neighbour.is_file() else _find(name)


def _validated(
    data: Mapping[str, Any],
    path: Path,
    plugins: Plugins,
    overrides: Mapping[str, str],
    repeats: int | None,
    hosts: Placement | None,
) -> Profile:
    where = f"Profile {path.name}"
    try:
        file = ProfileFile.model_validate(data)
    except ValidationError as error:
        raise ProfileError(f"{where}: {fault_sentence(error, ProfileFile)}") from error
    if repeats is not None and repeats < 1:
        raise ProfileError(f"The number of repeats must be 1 or more, not {repeats}.")
    try:
        trial = plugins.trial(file.kind)
    except KeyError:
        known = plugins.kinds()
        raise ProfileError(f"{where}: no trial is called {file.kind}{nearest(file.kind, known)}") from None
    except Exception as error:
        raise ProfileError(f"{where}: the trial {file.kind} cannot be loaded: {error}") from error
    file = with_overrides(
        file, {key: override(text, key, trial.parameters) for key, text in overrides.items()}, repeats
    )
    file = file if hosts is None else with_hosts(file, hosts)
    scenarios, own = zip(*_scenarios(file, where, trial), strict=True)
    return Profile(
        name=file.name,
        title=file.title or file.name,
        description=file.description,
        kind=file.kind,
        text=tomli_w.dumps(file.model_dump(mode="json", exclude_defaults=True, exclude_none=True)),
        scenarios=scenarios,
        repeats=file.repeats,
        seed=file.seed,
        sites=tuple(file.sites),
        order=file.order,
        own=own,
    )


def _scenarios(file: ProfileFile, where: str, trial: Trial[Any]) -> Iterable[tuple[NewScenario, frozenset[str]]]:
    """Every scenario at every point of the matrix, with the parameters that it sets itself. Raises ProfileError."""
    for key in file.matrix:
        if key in file.parameters or any(key in scenario.parameters for scenario in file.scenarios):
            raise ProfileError(f"{where}: {key} is in the matrix and in parameters; remove it from one of them.")
    runs = math.prod(len(values) for values in file.matrix.values()) * max(1, len(file.scenarios)) * file.repeats
    if runs > MOST_RUNS:
        raise ProfileError(f"{where}: it asks for {runs:,} runs; {MOST_RUNS:,} are the most. Shorten the matrix.")
    names: set[str] = set()
    for scenario in file.scenarios or [ScenarioTable(name="")]:
        for values in itertools.product(*file.matrix.values()):
            point = dict(zip(file.matrix, values, strict=True))
            parts = [scenario.name, *(f"{key}={_short(value)}" for key, value in point.items())]
            name = " ".join(filter(None, parts)) or file.name
            if name in names:
                raise ProfileError(f"{where}: two scenarios are called {name!r}; give each a name of its own.")
            names.add(name)
            parameters = {**file.parameters, **scenario.parameters, **point}
            thresholds = {**file.thresholds, **scenario.thresholds}
            own = frozenset(scenario.parameters) | frozenset(point)
            hosts = file.hosts if scenario.hosts is None else scenario.hosts
            yield new_scenario(trial, name, parameters, thresholds, where, hosts), own


def new_scenario(
    trial: Trial[Any],
    name: str,
    parameters: Mapping[str, Any],
    thresholds: Mapping[str, Threshold],
    where: str,
    hosts: Placement | None = None,
) -> NewScenario:
    """A scenario with complete, validated parameters. Raises ProfileError; `where` begins its sentence."""
    try:
        complete = trial.parameters.model_validate(dict(parameters))
    except ValidationError as error:
        raise ProfileError(f"{where}: {fault_sentence(error, trial.parameters)}") from error
    known = [kind.name for kind in trial.metrics]
    for metric in thresholds:
        if metric not in known:
            raise ProfileError(f"{where}: no metric is called {metric}{nearest(metric, known)}")
    bounds = {metric: threshold.model_dump(exclude_none=True) for metric, threshold in thresholds.items()}
    placement = {} if hosts is None else hosts.stored()
    return NewScenario(name, trial.kind, complete.model_dump(mode="json"), bounds, placement)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else tomli_w.dumps({"v": value}).removeprefix("v = ").strip()


def override(text: str, key: str, model: type[Parameters]) -> Any:
    """The value of `--set key=value`: TOML where the parameter accepts it, otherwise the plain text."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    field = model.model_fields.get(key)
    if field is None or field.annotation is None:
        return value
    try:
        TypeAdapter[Any](field.annotation).validate_python(value)
    except ValidationError:
        return text
    return value


def with_edits(
    profile: Profile, title: str, edits: Mapping[str, Any], sites: tuple[Site, ...], trial: Trial[Any]
) -> Profile:
    """The profile, called `title`, with `edits` in every scenario, except in those that set the parameter themselves.

    Raises ProfileError: a scenario cannot run with them.
    """
    if not edits:
        return profile
    scenarios = []
    for scenario, own in zip(profile.scenarios, profile.own, strict=True):
        changes = {name: value for name, value in edits.items() if name not in own}
        try:
            complete = trial.parameters.model_validate({**scenario.parameters, **changes})
        except ValidationError as error:
            raise ProfileError(f"Scenario {scenario.name}: {fault_sentence(error, trial.parameters)}") from error
        scenarios.append(replace(scenario, parameters=complete.model_dump(mode="json")))
    text = scenarios_text(
        profile.name, title, scenarios, profile.repeats, seed=profile.seed, sites=sites, order=profile.order
    )
    return replace(profile, title=title, text=text, scenarios=tuple(scenarios), sites=sites)


def campaign_of(profile: Profile) -> NewCampaign:
    """The campaign of a profile: repeats interleaved, the scenarios of each round in the profile's order."""
    scenarios, rounds = len(profile.scenarios), profile.repeats
    order = rotated(scenarios, rounds) if profile.order is Order.ROTATED else shuffled(scenarios, rounds, profile.seed)
    return NewCampaign(
        name=profile.name,
        title=profile.title,
        profile_text=profile.text,
        order_seed=profile.seed,
        scenarios=profile.scenarios,
        order=order,
        sites=tuple(
            {key: str(value) for key, value in site.model_dump(exclude_none=True).items() if value != ""}
            for site in profile.sites
        ),
    )


def rotated(scenarios: int, repeats: int) -> tuple[tuple[int, int], ...]:
    """(scenario, repeat) pairs: the first round in the profile's order, each later one from the next scenario on."""
    return tuple(
        ((place + repeat - 1) % scenarios, repeat) for repeat in range(1, repeats + 1) for place in range(scenarios)
    )


def shuffled(scenarios: int, repeats: int, seed: int) -> tuple[tuple[int, int], ...]:
    """(scenario, repeat) pairs: the first round in the profile's order, later rounds shuffled by `seed`."""
    drawn = random.Random(seed)
    order: list[tuple[int, int]] = []
    for repeat in range(1, repeats + 1):
        round_ = list(range(scenarios))
        if repeat > 1:
            drawn.shuffle(round_)
        order += [(index, repeat) for index in round_]
    return tuple(order)


def save_profile(name: str, text: str, *, replace: bool = False) -> Path:
    """Write a profile of the operator's.

    Raises ProfileError for a bad name, if it exists and must not be replaced, or if it cannot be written.
    """
    if not _NAME.fullmatch(name):
        raise ProfileError(
            f"{name!r} cannot be a profile's name: use small letters, digits, dot, dash and underscore, 64 at most."
        )
    path = user_profiles_dir() / f"{name}.toml"
    if path.exists() and not replace:
        raise ProfileError(f"A profile {name} exists already; choose another name, or replace it.")
    partial = path.with_suffix(".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise ProfileError(
            f"The profile cannot be written to {path} ({error.strerror}): check the disk and the rights of its folder."
        ) from error
    return path
