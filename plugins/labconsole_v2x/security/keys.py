"""ECDSA keys of certificates: loading, verifying and signing digests as IEEE 1609.2 (5.3.1) defines them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from labconsole_v2x.security.encoding import encode_signature, encode_x_only_signature
from labconsole_v2x.security.structures import Curve, Point, PointForm, PublicKey, Signature

CURVES: dict[Curve, ec.EllipticCurve] = {
    Curve.P256: ec.SECP256R1(),
    Curve.BRAINPOOL_P256R1: ec.BrainpoolP256R1(),
    Curve.BRAINPOOL_P384R1: ec.BrainpoolP384R1(),
    Curve.P384: ec.SECP384R1(),
}
_ECDSA = {
    32: ec.ECDSA(utils.Prehashed(hashes.SHA256())),
    48: ec.ECDSA(utils.Prehashed(hashes.SHA384())),
}
_HASHES = {"sha256": hashlib.sha256, "sha384": hashlib.sha384}
_ORDERS = {curve: library.group_order for curve, library in CURVES.items()}
_X_ONLY = PointForm.X_ONLY
_FORMS = {2: PointForm.COMPRESSED_Y0, 3: PointForm.COMPRESSED_Y1}


class SigningKey(Protocol):
    """A private key in software or in a token."""

    @property
    def curve(self) -> Curve:
        """The curve, whose hash the digests have."""

    @property
    def public_key(self) -> PublicKey:
        """Its public key, compressed."""

    def sign_digest(self, digest: bytes) -> bytes:
        """Signs a digest in about the time of one ECDSA signature; returns the encoded `Signature`.

        Octets, because every packet that is sent takes this way: with a `Signature` between, it took 2 us more.
        """


@dataclass(frozen=True)
class SoftwareKey:
    """A private key in this process, signed with by `cryptography`.

    `compressed_r` gives R as a compressed point, as road stations do. It triples the time of a signature: the nonce
    is recovered from the signature and R computed from it again, to learn the parity of its y. That arithmetic does
    not run in constant time: for lab keys only.
    """

    private: ec.EllipticCurvePrivateKey
    curve: Curve
    compressed_r: bool = False

    @classmethod
    def generate(cls, curve: Curve = Curve.P256, *, compressed_r: bool = False) -> SoftwareKey:
        """A new random key."""
        return cls(ec.generate_private_key(CURVES[curve]), curve, compressed_r)

    @classmethod
    def of_value(cls, value: int, curve: Curve = Curve.P256, *, compressed_r: bool = False) -> SoftwareKey:
        """The key of a private value from 1 to the order of the curve - 1; ValueError where it is outside."""
        return cls(ec.derive_private_key(value, CURVES[curve]), curve, compressed_r)

    @property
    def value(self) -> int:
        """The private value."""
        return self.private.private_numbers().private_value

    @property
    def public_key(self) -> PublicKey:
        """Its public key, compressed."""
        return PublicKey(self.curve, compressed_point(self.private.public_key()))

    def sign_digest(self, digest: bytes) -> bytes:
        """Signs a digest of 32 or 48 octets; returns the encoded `Signature`."""
        der = self.private.sign(digest, _ECDSA[len(digest)])
        middle, size = 4 + der[3], self.curve.size
        # An integer in DER is shorter or, with an octet 0 before it, longer by one.
        r, s = der[4:middle][-size:].rjust(size, b"\0"), der[middle + 2 :][-size:].rjust(size, b"\0")
        if self.compressed_r:
            return encode_signature(Signature(self.curve, self._compressed_r(r, s, digest), s))
        return encode_x_only_signature(self.curve, r + s)

    def shared_secret(self, peer: PublicKey) -> bytes:
        """x of the point that both sides compute (ECDH); ValueError where `peer` is not a point of the same curve."""
        return self.private.exchange(ec.ECDH(), load_public_key(peer))

    def _compressed_r(self, r: bytes, s: bytes, digest: bytes) -> Point:
        # s = (e + r d) / k, so that k and the point R = k G follow; e is the digest, cut to the curve's size.
        order = _ORDERS[self.curve]
        e = int.from_bytes(digest[: self.curve.size], "big")
        nonce = (e + int.from_bytes(r, "big") * self.value) * pow(int.from_bytes(s, "big"), -1, order) % order
        return compressed_point(ec.derive_private_key(nonce, CURVES[self.curve]).public_key())


def compressed_point(key: ec.EllipticCurvePublicKey) -> Point:
    """The compressed point of a loaded key."""
    octets = key.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    return Point(_FORMS[octets[0]], octets[1:])


def load_public_key(key: PublicKey) -> ec.EllipticCurvePublicKey:
    """Loads a key in 22 us from a compressed point, in 6 us else; ValueError where it is not a point of its curve."""
    if key.point.form is _X_ONLY:
        raise ValueError("a point without its y")
    octets = bytes((key.point.form.value,)) + key.point.x + key.point.y
    return ec.EllipticCurvePublicKey.from_encoded_point(CURVES[key.curve], octets)


def signature_digest(hash_name: str, tbs: bytes, signer_canonical: bytes) -> bytes:
    """The digest that is signed (5.3.1.2); `signer_canonical` is empty for what is self-signed.

    `hash_name` is the hash of the signer's curve, `signer_canonical` the signer's certificate in canonical form.
    """
    digest = _HASHES[hash_name]
    return digest(digest(tbs).digest() + digest(signer_canonical).digest()).digest()


def integers(signature: Signature) -> tuple[bytes, bytes]:
    """r and s of a signature: r is x of the point R modulo the curve's order, which x may pass (in practice never)."""
    r = signature.r.x
    if signature.r.form is not _X_ONLY:
        x, order = int.from_bytes(r, "big"), _ORDERS[signature.curve]
        r = r if x < order else (x - order).to_bytes(len(r), "big")
    return r, signature.s


_BEFORE_INTEGER = (None, *[b"\x02\x20"] * 127, *[b"\x02\x21\0"] * 128)
"""By first octet: what is before an integer of 32 octets in DER."""


@cache
def _beginnings(before_r: bytes | None) -> tuple[tuple[bytes, bytes] | None, ...]:
    """By the first octet of s: what is before r, and between r and s."""
    return tuple(
        (b"\x30%c%b" % (64 + len(before_r) + len(before_s), before_r), before_s) if before_r and before_s else None
        for before_s in _BEFORE_INTEGER
    )


_BEGINNINGS = tuple(map(_beginnings, _BEFORE_INTEGER))
"""By the first octet of r, then by that of s."""


def der_signature(r: bytes, s: bytes) -> bytes:
    """Ecdsa-Sig-Value (RFC 3279, 2.2.3) of a signature's integers."""
    begin = _BEGINNINGS[r[0]][s[0]]
    if begin is not None and len(r) == 32:  # as below, in a quarter of the time
        return begin[0] + r + begin[1] + s
    octets = _der_integer(r) + _der_integer(s)
    return b"\x30%c%b" % (len(octets), octets)


def integers_verifier(key: ec.EllipticCurvePublicKey) -> Callable[[bytes, bytes, bytes], bool]:
    """A function of r, s and a digest of 32 or 48 octets: whether r and s are its signature by a key."""
    verify = key.verify

    def is_valid(r: bytes, s: bytes, digest: bytes) -> bool:
        try:
            verify(der_signature(r, s), digest, _ECDSA[len(digest)])
        except InvalidSignature:
            return False
        return True

    return is_valid


def _der_integer(octets: bytes) -> bytes:
    octets = octets.lstrip(b"\0")
    if not octets or octets[0] & 0x80:
        octets = b"\0" + octets
    return b"\x02%c%b" % (len(octets), octets)
