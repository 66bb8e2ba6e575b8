"""What a user reads is in plain language: the words that cannot be searched for are in no text of the sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.model.plugin import Plugins

ROOT = Path(__file__).parents[1]
BANNED = re.compile(
    r"\b(anew|beside|whoever|nobody|somebody|a stranger|takes? in|taken in|hands? out|go(?:es)? on|going on|lies|stands"
    r"|told|what came of it)\b|(?<!there )(?<!There )\bis no (?!longer\b)(?:\w|$)",
    re.IGNORECASE,
)


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string in a source file that is not a docstring: also the fixed parts of f-strings."""
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(source)):  # a body comes before its statements
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in documentation:
                yield node.lineno, node.value
        elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            documentation.update(id(statement.value) for statement in node.body if isinstance(statement, ast.Expr))


@pytest.mark.parametrize("folder", ["labconsole", "ui", "plugins", "installer"])
def test_texts_have_no_banned_words(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {match[0]!r} in {text!r}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in texts(path.read_text(encoding="utf-8"))
        if (match := BANNED.search(text))
    ]
    assert not found, "\n".join(found)


def test_a_banned_word_is_found() -> None:
    source = '"""It lies."""\nnumber = 5\ntext = f"The key {number} lies in a token"\n'
    assert [text for _, text in texts(source) if BANNED.search(text)] == [" lies in a token"]
    assert not BANNED.search("There is no run 5: it is no longer there.")


def test_help_of_commands_has_no_banned_words() -> None:
    entries = [entry for plugin in Plugins.discover().providers for entry in plugin.operations.values()]
    assert not [entry.help for entry in entries if BANNED.search(entry.help)]


def test_documentation_has_no_banned_words() -> None:
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    pages += sorted((ROOT / "docs").rglob("*.md")) + sorted((ROOT / "resources" / "published").glob("*.toml"))
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r} in {line!r}"
        for path in pages
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (match := BANNED.search(re.sub(r"`[^`]*`|\*Take in\*", "", line)))
    ]
    assert not found, "\n".join(found)
