"""The wheel: what a checkout has at its root is in it and is found there, by the same locator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("profiles", "resources")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, installed in a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("labconsole-*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


def in_the_wheel(site: Path, code: str) -> str:
    """Run code that finds the installed wheel before this checkout; return what it prints."""
    variables = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=site, env=variables, check=True, capture_output=True, text=True).stdout.strip()


def test_profiles_and_resources_are_found_in_the_wheel(site: Path) -> None:
    code = "from labconsole import paths as l; print(l.profiles_dir(), l.resource(), sep='\\n')"
    expected = [str(site / "labconsole" / "_data" / name) for name in SHIPPED]
    assert in_the_wheel(site, code).splitlines() == expected


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_of_them_is_left_out(site: Path, name: str) -> None:
    def contents(folder: Path) -> dict[Path, bytes]:
        return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert contents(site / "labconsole" / "_data" / name) == contents(ROOT / name)


def test_documentation_is_found_in_the_wheel_with_all_pages_and_pictures(site: Path) -> None:
    code = (
        "from labconsole.documentation import Documentation; found = Documentation()\n"
        "print(found.folder, *(page.title and page.name for page in found.pages), sep='\\n')"
    )
    folder, *names = in_the_wheel(site, code).splitlines()
    assert Path(folder) == site / "labconsole" / "_data" / "docs"
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert set(names) == pages == {str(path.relative_to(folder)) for path in Path(folder).rglob("*.md")}
    pictures = {path.name for path in Path(folder, "images").iterdir()}
    assert pictures == {path.name for path in (ROOT / "docs" / "images").iterdir()}


def test_all_three_floors_and_the_plugins_come_from_the_wheel(site: Path) -> None:
    names = ("labconsole", "labconsole_ui", "labconsole_amqp", "labconsole_keypool")
    code = (
        "from importlib.util import find_spec; from labconsole.model.plugin import Plugins\n"
        f"print(Plugins.discover().broken, *[find_spec(name).origin for name in {names}], sep='\\n')"
    )
    broken, *origins = in_the_wheel(site, code).splitlines()
    assert broken == "()"
    assert [Path(origin).is_relative_to(site) for origin in origins] == [True] * len(names)


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
