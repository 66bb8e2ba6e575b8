"""Splits a transport key into shares, some of which restore it (Shamir), and rejects wrong sets before use.

Shamir's scheme gives a wrong key in silence for too few shares, or those of two sets: hence the set's number, each
share's checksum, and the key check value. Free of python-pkcs11: shares are read in the window as well.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from Crypto.Protocol.SecretSharing import Shamir
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from labconsole.errors import UserError

KEY_BYTES = 32
MOST_SHARES = 16

_VERSION = 1
_HALF = KEY_BYTES // 2
"""Bytes that pycryptodome splits at a time."""
_FORMAT = struct.Struct(f">B8sBBB3s{_HALF}s{_HALF}s")
_CHECKSUM_BYTES = 4
SHARE_BYTES = _FORMAT.size + _CHECKSUM_BYTES


class ShareError(UserError):
    """A share is damaged, missing, double or of another set; the message says which."""


@dataclass(frozen=True, slots=True)
class Share:
    """One share of an AES-256 transport key. Its halves are secret: they show in no repr."""

    set_id: bytes
    """8 random bytes, the same for all shares of one key."""
    index: int
    """1 to `total`."""
    threshold: int
    total: int
    key_check: bytes
    """The first 3 bytes of AES-ECB of 16 zero bytes under the transport key (PKCS#11 v2.40, 4.7: CKA_CHECK_VALUE)."""
    halves: tuple[bytes, bytes] = field(repr=False)
    """Shares of the key's first and second 16 bytes."""

    def to_bytes(self) -> bytes:
        """51 bytes: version, set, index, threshold, total, key check, halves, then 4 bytes of SHA-256 over all."""
        head = (_VERSION, self.set_id, self.index, self.threshold, self.total, self.key_check)
        content = _FORMAT.pack(*head, *self.halves)
        return content + _checksum(content)

    @classmethod
    def from_bytes(cls, data: bytes) -> Share:
        """The share of `to_bytes`. Raises ShareError: the data have another length or version, or were changed."""
        content, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
        if len(data) != SHARE_BYTES or _checksum(content) != checksum:
            raise ShareError("This share is damaged (its checksum is wrong): type it again, or take another one.")
        version, set_id, index, threshold, total, key_check, *halves = _FORMAT.unpack(content)
        if version != _VERSION:
            raise ShareError(f"This share has version {version}, this console reads {_VERSION}: take a newer console.")
        first, second = halves
        return cls(set_id, index, threshold, total, key_check, (first, second))


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a collection of shares."""

    present: int
    threshold: int
    sentence: str
    """As in "1 of 2 present: share 1 or 3 is missing"."""

    @property
    def complete(self) -> bool:
        """Whether there are enough."""
        return self.present >= self.threshold


def key_check_value(key: bytes) -> bytes:
    """3 bytes that distinguish AES keys (PKCS#11 v2.40, 4.7)."""
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    return (encryptor.update(bytes(16)) + encryptor.finalize())[:3]


def split_key(key: bytes, threshold: int, total: int) -> tuple[Share, ...]:
    """Split a 32-byte key into `total` shares, of which `threshold` restore it (2 <= threshold <= total <= 16).

    Raises:
        ShareError: another threshold or total.
    """
    if not 2 <= threshold <= total <= MOST_SHARES:
        raise ShareError(
            f"{total} shares of which {threshold} are needed cannot be made: take 2 to {MOST_SHARES} shares, and let 2"
            " of them or more be needed."
        )
    set_id, check = secrets.token_bytes(8), key_check_value(key)
    halves = (Shamir.split(threshold, total, half) for half in (key[:_HALF], key[_HALF:]))
    return tuple(
        Share(set_id, index, threshold, total, check, (first, second))
        for (index, first), (_, second) in zip(*halves, strict=True)
    )


def collection_progress(shares: Sequence[Share]) -> Progress:
    """The state of the collection `shares`. Raises ShareError: one is there twice, or is of another set."""
    if not shares:
        return Progress(0, 1, "No share is present")
    first = shares[0]
    for share in shares:
        if _set(share) != _set(first):
            raise ShareError(
                f"Share {share.index} is of another set ({share.set_id.hex()}) than share {first.index}"
                f" ({first.set_id.hex()}): take the shares of one set."
            )
    present = Counter(share.index for share in shares)
    if double := [index for index, times in present.items() if times > 1]:
        raise ShareError(f"Share {double[0]} is there twice: take another one of its set.")
    sentence = f"{len(present)} of {first.threshold} present"
    missing = first.threshold - len(present)
    if missing > 0:
        others = [str(index) for index in range(1, first.total + 1) if index not in present]
        sentence += f": {_missing(missing, others)}"
    return Progress(len(present), first.threshold, sentence)


def combine_shares(shares: Sequence[Share]) -> bytes:
    """The 32-byte key of which these are shares, checked against its key check value.

    Raises:
        ShareError: too few, one twice, of two sets, or they give another key.
    """
    state = collection_progress(shares)
    if not state.complete:
        raise ShareError(f"{state.sentence}.")
    halves = (Shamir.combine([(share.index, share.halves[half]) for share in shares]) for half in (0, 1))
    key = b"".join(halves)
    if key_check_value(key) != shares[0].key_check:
        raise ShareError("These shares give another key than they were made of: one of them was forged.")
    return key


def _set(share: Share) -> tuple[bytes, int, int, bytes]:
    return share.set_id, share.threshold, share.total, share.key_check


def _missing(number: int, others: list[str]) -> str:
    named = f"{', '.join(others[:-1])} or {others[-1]}" if len(others) > 1 else others[0]
    if number == len(others):
        named = named.replace(" or ", " and ")
    if number == 1:
        return f"share {named} is missing"
    return f"shares {named} are missing" if number == len(others) else f"{number} of the shares {named} are missing"


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()[:_CHECKSUM_BYTES]
