"""A share as words: it comes back, and what was mistyped is named by its position."""

from __future__ import annotations

import random

import pytest

from labconsole_keypool.shares.secret_sharing import Share, ShareError, split_key
from labconsole_keypool.shares.share_words import WORDS, from_words, sheet, to_words

CONSONANTS, VOWELS = "bdfghjklmnprstvz", "aiou"


@pytest.fixture(scope="module")
def share() -> Share:
    """One of three."""
    return split_key(bytes(range(32)), 2, 3)[1]


def test_34_words_are_the_share(share: Share) -> None:
    words = to_words(share)
    assert len(words) == WORDS == 34
    assert {len(word) for word in words} == {5}
    assert from_words(" ".join(words)) == share


def test_words_may_be_typed_in_many_ways(share: Share) -> None:
    words = to_words(share)
    assert from_words("-".join(words).upper()) == share
    assert from_words(",\n".join(f"{n}. {word}" for n, word in enumerate(words, start=1))) == share
    assert from_words(sheet(share)) == share


def test_every_single_wrong_letter_is_named_by_its_word(share: Share) -> None:
    words = to_words(share)
    for position, word in enumerate(words, start=1):
        for at, letter in enumerate(word):
            for other in VOWELS if letter in VOWELS else CONSONANTS:
                if other != letter:
                    typed = [*words]
                    typed[position - 1] = word[:at] + other + word[at + 1 :]
                    with pytest.raises(ShareError, match=rf"Mistyped: word {position} \({typed[position - 1]}\)\."):
                        from_words(" ".join(typed))


def test_letters_changed_over_in_a_word_are_named(share: Share) -> None:
    words = to_words(share)
    for position, word in enumerate(words, start=1):
        for one, other in ((0, 2), (0, 4), (2, 4), (1, 3)):
            letters = [*word]
            letters[one], letters[other] = letters[other], letters[one]
            if letters != [*word]:
                typed = [*words]
                typed[position - 1] = "".join(letters)
                with pytest.raises(ShareError, match=rf"Mistyped: word {position} "):
                    from_words(" ".join(typed))


def test_neighbouring_words_changed_over_are_named(share: Share) -> None:
    words = to_words(share)
    for first in range(WORDS - 1):
        if words[first] != words[first + 1]:
            typed = [*words]
            typed[first], typed[first + 1] = typed[first + 1], typed[first]
            with pytest.raises(ShareError, match=rf"Mistyped: word {first + 1} "):
                from_words(" ".join(typed))


def test_several_wrong_words_are_all_named(share: Share) -> None:
    typed = [*to_words(share)]
    typed[2], typed[30] = "apple", "x"
    with pytest.raises(ShareError, match=r"Mistyped: word 3 \(apple\), 31 \(x\)\. Compare it with the paper\."):
        from_words(" ".join(typed))


def test_a_missing_word_is_looked_for_where_the_rest_begins_not_to_fit(share: Share) -> None:
    typed = [*to_words(share)]
    del typed[7]
    with pytest.raises(ShareError, match=r"has 34 words, here are 33, and word (8|9|10) "):
        from_words(" ".join(typed))
    with pytest.raises(ShareError, match="has 34 words, here are 0: compare"):
        from_words("")


def test_valid_but_wrong_words_are_detected_by_the_checksum(share: Share) -> None:
    """Of wrong words one in 16 has the right last letter."""
    letters = random.Random(1)
    refusals = set()
    for _ in range(400):
        typed = [*to_words(share)]
        parts = zip((CONSONANTS, VOWELS, CONSONANTS, VOWELS, CONSONANTS), range(5), strict=True)
        typed[11] = "".join(letters.choice(alphabet) for alphabet, _ in parts)
        if typed[11] != to_words(share)[11]:
            with pytest.raises(ShareError) as refusal:
                from_words(" ".join(typed))
            refusals.add(str(refusal.value).split(":")[0])
    assert refusals == {"Mistyped", "This share is damaged (its checksum is wrong)"}


def test_sheet_describes_itself_and_has_no_long_line(share: Share) -> None:
    lines = sheet(share).splitlines()
    assert lines[0].startswith("# Share 2 of 3, of which 2 are needed; set ")
    assert lines[2].startswith(" 1 ")
    assert max(map(len, lines)) <= 100
