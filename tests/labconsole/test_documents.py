"""What the documents point to is there: pages, headings, pictures, commands; and the site needs no network."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shlex
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from labconsole import __version__
from labconsole.cli.arguments import command_parser
from labconsole.documentation import Documentation, anchor_of
from labconsole.model.plugin import Plugins

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LOOSE = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = [page.path for page in Documentation(DOCS).pages]
DOCUMENTS = LOOSE + PAGES
PICTURE_BYTES = 5_000_000
"""All pictures together: they are in the wheel."""
LISTING = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")
OF_THE_SAMPLE = "labconsole roll-dice"
"""A command of the plugin that CONTRIBUTING.md shows."""
PLACEHOLDER = re.compile(r"^[A-Z]+(\.\.\.)?$|^\.\.\.$")


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def links(document: Path) -> Iterator[tuple[bool, str]]:
    """Whether it is a picture, and the target, of each link that does not lead out of the project."""
    for mark, target in LINK.findall(LISTING.sub("", document.read_text(encoding="utf-8"))):
        if "://" not in target:
            yield bool(mark), target


@cache
def anchors(document: Path) -> Counter[str]:
    text = LISTING.sub("", document.read_text(encoding="utf-8"))
    return Counter(anchor_of(heading) for heading in re.findall(r"^#{1,6} +(.+)$", text, re.MULTILINE))


def test_every_page_is_in_the_contents_once() -> None:
    names = [page.name for page in Documentation(DOCS).pages]
    assert sorted(names) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
    assert len(names) == len(set(names))


def test_links_lead_to_a_file_and_a_heading() -> None:
    missing = []
    for document in DOCUMENTS:
        for _picture, target in links(document):
            path, _, anchor = target.partition("#")
            file = (document.parent / path).resolve() if path else document
            # Of two equal headings MkDocs and GitHub name the second one in different ways: no link may need it.
            if not file.exists() or (anchor and anchors(file)[anchor] != 1):
                missing.append((name_of(document), target))
    assert missing == []


def test_every_picture_is_used_and_light_enough() -> None:
    used = {
        (document.parent / target).resolve() for document in DOCUMENTS for picture, target in links(document) if picture
    }
    pictures = sorted((DOCS / "images").iterdir())
    # The window shows the dark one of a pair in its dark theme.
    unused = [path.name for path in pictures if path.with_name(path.name.replace("-dark.", "-light.")) not in used]
    assert unused == []
    assert sum(path.stat().st_size for path in pictures) <= PICTURE_BYTES


def typed_commands(document: Path) -> Iterator[str]:
    """The lines of listings that begin with `labconsole`, without what belongs to the shell."""
    for listing in LISTING.findall(document.read_text(encoding="utf-8")):
        for line in listing.splitlines():
            if line.startswith("labconsole "):
                yield line.partition(" #")[0].strip().removesuffix("&").removesuffix("|| true").strip()


def test_commands_in_listings_are_accepted() -> None:
    refused = [
        (name_of(document), command, sentence)
        for document in DOCUMENTS
        for command in typed_commands(document)
        if (sentence := refusal(command))
    ]
    assert refused == []


GROUPS = {"hsm", *(group for plugin in Plugins.discover().providers for group in plugin.command_groups)}


def parser_for(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser for commands that begin with these words: building one takes longer than parsing with it."""
    return built_parser(tuple(words[: 2 if words[:1] and words[0] in GROUPS else 1]))


built_parser = cache(command_parser)


def refusal(command: str) -> str:
    """What the parser says against a command, or nothing."""
    words = shlex.split(command)[1:]
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
        parser_for(words).parse_args(words)
    return errors.getvalue()


def mentioned_commands(document: Path) -> set[str]:
    """Commands in the text: often without the arguments that they need, or with `NAME` in place of one."""
    text = LISTING.sub("", document.read_text(encoding="utf-8"))
    return set(re.findall(r"`(labconsole [^`]+)`", text))


def test_commands_in_the_text_are_there_with_their_options() -> None:
    unknown = []
    for document in [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]:
        for command in mentioned_commands(document):
            if command.startswith(OF_THE_SAMPLE):
                continue
            words = shlex.split(command.replace("...", ""))[1:]
            options = [word.partition("=")[0] for word in words if word.startswith("--")]
            parser = parser_of([word for word in words if not word.startswith("-")])
            if parser is None or not set(options) <= set(parser._option_string_actions):
                unknown.append((name_of(document), command))
    assert unknown == []


def parser_of(words: Sequence[str]) -> argparse.ArgumentParser | None:
    """The parser of the command that the words begin with; the one of its group where the command is a placeholder."""
    parser = parser_for(words)
    for word in words:
        inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        if not inner or PLACEHOLDER.match(word):
            return parser
        if word not in inner[0].choices:
            return None
        parser = inner[0].choices[word]
    return parser


def test_a_wrong_command_is_found() -> None:
    assert "invalid choice" in refusal("labconsole hsm invent")
    assert "unrecognized" in refusal("labconsole run demo --twice")
    assert parser_of(["hsm", "invent"]) is None
    assert parser_of(["pki", "COMMAND"]) is not None


def test_site_is_built_and_loads_nothing_from_the_network(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    site = tmp_path / "site"
    assert (site / "search" / "search_index.js").stat().st_size > 100_000
    assert (site / "site" / "Inter-Regular.otf").is_file()
    loaded = [
        address
        for page in site.rglob("*.html")
        for address in re.findall(r'<(?:script|img|iframe)[^>]+src="([^"]+)"', page.read_text("utf-8"))
        + re.findall(r'<link[^>]+href="([^"]+)"', page.read_text("utf-8"))
    ]
    loaded += [
        address for sheet in site.rglob("*.css") for address in re.findall(r"url\(['\"]?([^)'\"]+)", sheet.read_text())
    ]
    assert len(loaded) > 500
    assert [address for address in loaded if address.startswith(("http:", "https:", "//"))] == []


def test_changelog_has_a_place_for_what_comes_and_then_the_installed_version() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(__version__)} - \d{{4}}-\d\d-\d\d", headings[1])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__


def test_each_changelog_entry_is_one_line() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("## Unreleased")[2]
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "- ", "Each issue "))]
    assert lines == []
    assert [line for line in text.splitlines() if len(line) > 300] == []


def test_each_measurement_names_its_machine_and_date() -> None:
    text = (DOCS / "measurements.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| what \|.*\| machine, date \|.*\n\| ---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [line for table in tables for line in table.splitlines()]
    assert len(rows) > 80
    assert [row for row in rows if not re.search(r"\| [^|\d][^|]*, \d{4}-\d\d-\d\d \|", row)] == []
