"""The source tree shows where each feature is; run as a program, this writes it into CONTRIBUTING.md and a page."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "labconsole", ROOT / "ui" / "labconsole_ui", *sorted((ROOT / "plugins").glob("labconsole_*")))
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
TREE_PAGE = ROOT / "docs" / "reference" / "tree.md"
SHOWN_BY_HAND = (
    "labconsole/security/pki/",
    "labconsole/security/token/",
    "labconsole/security/x509/",
    "plugins/labconsole_amqp/roles/",
    "plugins/labconsole_amqp/trial/",
    "plugins/labconsole_certificates/operations/",
    "plugins/labconsole_keypool/service/",
    "plugins/labconsole_v2x/security/",
    "plugins/labconsole_v2x/stations/",
)
"""Packages that CONTRIBUTING.md shows next to plugins and the folders of core and window: where most changes begin."""
MOST_SHOWN = 40
MOST_FILES, MOST_LINES = 20, 550
_DOCSTRING = re.compile(r'(?:#.*\n|\s)*"""(.*?)"""', re.DOTALL)
"""At the start of a module: to parse all modules takes seconds."""
_BLOCK = re.compile(r"(?<=## The tree\n```\n).*?(?=```\n)", re.DOTALL)


def modules(folder: Path) -> list[Path]:
    """The modules of a package, without `__init__`."""
    return [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]


def packages(source: Path) -> list[Path]:
    """A source root's packages, itself first."""
    return sorted({path.parent for path in source.rglob("*.py")})


def first_line(path: Path) -> str:
    """The first line of a module's docstring; empty if it has none."""
    docstring = _DOCSTRING.match(path.read_text(encoding="utf-8"))
    return "" if docstring is None else docstring[1].strip().partition("\n")[0]


def purposes(source: Path) -> dict[str, str]:
    """Each package's path from the root, and the first line of its docstring."""
    return {
        f"{package.relative_to(ROOT).as_posix()}/": first_line(package / "__init__.py") for package in packages(source)
    }


def short_tree() -> str:
    """A line for each source root, each folder of core and window, and each package picked by hand."""
    shown = {
        path: purpose
        for source in SOURCES
        for path, purpose in purposes(source).items()
        if path in SHOWN_BY_HAND or ROOT / path == source or ((ROOT / path).parent == source and source in SOURCES[:2])
    }
    width = max(map(len, shown))
    return "".join(f"{path:<{width}}  {purpose}\n" for path, purpose in shown.items())


def tree_page() -> str:
    """The whole tree as a page: a table for each source root."""
    lines = ["# Source tree", "", "Each package of the sources, by what the first line of its docstring says.", ""]
    for source in SOURCES:
        lines += [f"## {source.relative_to(ROOT).as_posix()}", "", "| Package | Purpose |", "| --- | --- |"]
        lines += [f"| `{path}` | {purpose} |" for path, purpose in purposes(source).items()]
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_folders_and_files_have_a_size_that_can_be_surveyed(source: Path) -> None:
    folders = {str(package.relative_to(ROOT)): len([*package.glob("*.py")]) for package in packages(source)}
    files = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in source.rglob("*.py")
    }
    assert {name: count for name, count in folders.items() if count > MOST_FILES} == {}
    assert {name: count for name, count in files.items() if count > MOST_LINES} == {}


@pytest.mark.parametrize("source", SOURCES[1:], ids=lambda source: source.name)
def test_window_and_plugins_have_no_two_files_of_one_name(source: Path) -> None:
    names = Counter(path.name for package in packages(source) for path in modules(package))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_module_says_what_it_is_for() -> None:
    assert [str(path) for source in SOURCES for path in source.rglob("*.py") if not first_line(path)] == []


def test_contributing_shows_the_tree_in_some_forty_lines() -> None:
    shown = _BLOCK.search(CONTRIBUTING.read_text(encoding="utf-8"))
    assert shown is not None
    assert shown[0] == short_tree(), "run: .venv/bin/python tests/test_tree.py"
    assert set(SHOWN_BY_HAND) <= {line.partition(" ")[0] for line in shown[0].splitlines()}
    assert len(shown[0].splitlines()) <= MOST_SHOWN


def test_the_page_of_the_tree_shows_every_package() -> None:
    assert TREE_PAGE.read_text(encoding="utf-8") == tree_page(), "run: .venv/bin/python tests/test_tree.py"


def test_files_that_contributing_and_decisions_name_are_there() -> None:
    roots = (ROOT, *(ROOT / name for name in ("labconsole", "ui", "plugins", "tests")))
    pages = [CONTRIBUTING, *sorted((ROOT / "docs" / "decisions").glob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|typ|md|toml))`", text)
    assert len(named) > 20
    missing = [name for name in named if not any((root / name).is_file() for root in roots)]
    assert [name for name in missing if not name.startswith("labconsole_dice/")] == []


def test_only_operations_open_the_certificate_database_for_writing() -> None:
    """A panel performs operations, so that terminal and window have the same refusals, confirmations and audit list."""
    panel = ROOT / "plugins" / "labconsole_certificates" / "panel"
    assert [
        path.name
        for path in sorted(panel.rglob("*.py"))
        if re.search(r"\bPkiStore\b", path.read_text(encoding="utf-8"))
    ] == []


if __name__ == "__main__":
    text = CONTRIBUTING.read_text(encoding="utf-8")
    CONTRIBUTING.write_text(_BLOCK.sub(lambda _block: short_tree(), text, count=1), encoding="utf-8")
    TREE_PAGE.write_text(tree_page(), encoding="utf-8")
