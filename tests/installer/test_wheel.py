"""The wheel: what a checkout has at its root is in it and is found there, by the same locator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.shared_once import shared_once

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("profiles", "resources")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, installed in a folder of its own."""
    return shared_once(tmp_path_factory, "wheel", install) / "site"


def install(folder: Path) -> None:
    """Build the wheel, and install it in `folder`/site."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("labconsole-*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--target", str(folder / "site"), str(wheel)], check=True)


CODE = """
import json
from importlib.util import find_spec
from labconsole import paths
from labconsole.documentation import Documentation
from labconsole.model.plugin import Plugins

names = ("labconsole", "labconsole_ui", "labconsole_amqp", "labconsole_keypool")
documentation = Documentation()
print(json.dumps({
    "shipped": [str(paths.profiles_dir()), str(paths.resource())],
    "documentation": str(documentation.folder),
    "pages": [page.title and page.name for page in documentation.pages],
    "broken": str(Plugins.discover().broken),
    "origins": [find_spec(name).origin for name in names],
}))
"""


@pytest.fixture(scope="module")
def in_the_wheel(site: Path) -> dict[str, Any]:
    """What a program finds that imports the installed wheel before this checkout."""
    variables = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, cwd=site, env=variables, check=True, capture_output=True, text=True)
    paths: dict[str, Any] = json.loads(done.stdout)
    return paths


def test_profiles_and_resources_are_found_in_the_wheel(site: Path, in_the_wheel: Mapping[str, Any]) -> None:
    assert in_the_wheel["shipped"] == [str(site / "labconsole" / "_data" / name) for name in SHIPPED]


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_of_them_is_left_out(site: Path, name: str) -> None:
    def contents(folder: Path) -> dict[Path, bytes]:
        return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert contents(site / "labconsole" / "_data" / name) == contents(ROOT / name)


def test_documentation_is_found_in_the_wheel_with_all_pages_and_pictures(
    site: Path, in_the_wheel: Mapping[str, Any]
) -> None:
    folder, names = Path(in_the_wheel["documentation"]), in_the_wheel["pages"]
    assert folder == site / "labconsole" / "_data" / "docs"
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert set(names) == pages == {str(path.relative_to(folder)) for path in folder.rglob("*.md")}
    pictures = {path.name for path in (folder / "images").iterdir()}
    assert pictures == {path.name for path in (ROOT / "docs" / "images").iterdir()}


def test_all_three_floors_and_the_plugins_come_from_the_wheel(site: Path, in_the_wheel: Mapping[str, Any]) -> None:
    assert in_the_wheel["broken"] == "()"
    assert len(in_the_wheel["origins"]) == 4
    assert all(Path(origin).is_relative_to(site) for origin in in_the_wheel["origins"])


@pytest.mark.parametrize(
    "name",
    [
        "labconsole",
        "labconsole_ui",
        "labconsole_amqp",
        "labconsole_certificates",
        "labconsole_keypool",
        "labconsole_v2x",
    ],
)
def test_type_checkers_read_the_types_of_each_package(site: Path, name: str) -> None:
    assert (site / name / "py.typed").is_file()


def test_the_licence_comes_with_it(site: Path) -> None:
    (about,) = site.glob("labconsole-*.dist-info")
    assert {path.name for path in (about / "licenses").iterdir()} == {"LICENSE", "THIRD-PARTY-NOTICES.md"}
