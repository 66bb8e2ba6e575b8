"""What the documents point to is there, and the guide names every command."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/*.md"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_pictures_are_there(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_the_guide_names_every_command_and_no_other() -> None:
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    table = guide.partition("## The command line")[2].partition("Exit codes")[0]
    told = set(re.findall(r"^\| `labconsole ([\w-]+)", table, re.MULTILINE)) | set(
        re.findall(r", `labconsole ([\w-]+)", table)
    )
    shown = subprocess.run(
        [sys.executable, "-m", "labconsole.cli.main", "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert told == set(re.findall(r"^    ([\w-]+)(?:  |$)", shown, re.MULTILINE))
