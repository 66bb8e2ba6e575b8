"""Makes text from outside safe to show: characters that are invisible, or that change the direction of writing, are
spelt out.

A name may be in any script. Control and format characters are spelt out, which can make a name look like
another one (Unicode Technical Report 36, 2.9 and 2.10; bidirectional overrides: Unicode Standard Annex 9).
"""

from __future__ import annotations

import logging
import unicodedata

_NO_SIGN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""General categories of characters that have no sign of their own."""

_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks without a visible glyph."""

_JOINERS = frozenset("\u200c\u200d")
_VIRAMA = 9
_LAYOUT = frozenset("\n\t")


def shown(text: str) -> str:
    """`text`, with each character that must not be shown as it is in the form `<U+202E>`."""
    return "".join(f"<U+{ord(char):04X}>" if hidden else char for char, hidden in _judged(text))


def shown_lines(text: str) -> str:
    """As `shown`, for a text that may have several lines: line ends and tabs stay as they are.

    For the edges: terminal, log and window show names from bundles, profiles and messages, which may hold escape
    sequences (ECMA-48) that a terminal would obey.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"<U+{ord(char):04X}>" if hidden and char not in _LAYOUT else char for char, hidden in _judged(text))


class SafeFormatter(logging.Formatter):
    """Formats records of a log so that a terminal obeys no escape sequence in them."""

    def format(self, record: logging.LogRecord) -> str:
        """One record, as `logging.Formatter` has it."""
        return shown_lines(super().format(record))


def hidden_characters(text: str) -> tuple[str, ...]:
    """The characters that must not be shown as they are, as `U+202E`."""
    return tuple(f"U+{ord(char):04X}" for char, hidden in _judged(text) if hidden)


def with_hex_pairs(text: str) -> str:
    """`text` of RFC 4514, with those characters as hex pairs of their UTF-8, which that allows (section 2.4)."""
    return "".join(_hex_pairs(char) if hidden else char for char, hidden in _judged(text))


def _hex_pairs(char: str) -> str:
    return "".join(f"\\{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def _judged(text: str) -> list[tuple[str, bool]]:
    """Each character, and whether it must not be shown as it is."""
    return [(char, _is_hidden(char, before)) for before, char in zip(f" {text}", text, strict=False)]


def _is_hidden(char: str, before: str) -> bool:
    if char in _JOINERS:  # Persian and Indic words need them, and only there (RFC 5892, A.1 and A.2)
        return unicodedata.combining(before) != _VIRAMA and unicodedata.bidirectional(before) != "AL"
    variation = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return variation or char in _BLANK or unicodedata.category(char) in _NO_SIGN
