"""The backends OpenSSL, AWS-LC and PKCS#11 token accept and refuse the same packets, and leave no keys in the token."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from awscrt.crypto import EC
from cryptography.hazmat.primitives.ciphers.aead import AESCCM
from pkcs11 import Attribute, KeyType, ObjectClass, PKCS11Error

from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token, open_token
from labconsole.security.token.cryptoki.raw_aes import RawAESKey, generate_aes
from labconsole.security.token.errors import TokenError
from labconsole.security.token.lab_token import make_softhsm_token
from labconsole_v2x.security.backends import (
    Backend,
    SoftwareSymmetricKey,
    TokenDecryptionKey,
    TokenKey,
    TokenSymmetricKey,
    aws_lc_verifier,
    generate_decryption_key,
    generate_key,
    generate_symmetric_key,
    key_loader,
)
from labconsole_v2x.security.encryption import (
    DecryptionError,
    decrypt_with_certificate,
    decrypt_with_key,
    encrypt_to_certificate,
    encrypt_to_key,
)
from labconsole_v2x.security.issuing import issue
from labconsole_v2x.security.keys import SigningKey, SoftwareKey, load_public_key
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import (
    CAM_PSID,
    Certificate,
    Curve,
    Header,
    Point,
    PointForm,
    PublicKey,
    Validity,
)
from labconsole_v2x.security.trust import KeyLoader, StoreLimits, TrustStore, UntrustedRootError, software_verifier
from labconsole_v2x.security.verification import Reason, Verifier
from tests.helpers.kryoptic_token import make_kryoptic_token
from tests.helpers.nss_token import make_nss_token
from tests.labconsole_v2x.security.lab_certificates import (
    HOUR_S,
    NOW_S,
    NOW_US,
    PERMISSIONS,
    Holder,
    cam_payload,
    certify,
    root_authority,
    signature_of,
    signed_cam,
    spoiled,
    ticket,
    ticket_authority,
    verify_digest,
)

PIN, SO_PIN = Secret("1234-user"), Secret("5678-officer")
ROOT = root_authority()
AUTHORITY = ticket_authority(ROOT)


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    return make_softhsm_token(tmp_path_factory.mktemp("softhsm"), "v2x", PIN, SO_PIN)


@pytest.fixture
def token(configuration: TokenConfiguration) -> Iterator[Token]:
    with open_token("v2x", configuration, PIN) as opened:
        yield opened


@pytest.fixture(params=["nss", "kryoptic"])
def token_without_brainpool(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Token]:
    """A token with NIST curves only; skips the one that is not installed or built."""
    if request.param == "nss":
        configuration = make_nss_token(tmp_path, PIN)
    else:
        configuration = make_kryoptic_token(tmp_path, "v2x", PIN, SO_PIN)
    with open_token("v2x", configuration, PIN) as opened:
        yield opened


def receiver(load_key: KeyLoader, limits: StoreLimits | None = None) -> Verifier:
    """A receiver that trusts the root and knows the authority."""
    trust = TrustStore(limits, load_key)
    trust.add_root(ROOT.certificate)
    assert trust.add(AUTHORITY.certificate) is None
    return Verifier(trust)


@dataclass(frozen=True)
class Sender:
    """A ticket and its key, in software or in a token."""

    certificate: Certificate
    key: SigningKey

    @classmethod
    def of(cls, key: SigningKey) -> Sender:
        validity = Validity(NOW_S - HOUR_S, NOW_S + HOUR_S)
        authority = AUTHORITY.certificate
        return cls(issue(AUTHORITY.key, key.public_key, validity, issuer=authority, permissions=PERMISSIONS), key)

    def packet(self, time_us: int, *, certificate: bool = True) -> bytes:
        header = Header(CAM_PSID, time_us)
        return PacketSigner(self.certificate, self.key).sign(cam_payload(), header, include_certificate=certificate)


def with_signature(packet: bytes, size: int, r: bytes, s: bytes) -> bytes:
    """The packet with other r (x only) and s."""
    assert len(r) == len(s) == size
    return packet[: -2 * size] + r + s


def decompressed(key: PublicKey) -> PublicKey:
    numbers = load_public_key(key).public_numbers()
    x, y = (number.to_bytes(key.curve.size, "big") for number in (numbers.x, numbers.y))
    return PublicKey(key.curve, Point(PointForm.UNCOMPRESSED, x, y))


def judged_packets(curve: Curve) -> list[tuple[bytes, Reason]]:
    """Packets of one ticket, right and wrong, and the verdict on each."""
    size = curve.size
    sender = Sender.of(SoftwareKey.generate(curve))
    compressed = Sender.of(SoftwareKey.generate(curve, compressed_r=True))
    uncompressed = certify(
        AUTHORITY, verification_key=decompressed(sender.key.public_key), permissions=PERMISSIONS
    ).certificate
    good = [sender.packet(NOW_US), sender.packet(NOW_US + 1, certificate=False), compressed.packet(NOW_US)]
    good.append(Sender(uncompressed, sender.key).packet(NOW_US))
    fresh = [sender.packet(NOW_US + number) for number in range(2, 6)]
    none, most = bytes(size), b"\xff" * size
    bad = [spoiled(fresh[0])]
    bad += [with_signature(fresh[1], size, *numbers) for numbers in ((none, none), (most, most), (none, most))]
    bad.append(fresh[2].replace(cam_payload(), cam_payload()[:-1] + b"\xff"))
    bad.append(Sender(sender.certificate, SoftwareKey.generate(curve)).packet(NOW_US + 9))
    point = Point(PointForm.COMPRESSED_Y0, b"\xff" * size)
    not_a_point = certify(AUTHORITY, verification_key=PublicKey(curve, point), permissions=PERMISSIONS)
    return [
        *((packet, Reason.ACCEPTED) for packet in good),
        *((packet, Reason.SIGNATURE_INVALID) for packet in bad),
        (signed_cam(Holder(not_a_point.certificate, SoftwareKey.generate(curve))), Reason.CHAIN_INVALID),
        (fresh[3], Reason.ACCEPTED),
    ]


@pytest.mark.parametrize("curve", Curve, ids=str)
def test_all_backends_accept_and_refuse_the_same_packets(curve: Curve, token: Token) -> None:
    packets = judged_packets(curve)
    for backend in Backend:
        verifier = receiver(key_loader(backend, token))
        outcomes = [verifier.verify(packet, NOW_US) for packet, _ in packets]
        assert [outcome.reason for outcome in outcomes] == [reason for _, reason in packets], backend


@pytest.mark.parametrize("curve", Curve, ids=str)
def test_backends_differ_in_nothing_but_what_they_load_into(curve: Curve, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS-LC has P-256 only here: other curves are verified by OpenSSL."""
    loaded: list[bytes] = []
    load = EC.new_key_from_der_data

    def counted(octets: bytes) -> object:
        loaded.append(octets)
        return load(octets)

    monkeypatch.setattr(EC, "new_key_from_der_data", counted)
    key = SoftwareKey.generate(curve)
    digest = bytes(range(curve.size))
    signature = signature_of(key, digest)
    for load_key in (software_verifier, aws_lc_verifier):
        verify = load_key(key.public_key)
        assert verify(signature.r.x, signature.s, digest)
        assert not verify(signature.r.x, signature.s, digest[::-1])
    assert len(loaded) == (curve is Curve.P256)


def test_every_backend_refuses_what_is_not_a_point(token: Token) -> None:
    for curve in Curve:
        for form, x, y in (
            (PointForm.COMPRESSED_Y0, b"\xff" * curve.size, b""),
            (PointForm.UNCOMPRESSED, b"\1" * curve.size, b"\1" * curve.size),
            (PointForm.X_ONLY, b"\1" * curve.size, b""),
        ):
            for backend in Backend:
                with pytest.raises(ValueError, match=r"\w"):
                    key_loader(backend, token)(PublicKey(curve, Point(form, x, y)))


@pytest.mark.parametrize("curve", Curve, ids=str)
@pytest.mark.parametrize("backend", [Backend.OPENSSL, Backend.TOKEN])
def test_generated_key_signs_packets_that_are_accepted(backend: Backend, curve: Curve, token: Token) -> None:
    sender = Sender.of(generate_key(backend, curve, token))
    assert sender.key.curve is curve
    assert isinstance(sender.key, TokenKey) is (backend is Backend.TOKEN)
    verifier = receiver(software_verifier)
    assert [verifier.verify(sender.packet(NOW_US, certificate=c), NOW_US).accepted for c in (True, False)] == [
        True,
        False,
    ]
    assert verifier.verify(sender.packet(NOW_US + 1, certificate=False), NOW_US).accepted


def test_compressed_r_is_a_setting_of_keys_in_software() -> None:
    digest = bytes(32)
    assert signature_of(generate_key(Backend.OPENSSL, Curve.P256), digest).r.form is PointForm.X_ONLY
    compressed = generate_key(Backend.OPENSSL, Curve.P256, compressed_r=True)
    assert signature_of(compressed, digest).r.form is not PointForm.X_ONLY


def test_several_threads_sign_with_one_key_of_the_token(token: Token) -> None:
    key = generate_key(Backend.TOKEN, Curve.P256, token)
    digests = [bytes((number,)) * 32 for number in range(100)]
    with ThreadPoolExecutor(4) as threads:
        signatures = list(threads.map(partial(signature_of, key), digests))
    public = load_public_key(key.public_key)
    assert all(verify_digest(public, *pair) for pair in zip(signatures, digests, strict=True))


def test_several_threads_verify_with_one_session_of_the_token(token: Token) -> None:
    load = key_loader(Backend.TOKEN, token)

    def verdicts(number: int) -> list[bool]:
        key, digest = SoftwareKey.generate(), bytes((number,)) * 32
        verify, signature = load(key.public_key), signature_of(key, digest)
        return [verify(signature.r.x, signature.s, digest), verify(signature.r.x, signature.s, digest[:-1] + b"\xff")]

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(verdicts, range(60))) == [[True, False]] * 60


@pytest.mark.parametrize("curve", [Curve.P256, Curve.BRAINPOOL_P256R1], ids=str)
@pytest.mark.parametrize("backend", [Backend.OPENSSL, Backend.TOKEN])
def test_generated_encryption_key_decrypts_what_is_encrypted_to_its_ticket(
    backend: Backend, curve: Curve, token: Token
) -> None:
    key, other = (generate_decryption_key(backend, curve, token) for _ in range(2))
    assert isinstance(key, TokenDecryptionKey) is (backend is Backend.TOKEN)
    certificate = ticket(AUTHORITY, encryption_key=key.public_key).certificate
    secrets_before = secret_keys(token)
    for plaintext in (b"one", b"another"):
        octets = encrypt_to_certificate(plaintext, certificate)
        assert decrypt_with_certificate(octets, certificate, key) == plaintext
        for refused, by in ((spoiled(octets), key), (octets, other)):
            with pytest.raises(DecryptionError):
                decrypt_with_certificate(refused, certificate, by)
    assert decrypt_with_key(encrypt_to_key(b"to a key", key.public_key), key) == b"to a key"
    assert secret_keys(token) == secrets_before, "secrets of messages stay in the token"
    for peer_curve in Curve:
        if peer_curve is not curve:
            with pytest.raises(ValueError, match=r"\w"):
                key.shared_secret(SoftwareKey.generate(peer_curve).public_key)


def secret_keys(token: Token) -> int:
    """The number of secret keys in the token, of whatever session."""
    return len(list(token.session().get_objects({Attribute.CLASS: ObjectClass.SECRET_KEY})))


def test_several_threads_decrypt_with_one_key_of_the_token(token: Token) -> None:
    key = generate_decryption_key(Backend.TOKEN, token=token)
    messages = [encrypt_to_key(bytes((number,)) * 20, key.public_key) for number in range(60)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(partial(decrypt_with_key, key=key), messages)) == [
            bytes((number,)) * 20 for number in range(60)
        ]


SYMMETRIC = [Backend.OPENSSL, Backend.TOKEN]


@pytest.mark.parametrize("backend", SYMMETRIC)
def test_symmetric_key_decrypts_what_it_encrypted_and_nothing_that_was_altered(backend: Backend, token: Token) -> None:
    key = generate_symmetric_key(backend, token)
    assert isinstance(key, TokenSymmetricKey) is (backend is Backend.TOKEN)
    for size in (0, 1, 15, 16, 17, 300):
        nonce, plaintext = bytes(range(12)), bytes(range(256))[:size].ljust(size, b"x")
        ciphertext = key.encrypt(nonce, plaintext)
        assert len(ciphertext) == size + 16
        assert key.decrypt(nonce, ciphertext) == plaintext
        for at in range(0, len(ciphertext), 7):
            altered = ciphertext[:at] + bytes((ciphertext[at] ^ 1,)) + ciphertext[at + 1 :]
            with pytest.raises(DecryptionError):
                key.decrypt(nonce, altered)
        for octets, number in ((ciphertext, bytes(12)), (ciphertext[:-1], nonce), (b"", nonce)):
            with pytest.raises(DecryptionError):
                key.decrypt(number, octets)
    with pytest.raises(DecryptionError):
        generate_symmetric_key(backend, token).decrypt(nonce, ciphertext)
    for use in (key.encrypt, key.decrypt):
        with pytest.raises(ValueError, match="a nonce of 11 octets instead of 12"):
            use(bytes(11), ciphertext)


def test_token_encrypts_as_software_does_under_the_same_key(token: Token) -> None:
    """Both have the value of a key here that the token lets be read, which none of its own keys does."""
    value = bytes(range(16))
    template = {
        Attribute.CLASS: ObjectClass.SECRET_KEY,
        Attribute.KEY_TYPE: KeyType.AES,
        Attribute.TOKEN: False,
        Attribute.ENCRYPT: True,
        Attribute.VALUE: value,
    }
    key = TokenSymmetricKey(RawAESKey(cast(Any, token.session().create_object(template))))
    for size in (0, 5, 16, 100, 1000):
        nonce, plaintext = os.urandom(12), os.urandom(size)
        ciphertext = AESCCM(value, 16).encrypt(nonce, plaintext, None)
        assert key.encrypt(nonce, plaintext) == SoftwareSymmetricKey(value).encrypt(nonce, plaintext) == ciphertext
        assert key.decrypt(nonce, ciphertext) == plaintext


def test_symmetric_key_of_another_token_decrypts_what_it_encrypted(token_without_brainpool: Token) -> None:
    key = generate_symmetric_key(Backend.TOKEN, token_without_brainpool)
    assert key.decrypt(bytes(12), key.encrypt(bytes(12), b"in any token")) == b"in any token"


def test_encryption_key_of_another_token_decrypts(token_without_brainpool: Token) -> None:
    key = generate_decryption_key(Backend.TOKEN, token=token_without_brainpool)
    assert decrypt_with_key(encrypt_to_key(b"in any token", key.public_key), key) == b"in any token"


def test_several_threads_encrypt_with_one_key_of_the_token(token: Token) -> None:
    key = generate_symmetric_key(Backend.TOKEN, token)
    nonces = [bytes((number,)) * 12 for number in range(100)]
    with ThreadPoolExecutor(4) as threads:
        ciphertexts = list(threads.map(partial(key.encrypt, plaintext=b"plaintext of two blocks"), nonces))
    for nonce, ciphertext in zip(nonces, ciphertexts, strict=True):
        assert key.decrypt(nonce, ciphertext) == b"plaintext of two blocks"


def test_symmetric_keys_are_not_shown(token: Token) -> None:
    value = bytes(range(16))
    assert repr(value) not in repr(SoftwareSymmetricKey(value))
    handle = generate_aes(token.session()).handle
    with pytest.raises(PKCS11Error):
        handle[Attribute.VALUE]


def public_keys(token: Token) -> int:
    """The number of public keys in the token, of whatever session."""
    return len(list(token.session().get_objects({Attribute.CLASS: ObjectClass.PUBLIC_KEY})))


def test_token_has_no_more_keys_than_the_receiver_has_certificates(token: Token) -> None:
    limits = StoreLimits(tickets=4, probation=3)
    verifier = receiver(key_loader(Backend.TOKEN, token), limits)
    assert public_keys(token) == 2
    foreign = ticket_authority(root_authority())
    for number in range(15):
        assert verifier.verify(signed_cam(ticket(AUTHORITY)), NOW_US).accepted
        assert verifier.verify(signed_cam(ticket(foreign)), NOW_US).reason is Reason.UNKNOWN_ISSUER
        assert verifier.verify(spoiled(signed_cam(ticket(AUTHORITY))), NOW_US).reason is Reason.SIGNATURE_INVALID
        assert public_keys(token) <= len(verifier.trust) + 3, number  # those no longer used go with the next load
    assert len(verifier.trust) == 2 + 4 + 3


def test_key_is_removed_with_the_next_load_when_its_verifier_is_no_longer_used(token: Token) -> None:
    load = key_loader(Backend.TOKEN, token)
    verify = load(SoftwareKey.generate().public_key)
    kept = load(SoftwareKey.generate().public_key)
    assert public_keys(token) == 2
    del verify
    gc.collect()
    another = load(SoftwareKey.generate().public_key)
    assert public_keys(token) == 2
    assert not kept(bytes(32), bytes(32), bytes(32)) and not another(bytes(32), bytes(32), bytes(32))


def test_packet_on_a_curve_that_the_token_lacks_is_refused_and_the_next_one_verified(
    token_without_brainpool: Token,
) -> None:
    brainpool = Curve.BRAINPOOL_P256R1
    verifier = receiver(key_loader(Backend.TOKEN, token_without_brainpool))
    refused = verifier.verify(signed_cam(ticket(AUTHORITY, brainpool)), NOW_US)
    assert refused.reason is Reason.CHAIN_INVALID
    assert "cannot import a public key on brainpoolP256r1" in refused.detail
    assert verifier.verify(signed_cam(ticket(AUTHORITY)), NOW_US).accepted
    with pytest.raises(UntrustedRootError, match="cannot import a public key on brainpoolP256r1"):
        verifier.trust.add_root(root_authority(brainpool).certificate)
    with pytest.raises(TokenError, match="cannot generate a key pair on brainpoolP256r1"):
        generate_key(Backend.TOKEN, brainpool, token_without_brainpool)
