"""Profiles: TOML files that name a trial's scenarios, validated, with `extends` and a matrix of parameters.

```toml
format = 1
name = "my-trial"                    # defaults to the file's name
title = "What the list shows"
description = "One sentence"
extends = "swim-within-malaysia"     # optional: everything not said here comes from there
kind = "amqp.messaging"
repeats = 5                          # interleaved: A B C, A B C, ...
seed = 1

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

[[sites]]                            # the source's resource table
name = "Malaysia"
```
"""

from __future__ import annotations

import difflib
import itertools
import random
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from labconsole.locations import data_dir, profiles_dir
from labconsole.plugin import Plugins
from labconsole.store.records import NewCampaign, NewScenario
from labconsole.trial import Trial, TrialError

FORMAT = 1
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class ProfileError(TrialError):
    """A profile cannot be used; the message names the file, the key, and the nearest right name."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Threshold(_Strict):
    """Bounds of one metric, in the metric's unit."""

    min: float | None = None
    max: float | None = None


class Site(_Strict):
    """One row of the source's resource table."""

    name: str
    endpoint: str = ""
    host_name: str = ""
    tls_port: int | None = None
    plain_port: int | None = None
    server: str = ""
    infrastructure: str = ""
    remarks: str = ""


class _Scenario(_Strict):
    name: str
    parameters: dict[str, Any] = {}
    thresholds: dict[str, Threshold] = {}


class _ProfileFile(_Strict):
    """The form of a profile file, after `extends` was followed."""

    format: int
    kind: str
    name: str = ""
    title: str = ""
    description: str = ""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    seed: int = 1
    parameters: dict[str, Any] = {}
    matrix: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    scenarios: list[_Scenario] = []
    thresholds: dict[str, Threshold] = {}
    sites: list[Site] = []


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


def user_profiles_dir() -> Path:
    """Where the operator's own profiles lie."""
    return data_dir() / "profiles"


def _files() -> dict[str, Path]:
    """Profile name -> file; the operator's own hide built-in ones of the same name."""
    return {
        path.stem: path for folder in (profiles_dir(), user_profiles_dir()) for path in sorted(folder.glob("*.toml"))
    }


def list_profiles() -> list[ProfileInfo]:
    """All profiles, built-in and the operator's own, sorted by name; broken ones with their error."""
    return [_info(name, path) for name, path in sorted(_files().items())]


def _info(name: str, path: Path) -> ProfileInfo:
    builtin = path.parent == profiles_dir()
    try:
        data = _merged(path)
    except ProfileError as error:
        return ProfileInfo(name, name, "", "", path, builtin, str(error))
    return ProfileInfo(
        name, str(data.get("title", name)), str(data.get("description", "")), str(data.get("kind", "")), path, builtin
    )


def load_profile(
    name_or_path: str, plugins: Plugins, overrides: Mapping[str, str] | None = None, repeats: int | None = None
) -> Profile:
    """Read and validate a profile by name or path.

    `overrides` sets parameters of all scenarios (text as on the command line: TOML values, or plain words).
    Raises ProfileError.
    """
    path = _find(name_or_path)
    return _validated(_merged(path), path, plugins, overrides or {}, repeats)


def _find(name_or_path: str) -> Path:
    files = _files()
    if name_or_path in files:
        return files[name_or_path]
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.parent != Path():
        if path.is_file():
            return path
        raise ProfileError(f"The profile {name_or_path} does not exist; `labconsole profiles` lists those there are.")
    raise ProfileError(f"No profile is called {name_or_path}{_nearest(name_or_path, files)}")


def _nearest(name: str, choices: Iterable[str]) -> str:
    options = sorted(choices)
    close = difflib.get_close_matches(name, options, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; there are: {', '.join(options)}."


def _merged(path: Path, seen: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The tables of a profile file over those it extends."""
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise ProfileError(f"The profile {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"The profile {path} is not valid TOML: {error}.") from error
    if data.get("format") != FORMAT:
        found = data.get("format", "none")
        raise ProfileError(f"The profile {path} has format {found}; this console reads `format = {FORMAT}`.")
    base_name = data.pop("extends", None)
    if base_name is None:
        return {"name": path.stem, **data}
    base_path = path.parent / f"{base_name}.toml"
    base_path = base_path if base_path.is_file() and base_path != path else _find(str(base_name))
    if base_path in (*seen, path):
        raise ProfileError(f"The profile {path} extends itself by way of {base_name}; take one of the `extends` out.")
    base = _merged(base_path, (*seen, path))
    merged = {**base, "name": path.stem, **data}
    for table in ("parameters", "matrix", "thresholds"):
        merged[table] = {**base.get(table, {}), **data.get(table, {})}
    return merged


def _validated(
    data: Mapping[str, Any], path: Path, plugins: Plugins, overrides: Mapping[str, str], repeats: int | None
) -> Profile:
    try:
        file = _ProfileFile.model_validate(data)
    except ValidationError as error:
        raise ProfileError(f"Profile {path.name}: {_sentence(error, _ProfileFile)}") from error
    if repeats is not None and repeats < 1:
        raise ProfileError(f"The number of repeats must be 1 or more, not {repeats}.")
    try:
        trial = plugins.trial(file.kind)
    except KeyError:
        raise ProfileError(
            f"Profile {path.name}: no trial is called {file.kind}{_nearest(file.kind, plugins.kinds())}"
        ) from None
    fixed = {key: _override(text) for key, text in overrides.items()}
    scenarios = tuple(_scenarios(file, path, trial, fixed))
    canonical = {**data, "repeats": repeats or file.repeats, "parameters": {**file.parameters, **fixed}}
    return Profile(
        name=file.name,
        title=file.title or file.name,
        description=file.description,
        kind=file.kind,
        text=tomli_w.dumps(canonical),
        scenarios=scenarios,
        repeats=repeats or file.repeats,
        seed=file.seed,
        sites=tuple(file.sites),
    )


def _scenarios(file: _ProfileFile, path: Path, trial: Trial[Any], fixed: Mapping[str, Any]) -> Iterable[NewScenario]:
    free = {key: values for key, values in file.matrix.items() if key not in fixed}
    for scenario in file.scenarios or [_Scenario(name="")]:
        for values in itertools.product(*free.values()):
            point = dict(zip(free, values, strict=True))
            parameters = {**file.parameters, **scenario.parameters, **point, **fixed}
            name = " ".join([scenario.name, *(f"{key}={_short(value)}" for key, value in point.items())]).strip()
            thresholds = {**file.thresholds, **scenario.thresholds}
            yield new_scenario(trial, name or file.name, parameters, thresholds, f"Profile {path.name}")


def new_scenario(
    trial: Trial[Any], name: str, parameters: Mapping[str, Any], thresholds: Mapping[str, Threshold], where: str
) -> NewScenario:
    """A scenario with complete, validated parameters. Raises ProfileError; `where` begins its sentence."""
    try:
        complete = trial.parameters.model_validate(dict(parameters))
    except ValidationError as error:
        raise ProfileError(f"{where}: {_sentence(error, trial.parameters)}") from error
    known = [kind.name for kind in trial.metrics]
    for metric in thresholds:
        if metric not in known:
            raise ProfileError(f"{where}: no metric is called {metric}{_nearest(metric, known)}")
    bounds = {metric: threshold.model_dump(exclude_none=True) for metric, threshold in thresholds.items()}
    return NewScenario(name, trial.kind, complete.model_dump(mode="json"), bounds)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else tomli_w.dumps({"v": value}).removeprefix("v = ").strip()


def _override(text: str) -> Any:
    """The value of `--set key=value`: TOML where it is TOML, otherwise the words themselves."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _sentence(error: ValidationError, model: type[BaseModel]) -> str:
    """The first fault that pydantic found, as a sentence with the key and the nearest right name."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        level: Any = model
        for part in first["loc"][:-1]:
            level = (
                _ProfileFile
                if level is None
                else {"scenarios": _Scenario, "sites": Site, "thresholds": Threshold}.get(str(part), level)
            )
        return f"there is no key {key}{_nearest(str(first['loc'][-1]), level.model_fields)}"
    if first["type"] == "missing":
        return f"the key {key} is missing."
    message = first["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    given = "" if isinstance(first["input"], (dict, list)) else f" (it is {first['input']!r})"
    return f"{key}: {message}{given}." if key else f"{message}."


def campaign_of(profile: Profile) -> NewCampaign:
    """The campaign of a profile: repeats interleaved, the scenarios of each round in an order drawn from the seed."""
    return NewCampaign(
        name=profile.name,
        title=profile.title,
        profile_text=profile.text,
        order_seed=profile.seed,
        scenarios=profile.scenarios,
        order=interleaved(len(profile.scenarios), profile.repeats, profile.seed),
        sites=tuple(
            {key: str(value) for key, value in site.model_dump(exclude_none=True).items() if value != ""}
            for site in profile.sites
        ),
    )


def interleaved(scenarios: int, repeats: int, seed: int) -> tuple[tuple[int, int], ...]:
    """(scenario, repeat) pairs: the first round in the profile's order, later rounds shuffled by `seed`."""
    shuffled = random.Random(seed)
    order: list[tuple[int, int]] = []
    for repeat in range(1, repeats + 1):
        round_ = list(range(scenarios))
        if repeat > 1:
            shuffled.shuffle(round_)
        order += [(index, repeat) for index in round_]
    return tuple(order)


def profile_text(name: str, title: str, kind: str, parameters: Mapping[str, Any], repeats: int = 1) -> str:
    """The TOML text of a profile with one scenario; parameters that are None are left out."""
    given = {key: value for key, value in parameters.items() if value is not None}
    return tomli_w.dumps(
        {"format": FORMAT, "name": name, "title": title, "kind": kind, "repeats": repeats, "parameters": given}
    )


def save_profile(name: str, text: str, *, replace: bool = False) -> Path:
    """Write a profile of the operator's. Raises ProfileError for a bad name, or if it exists and shall stay."""
    if not _NAME.fullmatch(name):
        raise ProfileError(
            f"{name!r} cannot be a profile's name: use small letters, digits, dot, dash and underscore, 64 at most."
        )
    path = user_profiles_dir() / f"{name}.toml"
    if path.exists() and not replace:
        raise ProfileError(f"A profile {name} exists already; choose another name, or replace it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    return path
