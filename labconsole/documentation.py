"""The documentation that comes with the console: its contents, its pages, and a search in them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath

from labconsole.paths import documentation_dir

INDEX = "index.md"
_CACHED_PAGES = 256
"""Each opening of the documentation reads all pages, for the search."""
_MOST_HITS = 50
_MOST_COUNTED = 5
_TITLE_SCORE = 10
_HEADING = re.compile(r"#{1,6} +(.+)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Section:
    """A heading of a page with the text below it, up to the next heading; `level` is 1 for the title of the page."""

    title: str
    level: int
    text: str

    @property
    def anchor(self) -> str:
        """The part of a link after `#`."""
        return anchor_of(self.title)


@dataclass(frozen=True)
class Page:
    """A page of Markdown; `name` is its path in the documentation, as in `how-to/install.md`."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        """The Markdown of the page."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All headings with their texts; the text before the first one belongs to none."""
        return _sections_of(self.text)

    @cached_property
    def title(self) -> str:
        """The first line, which is the heading of the page."""
        with self.path.open(encoding="utf-8") as file:
            return plain_text(file.readline().removeprefix("# "))


@dataclass(frozen=True)
class Chapter:
    """Pages under a common heading of the contents; without a title they are at the top level."""

    title: str
    pages: tuple[Page, ...]


@dataclass(frozen=True)
class Hit:
    """A section that a search found."""

    page: Page
    section: Section

    @property
    def target(self) -> str:
        """Where it is, as in `how-to/install.md#check-the-computer`."""
        return f"{self.page.name}#{self.section.anchor}"


class Documentation:
    """The pages of one folder; reading them takes some milliseconds, when they are first needed."""

    def __init__(self, folder: Path | None = None) -> None:
        """Raises FileNotFoundError: there is no documentation in the folder, by default that of the console."""
        self.folder = documentation_dir() if folder is None else folder
        contents = tomllib.loads((self.folder / "contents.toml").read_text(encoding="utf-8"))
        self.chapters = tuple(
            Chapter(chapter["title"], tuple(Page(name, self.folder / name) for name in chapter["pages"]))
            for chapter in contents["sections"]
        )
        self._pages = {page.name: page for chapter in self.chapters for page in chapter.pages}

    @property
    def pages(self) -> tuple[Page, ...]:
        """All pages, in the order of the contents."""
        return tuple(self._pages.values())

    def page(self, name: str) -> Page | None:
        """The page of this name, if there is one."""
        return self._pages.get(name)

    def read(self) -> None:
        """Read all pages, as the first search does: in a thread, so that no operator waits for it."""
        for page in self.pages:
            _ = page.sections

    def search(self, query: str) -> list[Hit]:
        """Sections that contain all words of `query`, best first: words in titles count most."""
        words = query.lower().split()
        found = [
            (score, Hit(page, section))
            for page in self.pages
            for section in page.sections
            if words and (score := _score(section, words))
        ]
        found.sort(key=lambda scored: -scored[0])
        return [hit for _score, hit in found[:_MOST_HITS]]


def anchor_of(heading: str) -> str:
    """The anchor of a heading in Markdown, as MkDocs makes it."""
    plain = re.sub(r"[^\w\s-]", "", plain_text(heading)).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)


def plain_text(markdown: str) -> str:
    """The words of a line of Markdown, without its marks; of a link its text."""
    return re.sub(r"[*`|]", "", _LINK.sub(r"\1", markdown)).strip()


def target_of(page: str, link: str) -> str:
    """The name, with its anchor, of the page to which `link` of the page `page` leads: `../glossary.md#run`."""
    path, mark, anchor = link.partition("#")
    if not path:
        return f"{page}{mark}{anchor}"
    parts: list[str] = []
    for part in (PurePosixPath(page).parent / path).parts:
        if part == ".." and parts:
            parts.pop()
        else:
            parts.append(part)
    return f"{'/'.join(parts)}{mark}{anchor}"


@lru_cache(_CACHED_PAGES)
def _sections_of(text: str) -> tuple[Section, ...]:
    return tuple(_sections(text))


def _sections(text: str) -> Iterator[Section]:
    heading, level, lines, listing = "", 0, list[str](), False
    for line in text.splitlines():
        listing ^= line.startswith("```")
        found = None if listing else _HEADING.fullmatch(line)
        if found is None:
            lines.append(plain_text(line))
            continue
        if level:
            yield Section(heading, level, "\n".join(lines))
        heading, level, lines = plain_text(found[1]), len(line) - len(line.lstrip("#")), []
    if level:
        yield Section(heading, level, "\n".join(lines))


def _score(section: Section, words: Sequence[str]) -> int:
    """How well the section fits; 0 where a word is missing."""
    title, text = section.title.lower(), section.text.lower()
    counts = [_TITLE_SCORE * (word in title) + min(text.count(word), _MOST_COUNTED) for word in words]
    return sum(counts) if all(counts) else 0
