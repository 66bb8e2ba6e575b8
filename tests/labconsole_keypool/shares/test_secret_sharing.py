"""Shares of a transport key: enough of one set restore it, everything else is rejected before use."""

from __future__ import annotations

import secrets
from dataclasses import replace
from itertools import combinations

import pytest

from labconsole_keypool.shares.secret_sharing import (
    SHARE_BYTES,
    Share,
    ShareError,
    collection_progress,
    combine_shares,
    key_check_value,
    split_key,
)

KEY = bytes(range(32))


@pytest.mark.parametrize(("threshold", "total"), [(2, 2), (2, 3), (3, 5), (16, 16)])
def test_any_enough_shares_restore_the_key(threshold: int, total: int) -> None:
    shares = split_key(KEY, threshold, total)
    assert [share.index for share in shares] == list(range(1, total + 1))
    for chosen in combinations(shares, threshold):
        assert combine_shares(chosen) == KEY
        assert combine_shares(chosen[::-1]) == KEY
    assert combine_shares(shares) == KEY


def test_too_few_shares_restore_nothing() -> None:
    for few in range(3):
        for chosen in combinations(split_key(KEY, 3, 5), few):
            with pytest.raises(ShareError):
                combine_shares(chosen)


def test_every_mixture_of_two_sets_is_refused() -> None:
    one, other = split_key(KEY, 2, 3), split_key(KEY, 2, 3)
    for mine in one:
        for theirs in other:
            with pytest.raises(ShareError, match=f"Share {theirs.index} is of another set"):
                combine_shares([mine, theirs])


def test_a_share_that_is_there_twice_is_refused() -> None:
    first, second, _ = split_key(KEY, 2, 3)
    with pytest.raises(ShareError, match="Share 1 is there twice"):
        combine_shares([first, first])
    with pytest.raises(ShareError, match="Share 1 is there twice"):
        collection_progress([first, second, first])


def test_forged_share_is_detected_by_the_key_it_gives() -> None:
    first, second, _ = split_key(KEY, 2, 3)
    forged = replace(second, halves=(second.halves[0], secrets.token_bytes(16)))
    assert Share.from_bytes(forged.to_bytes()) == forged  # its checksum is right
    with pytest.raises(ShareError, match="give another key"):
        combine_shares([first, forged])


@pytest.mark.parametrize(("threshold", "total"), [(1, 3), (4, 3), (0, 0), (2, 17)])
def test_numbers_that_share_nothing_are_refused(threshold: int, total: int) -> None:
    with pytest.raises(ShareError, match="cannot be made"):
        split_key(KEY, threshold, total)


def test_a_share_is_its_bytes_and_any_changed_bit_is_noticed() -> None:
    share = split_key(KEY, 2, 3)[1]
    data = share.to_bytes()
    assert len(data) == SHARE_BYTES == 51
    assert Share.from_bytes(data) == share
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ShareError, match="damaged"):
            Share.from_bytes(bytes(changed))
    with pytest.raises(ShareError, match="damaged"):
        Share.from_bytes(data[:-1])


def test_a_share_shows_no_secret_by_accident() -> None:
    share = split_key(KEY, 2, 3)[0]
    assert all(half.hex() not in str(share) and repr(half) not in repr(share) for half in share.halves)


def test_two_sets_of_one_key_have_nothing_in_common() -> None:
    one, other = split_key(KEY, 2, 3)[0], split_key(KEY, 2, 3)[0]
    assert one.set_id != other.set_id
    assert one.halves != other.halves


def test_the_key_check_value_is_that_of_pkcs11() -> None:
    # AES-256 of a zero block under the zero key (NIST CAVP, ECBVarKey256 begins likewise).
    assert key_check_value(bytes(32)).hex() == "dc95c0"


def test_progress_names_the_missing_shares() -> None:
    shares = split_key(KEY, 2, 3)
    assert collection_progress(shares[1:2]).sentence == "1 of 2 present: share 1 or 3 is missing"
    assert not collection_progress(shares[1:2]).complete
    assert collection_progress(shares[:2]).sentence == "2 of 2 present"
    assert collection_progress(shares[:2]).complete
    assert collection_progress([]).sentence == "No share is present"
    assert not collection_progress([]).complete


def test_progress_of_many() -> None:
    shares = split_key(KEY, 3, 5)
    assert collection_progress(shares[:2]).sentence == "2 of 3 present: share 3, 4 or 5 is missing"
    assert collection_progress(shares[:1]).sentence == "1 of 3 present: 2 of the shares 2, 3, 4 or 5 are missing"
    assert collection_progress(split_key(KEY, 3, 3)[:1]).sentence == "1 of 3 present: shares 2 and 3 are missing"
    assert collection_progress(split_key(KEY, 2, 2)[:1]).sentence == "1 of 2 present: share 2 is missing"
