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
POSSIBLY_BANNED = re.compile(
    BANNED.pattern.removesuffix(r"(?:\w|$)").replace("(?<!there )(?<!There )", ""), re.IGNORECASE
)
JOINT = re.compile(r"""(?:["'][\s()]*[rRfFuU]*["'])|\\\n""")
"""Between two literals that are one text, and in one that continues on the next line."""
ESCAPED = re.compile(r"\\(?:[abfnrtv]|x..|u....|N\{[^}]*\})")


def may_have_banned_words(source: str) -> bool:
    """Whether a text of a source file may have one: to parse all files takes five times as long."""
    return POSSIBLY_BANNED.search(ESCAPED.sub(" ", JOINT.sub("", source))) is not None


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
        if may_have_banned_words(source := path.read_text(encoding="utf-8"))
        for line, text in texts(source)
        if (match := BANNED.search(text))
    ]
    assert not found, "\n".join(found)


def test_a_banned_word_is_found() -> None:
    source = '"""It lies."""\nnumber = 5\ntext = f"The key {number} lies in a token"\n'
    assert [text for _, text in texts(source) if BANNED.search(text)] == [" lies in a token"]
    assert not BANNED.search("There is no run 5: it is no longer there.")


@pytest.mark.parametrize(
    "text",
    [
        '"It lies."',
        "f'{it}lies{there}'",
        '"It goes "\n  "on."',
        '"First.\\nNobody"',
        'f"It is no {key}"',
        '"It is no "',
        '("It ta"\nf"kes in")',
    ],
)
def test_a_source_with_a_banned_word_is_parsed(text: str) -> None:
    assert any(BANNED.search(part) for _, part in texts(f"text = ({text})"))
    assert may_have_banned_words(text)


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
