"""Digests, ECDSA signatures and the forms of R, against RFC 6979 and plain curve arithmetic."""

from __future__ import annotations

import hashlib
import random

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from labconsole_v2x.security.keys import SoftwareKey, load_public_key, signature_digest
from labconsole_v2x.security.structures import Curve, Point, PointForm, PublicKey, Signature
from tests.labconsole_v2x.security.lab_certificates import signature_of, verify_digest

XY = tuple[int, int]
# FIPS 186-4, D.1.2 and RFC 5639, 3.4 and 3.6: prime and coefficient a.
P256_PRIME = 2**256 - 2**224 + 2**192 + 2**96 - 1
P384_PRIME = 2**384 - 2**128 - 2**96 + 2**32 - 1
FIELDS = {
    Curve.P256: (P256_PRIME, -3),
    Curve.P384: (P384_PRIME, -3),
    Curve.BRAINPOOL_P256R1: (
        0xA9FB57DBA1EEA9BC3E660A909D838D726E3BF623D52620282013481D1F6E5377,
        0x7D5A0975FC2C3057EEF67530417AFFE7FB8055C126DC5C6CE94A4B44F330B5D9,
    ),
    Curve.BRAINPOOL_P384R1: (
        0x8CB91E82A3386D280F5D6F7E50E641DF152F7109ED5456B412B1DA197FB71123ACD3A729901D1A71874700133107EC53,
        0x7BC382C63D8C150C3C72080ACE05AFA0C2BEA28E4FB22787139165EFBA91F90F8AA5814A503AD4EB04A8C7DD22CE2826,
    ),
}
LIBRARY = {
    Curve.P256: ec.SECP256R1(),
    Curve.P384: ec.SECP384R1(),
    Curve.BRAINPOOL_P256R1: ec.BrainpoolP256R1(),
    Curve.BRAINPOOL_P384R1: ec.BrainpoolP384R1(),
}


def add(curve: Curve, left: XY, right: XY) -> XY:
    """The sum of two points that are not opposite."""
    prime, a = FIELDS[curve]
    if left == right:
        slope = (3 * left[0] ** 2 + a) * pow(2 * left[1], -1, prime)
    else:
        slope = (right[1] - left[1]) * pow(right[0] - left[0], -1, prime)
    x = (slope**2 - left[0] - right[0]) % prime
    return x, (slope * (left[0] - x) - left[1]) % prime


def multiply(curve: Curve, factor: int, point: XY) -> XY:
    product = point
    for bit in bin(factor)[3:]:
        product = add(curve, product, product)
        if bit == "1":
            product = add(curve, product, point)
    return product


def base_point(curve: Curve) -> XY:
    numbers = ec.derive_private_key(1, LIBRARY[curve]).public_key().public_numbers()
    return numbers.x, numbers.y


def uncompressed(curve: Curve, point: XY) -> PublicKey:
    x, y = (value.to_bytes(curve.size, "big") for value in point)
    return PublicKey(curve, Point(PointForm.UNCOMPRESSED, x, y))


def digest_of(curve: Curve, octets: bytes) -> bytes:
    return hashlib.new(curve.hash_name, octets).digest()


def test_signature_of_rfc_6979_is_valid() -> None:
    # RFC 6979, A.2.5: P-256, SHA-256, message "sample".
    key = load_public_key(
        uncompressed(
            Curve.P256,
            (
                0x60FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6,
                0x7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299,
            ),
        )
    )
    r = bytes.fromhex("EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716")
    s = bytes.fromhex("F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8")
    signature = Signature(Curve.P256, Point(PointForm.X_ONLY, r), s)
    assert verify_digest(key, signature, hashlib.sha256(b"sample").digest())
    assert not verify_digest(key, signature, hashlib.sha256(b"Sample").digest())


@pytest.mark.parametrize("hash_name", ["sha256", "sha384"])
def test_signature_digest_is_the_hash_of_both_hashes(hash_name: str) -> None:
    def digest(octets: bytes) -> bytes:
        return hashlib.new(hash_name, octets).digest()

    assert signature_digest(hash_name, b"tbs", b"signer") == digest(digest(b"tbs") + digest(b"signer"))
    assert signature_digest(hash_name, b"tbs", b"") == digest(digest(b"tbs") + digest(b""))


@pytest.mark.parametrize("compressed_r", [False, True])
@pytest.mark.parametrize("curve", Curve)
def test_signatures_are_valid_for_the_library(curve: Curve, compressed_r: bool) -> None:
    key = SoftwareKey.generate(curve, compressed_r=compressed_r)
    algorithm = ec.ECDSA(utils.Prehashed(hashes.SHA256() if curve.size == 32 else hashes.SHA384()))
    for number in range(40):  # a leading octet of zero in r or s is to be expected once in 128
        digest = digest_of(curve, bytes((number,)))
        signature = signature_of(key, digest)
        r, s = (int.from_bytes(octets, "big") for octets in (signature.r.x, signature.s))
        assert (len(signature.r.x), len(signature.s), signature.r.y) == (curve.size, curve.size, b"")
        key.private.public_key().verify(utils.encode_dss_signature(r, s), digest, algorithm)
        assert verify_digest(load_public_key(key.public_key), signature, digest)


@pytest.mark.parametrize("curve", Curve)
def test_the_parity_of_a_compressed_r_is_that_of_the_point(curve: Curve) -> None:
    key = SoftwareKey.generate(curve, compressed_r=True)
    numbers = key.private.public_key().public_numbers()
    order = LIBRARY[curve].group_order
    for number in range(12):
        digest = digest_of(curve, bytes((number,)))
        signature = signature_of(key, digest)
        inverse = pow(int.from_bytes(signature.s, "big"), -1, order)
        first = multiply(curve, int.from_bytes(digest, "big") * inverse % order, base_point(curve))
        second = multiply(curve, int.from_bytes(signature.r.x, "big") * inverse % order, (numbers.x, numbers.y))
        x, y = add(curve, first, second)
        assert x.to_bytes(curve.size, "big") == signature.r.x
        assert signature.r.form is (PointForm.COMPRESSED_Y1 if y & 1 else PointForm.COMPRESSED_Y0)


def test_r_of_a_point_whose_x_passes_the_order_is_its_remainder() -> None:
    # No signature meets this by chance: choose R with such an x, then a key and a digest of which it is the signature.
    curve, order, prime = Curve.P256, ec.SECP256R1().group_order, P256_PRIME
    x0, y0 = base_point(curve)
    b = (y0**2 - x0**3 + 3 * x0) % prime
    x = next(x for x in range(order + 1, order + 100) if pow(x**3 - 3 * x + b, (prime - 1) // 2, prime) == 1)
    y = pow(x**3 - 3 * x + b, (prime + 1) // 4, prime)
    factor = 12345
    negative = (x0, prime - y0)
    key = load_public_key(uncompressed(curve, add(curve, (x, y), multiply(curve, factor, negative))))
    r = s = x - order
    digest = (factor * s % order).to_bytes(32, "big")

    def is_valid(form: PointForm, value: int) -> bool:
        point = Point(form, value.to_bytes(32, "big"))
        return verify_digest(key, Signature(curve, point, s.to_bytes(32, "big")), digest)

    assert is_valid(PointForm.COMPRESSED_Y0, x)
    assert is_valid(PointForm.X_ONLY, r)
    assert not is_valid(PointForm.X_ONLY, x)


@pytest.mark.parametrize(("r", "s"), [(0, 1), (1, 0), (2**256 - 1, 1), (1, 2**256 - 1)])
def test_signatures_out_of_range_are_invalid(r: int, s: int) -> None:
    key = load_public_key(SoftwareKey.generate().public_key)
    for form in (PointForm.X_ONLY, PointForm.COMPRESSED_Y0):
        signature = Signature(Curve.P256, Point(form, r.to_bytes(32, "big")), s.to_bytes(32, "big"))
        assert not verify_digest(key, signature, bytes(32))


def test_random_signatures_are_invalid_and_raise_nothing() -> None:
    source = random.Random(2)
    for curve in Curve:
        key = load_public_key(SoftwareKey.generate(curve).public_key)
        for size in (32, 48):
            r, s = source.randbytes(size), source.randbytes(size)
            signature = Signature(Curve.P256 if size == 32 else Curve.P384, Point(PointForm.COMPRESSED_Y1, r), s)
            assert not verify_digest(key, signature, digest_of(curve, b"x"))


@pytest.mark.parametrize("curve", Curve)
def test_compressed_and_uncompressed_keys_are_the_same_key(curve: Curve) -> None:
    key = SoftwareKey.generate(curve)
    numbers = key.private.public_key().public_numbers()
    assert load_public_key(key.public_key).public_numbers() == numbers
    assert load_public_key(uncompressed(curve, (numbers.x, numbers.y))).public_numbers() == numbers
    assert (key.public_key.point.form is PointForm.COMPRESSED_Y1) is bool(numbers.y & 1)


def test_points_outside_the_curve_are_refused() -> None:
    for point in (
        Point(PointForm.UNCOMPRESSED, bytes(31) + b"\1", bytes(31) + b"\1"),
        Point(PointForm.COMPRESSED_Y0, b"\xff" * 32),
        Point(PointForm.X_ONLY, SoftwareKey.generate().public_key.point.x),
    ):
        with pytest.raises(ValueError, match=r"."):
            load_public_key(PublicKey(Curve.P256, point))


def test_a_private_value_gives_the_same_key_again() -> None:
    key = SoftwareKey.generate(Curve.BRAINPOOL_P384R1)
    again = SoftwareKey.of_value(key.value, Curve.BRAINPOOL_P384R1)
    assert again.public_key == key.public_key
    digest = digest_of(key.curve, b"x")
    assert verify_digest(load_public_key(key.public_key), signature_of(again, digest), digest)
