"""The locks hold what pyproject asks for, with hashes, and name no registry."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import environment

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[\w.]+)(?: ; (?P<marker>.+?))? \\$", re.MULTILINE)


def text_of(lock: Path) -> str:
    return (ROOT / lock).read_text("utf-8")


def pinned(lock: Path) -> dict[str, set[str]]:
    pins: dict[str, set[str]] = {}
    for match in PIN.finditer(text_of(lock)):
        pins.setdefault(canonicalize_name(match["name"]), set()).add(match["version"])
    return pins


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def asked_for(project: dict[str, Any]) -> list[Requirement]:
    extras = project["project"]["optional-dependencies"]
    named = project["project"]["dependencies"] + [line for extra in ("gui", "parquet", "dev") for line in extras[extra]]
    return [Requirement(line) for line in named]


def test_every_dependency_is_locked_within_its_range(project: dict[str, Any]) -> None:
    pins = pinned(environment.CONSOLE_LOCK)
    for requirement in asked_for(project):
        versions = pins.get(canonicalize_name(requirement.name))
        assert versions, f"{requirement.name} is not locked: compile the locks again"
        assert all(requirement.specifier.contains(version) for version in versions), str(requirement)


def test_the_build_backend_is_locked_within_its_range(project: dict[str, Any]) -> None:
    pins = pinned(environment.BUILD_LOCK)
    for requirement in map(Requirement, project["build-system"]["requires"]):
        assert all(requirement.specifier.contains(version) for version in pins[canonicalize_name(requirement.name)])


def test_both_locks_agree() -> None:
    console = pinned(environment.CONSOLE_LOCK)
    build = pinned(environment.BUILD_LOCK)
    shared = console.keys() & build.keys()
    assert "cffi" in shared
    assert {name: console[name] for name in shared} == {name: build[name] for name in shared}


@pytest.mark.parametrize("lock", [environment.BUILD_LOCK, environment.CONSOLE_LOCK])
def test_every_entry_has_a_hash_and_no_registry_is_named(lock: Path) -> None:
    text = text_of(lock)
    for entry in re.split(r"\n(?=\S)", text):
        assert entry.startswith("#") or "--hash=sha256:" in entry, entry.splitlines()[0]
    assert "://" not in text
    assert not re.search(r"--(extra-)?index-url|--find-links|--trusted-host", text)


@pytest.mark.parametrize("lock", [environment.BUILD_LOCK, environment.CONSOLE_LOCK])
def test_every_locked_package_is_in_the_notices(lock: Path) -> None:
    notices = (ROOT / "THIRD-PARTY-NOTICES.md").read_text("utf-8")
    named = {canonicalize_name(word) for word in re.findall(r"[\w.-]+", notices)}
    assert pinned(lock).keys() <= named
