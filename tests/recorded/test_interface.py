"""What version 0.1.0 offered to scripts and profiles is still there: under its name, or as an alias.

`interface-0.1.0.json` was recorded before the tree was redesigned, and is never written again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.recorded.interface import interface

RECORDED = json.loads((Path(__file__).parent / "interface-0.1.0.json").read_text())


CHANGED_DEFAULTS = {("pki create-intermediate", "--path-length"): {"default": 0}}
"""What is now the default of the definition, and was put in place of None by the command: the same is done."""


_DIGITS = 8
"""Length of a fingerprint's beginning that actions asked for: they accept `root:A` now, too, as the commands did."""


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return interface(tmp_path_factory.mktemp("interface"))


@pytest.mark.parametrize("command", RECORDED["commands"])
def test_each_command_accepts_the_recorded_arguments(today: Mapping[str, Any], command: str) -> None:
    assert command in today["commands"]
    now = today["commands"][command]
    for argument, was in RECORDED["commands"][command].items():
        assert argument in now, "an option keeps its spelling, or has an alias"
        assert _comparable(now[argument]) == _comparable({**was, **CHANGED_DEFAULTS.get((command, argument), {})})
        assert set(was["choices"] or ()) <= set(now[argument]["choices"] or ())
    known = {now[argument].get("dest") for argument in RECORDED["commands"][command]}
    assert not [name for name, one in now.items() if one.get("required") and one["dest"] not in known]
    positions = [sum(name.startswith("position") for name in one) for one in (now, RECORDED["commands"][command])]
    assert positions[0] == positions[1]


def _with_bounds_of(now: Mapping[str, Any], was: Mapping[str, Any]) -> dict[str, Any]:
    wider = now.get("min_length") == 1 and was.get("min_length") == _DIGITS
    return {**now, "min_length": _DIGITS} if wider else dict(now)


def _with_values_of(now: Any, was: Any) -> Any:
    """A choice that has more values than it had is the same to those who give one of the old ones."""
    if not isinstance(now, Mapping) or not now.get("values") or not was.get("values"):
        return now
    return {**now, "values": [value for value in now["values"] if value in was["values"]]}


def _comparable(argument: Mapping[str, Any]) -> dict[str, Any]:
    """All but the choices; that nothing is given has no other meaning as None than as an empty text or list."""
    return {**argument, "dest": None, "choices": None, "default": argument.get("default") or None}


def test_exit_codes_are_the_same(today: Mapping[str, Any]) -> None:
    assert today["exit codes"] == RECORDED["exit codes"]


@pytest.mark.parametrize("kind", RECORDED["trials"])
@pytest.mark.parametrize("part", ["parameters", "metrics", "series", "live"])
def test_names_of_a_trial_are_the_same(today: Mapping[str, Any], kind: str, part: str) -> None:
    now, was = today["trials"][kind][part], RECORDED["trials"][kind][part]
    assert {name: _with_values_of(now.get(name), one) for name, one in was.items()} == was


@pytest.mark.parametrize("action", RECORDED["actions"])
def test_each_action_has_its_parameters(today: Mapping[str, Any], action: str) -> None:
    now, was = today["actions"][action], RECORDED["actions"][action]
    assert {name: _with_bounds_of(now.get(name), one) for name, one in was.items()} == was


@pytest.mark.parametrize("profile", RECORDED["profiles"])
def test_each_profile_runs_the_same_scenarios(today: Mapping[str, Any], profile: str) -> None:
    assert today["profiles"][profile] == RECORDED["profiles"][profile]


def test_keys_of_profiles_and_published_figures_are_the_same(today: Mapping[str, Any]) -> None:
    assert set(RECORDED["profile keys"]) <= set(today["profile keys"])
    assert set(RECORDED["published"]) <= set(today["published"])


@pytest.mark.parametrize("command", RECORDED["JSON keys"])
def test_json_has_the_keys_that_scripts_read(today: Mapping[str, Any], command: str) -> None:
    assert not set(RECORDED["JSON keys"][command]) - set(today["JSON keys"][command])
