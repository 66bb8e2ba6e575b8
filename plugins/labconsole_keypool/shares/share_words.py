"""A share as words that can be spoken and written on paper; each word has a check letter against typing errors.

A word is consonant, vowel, consonant, vowel, consonant, as in Wilkerson's proquints, but carries 12 bits instead of 16:
its last letter checks the others and the word's position. It is a sum over the field of 16 elements in which every
letter has its own weight, so that each wrong letter, each two letters changed over and each two neighbouring words
changed over are noticed, and of other words 15 in 16. The share's checksum finds the rest.
"""

from __future__ import annotations

import re

from labconsole_keypool.shares.secret_sharing import SHARE_BYTES, Share, ShareError

_CONSONANTS = "bdfghjklmnprstvz"
_VOWELS = "aiou"
_WORD = re.compile(f"[{_CONSONANTS}][{_VOWELS}][{_CONSONANTS}][{_VOWELS}][{_CONSONANTS}]")
_BITS = 12
WORDS = SHARE_BYTES * 8 // _BITS
_A_ROW = 6
_NUMBER = re.compile(r"\d+[.:)]?")


def to_words(share: Share) -> tuple[str, ...]:
    """The share as 34 words of five letters."""
    bits = int.from_bytes(share.to_bytes(), "big")
    values = (bits >> _BITS * (WORDS - position) & (1 << _BITS) - 1 for position in range(1, WORDS + 1))
    return tuple(_word(value, position) for position, value in enumerate(values, start=1))


def from_words(text: str) -> Share:
    """The share that was typed: words parted by blanks, line breaks, commas or hyphens.

    Numbers, and lines that begin with #, are passed over.

    Raises:
        ShareError: a word is mistyped (named by its position), one is missing or too many.
    """
    typed = "\n".join(line for line in text.lower().splitlines() if not line.lstrip().startswith("#"))
    words = [word for word in re.split(r"[\s,;-]+", typed) if word and not _NUMBER.fullmatch(word)]
    wrong = [
        f"{position} ({word[:12]})"
        for position, word in enumerate(words[:WORDS], start=1)
        if not _WORD.fullmatch(word) or _word(_value(word), position) != word
    ]
    if len(words) != WORDS:
        # From a missing word on, all seem wrong: the first of them is where to look.
        where = f", and word {wrong[0]} is the first that does not fit" if wrong else ""
        raise ShareError(f"A share has {WORDS} words, here are {len(words)}{where}: compare it with the paper.")
    if wrong:
        raise ShareError(f"Mistyped: word {', '.join(wrong)}. Compare it with the paper.")
    bits = 0
    for word in words:
        bits = bits << _BITS | _value(word)
    return Share.from_bytes(bits.to_bytes(SHARE_BYTES, "big"))


def sheet(share: Share) -> str:
    """The share as it is printed: lines that begin with # describe it, then come its words, numbered."""
    words = [f"{position:2} {word}" for position, word in enumerate(to_words(share), start=1)]
    rows = ["   ".join(words[start : start + _A_ROW]) for start in range(0, WORDS, _A_ROW)]
    return "\n".join(
        (
            f"# Share {share.index} of {share.total}, of which {share.threshold} are needed; set {share.set_id.hex()}.",
            "# With the others it opens wrapper keys of an HSM key pool: keep it secret, and apart from them.",
            *rows,
            "",
        )
    )


def _word(value: int, position: int) -> str:
    first, first_vowel, second, second_vowel = value >> 8, value >> 6 & 3, value >> 2 & 15, value & 3
    check = _times(2, first) ^ _times(4, second) ^ _times(8, first_vowel << 2 | second_vowel) ^ position & 15
    return f"{_CONSONANTS[first]}{_VOWELS[first_vowel]}{_CONSONANTS[second]}{_VOWELS[second_vowel]}{_CONSONANTS[check]}"


def _value(word: str) -> int:
    first, second = _CONSONANTS.index(word[0]), _CONSONANTS.index(word[2])
    return first << 8 | _VOWELS.index(word[1]) << 6 | second << 2 | _VOWELS.index(word[3])


def _times(power: int, element: int) -> int:
    """`element` times a power of two in the field of 16 elements (x^4 + x + 1)."""
    while power > 1:
        element = element << 1 ^ (0b10011 if element & 8 else 0)
        power >>= 1
    return element
