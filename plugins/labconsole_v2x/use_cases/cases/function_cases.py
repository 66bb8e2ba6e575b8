"""The underlying functions of section 2.3.1: each is called with right input and with wrong one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from labconsole_v2x.attacks.attack_senders import DenmSender
from labconsole_v2x.messages import cam, denm
from labconsole_v2x.messages.btp import parse_btp
from labconsole_v2x.messages.geonetworking import carried_payload
from labconsole_v2x.security.backends import generate_key, generate_symmetric_key, key_loader
from labconsole_v2x.security.encoding import compressed
from labconsole_v2x.security.encryption import (
    KEY_SIZE,
    NONCE_SIZE,
    DecryptionError,
    decrypt_with_certificate,
    decrypt_with_shared_key,
    encrypt_to_certificate,
    encrypt_with_shared_key,
)
from labconsole_v2x.security.issuing import CENTRE_PERMISSIONS
from labconsole_v2x.security.keys import SoftwareKey, compressed_point, integers, load_public_key, signature_digest
from labconsole_v2x.security.reading import read_signature
from labconsole_v2x.security.scanning import scan_certificate
from labconsole_v2x.security.structures import CAM_PSID, Curve, Point, PointForm, PublicKey
from labconsole_v2x.use_cases.cases.bench import Bench
from labconsole_v2x.use_cases.catalogue import USE_CASES
from labconsole_v2x.use_cases.evidence_figures import signed_data
from labconsole_v2x.use_cases.functional_catalogue import OK

_TEN = 10
_BLOCKS = (b"", b"a", bytes(31), bytes(range(256)), bytes(10_000))
"""Blocks of data of 0 to 10,000 octets."""


def _function(code: str, results: Callable[[Bench], Iterator[bool]]) -> Callable[[Bench], None]:
    """A case that decides on each result of a function."""

    def run(bench: Bench) -> None:
        for is_right in results(bench):
            bench.decided(USE_CASES[code].title, OK if is_right else "wrong")

    return run


def _frames(bench: Bench) -> Iterator[bytes]:
    for station in (bench.station(), bench.station(kind=DenmSender)):
        for _ in range(_TEN):
            yield station.frame()


def _messages(bench: Bench) -> Iterator[bool]:
    """A CAM or DENM is created if its signed data can be read."""
    for frame in _frames(bench):
        data = signed_data(frame)
        yield data is not None and data.payload is not None


def _serialisation(bench: Bench) -> Iterator[bool]:
    """A message that is decoded and encoded again has the same octets."""
    for frame in _frames(bench):
        data = signed_data(frame)
        assert data is not None and data.payload is not None
        octets = parse_btp(*carried_payload(data.payload)).payload
        codec = cam if data.header.psid == CAM_PSID else denm
        yield codec.encode(codec.decode(octets)) == octets


def _symmetric_keys(bench: Bench) -> Iterator[bool]:
    """New keys give different ciphertexts under one nonce, and each decrypts its own."""
    nonce, seen = os.urandom(NONCE_SIZE), set[bytes]()
    for _ in range(_TEN):
        key = generate_symmetric_key(bench.settings.backend, bench.token)
        ciphertext = key.encrypt(nonce, _BLOCKS[3])
        yield ciphertext not in seen and key.decrypt(nonce, ciphertext) == _BLOCKS[3]
        seen.add(ciphertext)


def _key_pairs(bench: Bench) -> Iterator[bool]:
    """A key pair on each curve signs so that its public key verifies."""
    for curve in Curve:
        key = generate_key(bench.settings.backend, curve, bench.token)
        yield _verified(bench, key.public_key, key.sign_digest(_digest(curve, b"block")), _digest(curve, b"block"))


def _digest(curve: Curve, block: bytes) -> bytes:
    return signature_digest(curve.hash_name, block, b"")


def _verified(bench: Bench, key: PublicKey, signature: bytes, digest: bytes) -> bool:
    verify = key_loader(bench.settings.backend, bench.token)(key)
    return verify(*integers(read_signature(signature, 0)[0]), digest)


def _imports(bench: Bench) -> Iterator[bool]:
    """Keys of certificates in each form are loaded; what is not a point of its curve is refused."""
    load = key_loader(bench.settings.backend, bench.token)
    for uncompressed in (False, True):
        ticket, _ = bench.ticket(uncompressed=uncompressed)
        yield callable(load(scan_certificate(ticket.octets).verification_key))
    yield callable(load(bench.pki.root.verification_key))
    for x in (b"\xff" * 32, (1).to_bytes(32, "big")):  # over the field's prime; without a square root
        yield _is_refused(partial(load, PublicKey(Curve.P256, Point(PointForm.COMPRESSED_Y0, x))), ValueError)


def _is_refused(call: Callable[[], object], error: type[Exception]) -> bool:
    try:
        call()
    except error:
        return True
    return False


def _exports(bench: Bench) -> Iterator[bool]:
    """A public key is the same after it was written in a certificate, and as PEM."""
    for curve in Curve:
        key = generate_key(bench.settings.backend, curve, bench.token).public_key
        pem = load_public_key(key).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        loaded = load_pem_public_key(pem)
        yield isinstance(loaded, ec.EllipticCurvePublicKey) and PublicKey(curve, compressed_point(loaded)) == key
        ticket = bench.pki.ticket(key, bench.pki.aa.validity.start_s)
        yield compressed(scan_certificate(ticket.octets).verification_key) == key


def _signatures(bench: Bench) -> Iterator[bool]:
    """Blocks are signed."""
    key = bench.new_key()
    for block in _BLOCKS:
        digest = _digest(key.curve, block)
        yield _verified(bench, key.public_key, key.sign_digest(digest), digest)


def _verifications(bench: Bench) -> Iterator[bool]:
    """A signature is valid for its block, and not for one with a changed bit."""
    key = bench.new_key()
    for block in _BLOCKS:
        digest = _digest(key.curve, block)
        signature = key.sign_digest(digest)
        yield _verified(bench, key.public_key, signature, digest)
        yield not _verified(bench, key.public_key, signature, bytes((digest[0] ^ 1,)) + digest[1:])


def _ciphers(bench: Bench) -> Iterator[bool]:
    """No block of 16 octets or more is found in its ciphertext."""
    encryption_key, aes_key = SoftwareKey.generate(), os.urandom(KEY_SIZE)
    recipient, _ = bench.ticket(CENTRE_PERMISSIONS, encryption_key.public_key)
    for block in _BLOCKS:
        for octets in (encrypt_to_certificate(block, recipient), encrypt_with_shared_key(block, aes_key)):
            yield len(octets) > len(block) and (len(block) < KEY_SIZE or block not in octets)


def _deciphers(bench: Bench) -> Iterator[bool]:
    """A block comes out by its key; by another key, or with a changed bit, nothing does."""
    encryption_key, aes_key = SoftwareKey.generate(), os.urandom(KEY_SIZE)
    recipient, _ = bench.ticket(CENTRE_PERMISSIONS, encryption_key.public_key)
    to_certificate = partial(decrypt_with_certificate, certificate=recipient, key=encryption_key)
    to_other = partial(decrypt_with_certificate, certificate=recipient, key=SoftwareKey.generate())
    shared, other = (partial(decrypt_with_shared_key, aes_key=key) for key in (aes_key, os.urandom(KEY_SIZE)))
    for block in _BLOCKS:
        encrypted = encrypt_to_certificate(block, recipient)
        yield to_certificate(encrypted) == block
        yield _is_refused(partial(to_other, encrypted), DecryptionError)
        under_key = encrypt_with_shared_key(block, aes_key)
        yield shared(under_key) == block
        yield _is_refused(partial(other, under_key), DecryptionError)
        yield _is_refused(partial(shared, under_key[:-1] + bytes((under_key[-1] ^ 1,))), DecryptionError)


FUNCTION_CASES: Mapping[str, Callable[[Bench], None]] = {
    code: _function(code, results)
    for code, results in zip(
        (code for code, case in USE_CASES.items() if not case.counted),
        (
            _messages,
            _serialisation,
            _symmetric_keys,
            _key_pairs,
            _imports,
            _exports,
            _signatures,
            _verifications,
            _ciphers,
            _deciphers,
        ),
        strict=True,
    )
}
