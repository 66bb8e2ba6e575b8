"""A share as words that can be spoken and written on paper; each word tells whether it was mistyped."""

from __future__ import annotations

from labconsole_keypool.sharing import Share


def to_words(share: Share) -> tuple[str, ...]:
    """The share as 34 words of five letters."""
    raise NotImplementedError


def from_words(text: str) -> Share:
    """The share that was typed: words parted by blanks, line breaks, commas or hyphens; numbers are passed over.

    Raises:
        ShareError: a word is mistyped (named by its position), one is missing or too many.
    """
    raise NotImplementedError
