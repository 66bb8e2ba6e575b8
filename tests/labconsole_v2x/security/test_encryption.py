"""ECIES and AES-CCM of IEEE 1609.2: opened by a second implementation of the scheme, refused when spoiled."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESCCM

from labconsole_v2x.security.encoding import EncodingError
from labconsole_v2x.security.encryption import (
    DecryptionError,
    decrypt_with_certificate,
    decrypt_with_key,
    decrypt_with_shared_key,
    encrypt_to_certificate,
    encrypt_to_key,
    encrypt_with_shared_key,
    open_with_certificate,
    scan_encrypted_data,
    unwrap_key,
    wrap_key,
)
from labconsole_v2x.security.issuing import LabPki, issue
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.scanning import MalformedDataError
from labconsole_v2x.security.structures import Certificate, Curve, Point, PointForm, Validity
from tests.labconsole_v2x.security import second_codec

START_S = 700_000_000
PLAINTEXT = b"\x03\x80\x06secret"
CURVES = {Curve.P256: ec.SECP256R1(), Curve.BRAINPOOL_P256R1: ec.BrainpoolP256R1()}


def wrapped_by_hand(aes_key: bytes, secret: bytes, p1: bytes) -> tuple[bytes, bytes]:
    """C and T of 5.3.5.1: KDF2 with SHA-256 over the shared x, a counter from 1 on and P1; XOR; HMAC cut to 16."""
    stream = b"".join(hashlib.sha256(secret + counter.to_bytes(4, "big") + p1).digest() for counter in (1, 2))
    c = bytes(a ^ b for a, b in zip(aes_key, stream[:16], strict=True))
    return c, hmac.new(stream[16:48], c, hashlib.sha256).digest()[:16]


def opened_by_hand(octets: bytes, key: SoftwareKey, p1: bytes) -> tuple[str, bytes, bytes]:
    """Kind and identifier of the only recipient, and the plaintext; read by the second codec."""
    data = second_codec.decode_data(octets)["content"][1]
    ((kind, recipient),) = data["recipients"]
    wrapped: dict[str, Any] = recipient["encKey"][1]
    form, x = wrapped["v"]
    v = {"compressed-y-0": b"\2", "compressed-y-1": b"\3"}[form] + x
    secret = key.private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVES[key.curve], v))
    aes_key, _ = wrapped_by_hand(wrapped["c"], secret, p1)
    assert wrapped_by_hand(aes_key, secret, p1) == (wrapped["c"], wrapped["t"])
    ciphertext = data["ciphertext"][1]
    plaintext = AESCCM(aes_key, 16).decrypt(ciphertext["nonce"], ciphertext["ccmCiphertext"], None)
    return kind, recipient["recipientId"], plaintext


def recipient(curve: Curve, own_curve: Curve = Curve.P256) -> tuple[Certificate, SoftwareKey]:
    """A certificate with an encryption key on `curve`, and that key; its own key is on `own_curve`."""
    key, encryption_key = SoftwareKey.generate(own_curve), SoftwareKey.generate(curve)
    certificate = issue(
        key,
        key.public_key,
        Validity(START_S, START_S + 3600),
        name="recipient",
        encryption_key=encryption_key.public_key,
    )
    return certificate, encryption_key


@pytest.mark.parametrize("own_curve", [Curve.P256, Curve.P384])
@pytest.mark.parametrize("curve", CURVES)
def test_a_second_implementation_opens_what_is_encrypted_to_a_certificate(curve: Curve, own_curve: Curve) -> None:
    certificate, key = recipient(curve, own_curve)
    # The whole-certificate hash: by the certificate's own key, not by the encryption key.
    p1 = hashlib.new("sha256" if own_curve is Curve.P256 else "sha384", certificate.octets).digest()
    octets = encrypt_to_certificate(PLAINTEXT, certificate)
    assert opened_by_hand(octets, key, p1) == ("certRecipInfo", certificate.hashed_id8, PLAINTEXT)
    assert decrypt_with_certificate(octets, certificate, key) == PLAINTEXT


@pytest.mark.parametrize("curve", CURVES)
def test_a_second_implementation_opens_what_is_encrypted_to_a_key(curve: Curve) -> None:
    key = SoftwareKey.generate(curve)
    octets = encrypt_to_key(PLAINTEXT, key.public_key)
    point = key.public_key.point
    # A PublicEncryptionKey: AES-128-CCM, the curve, the form of the point, its x.
    encoded = bytes((0, 0x80 + curve.choice, 0x80 + point.form.value)) + point.x
    expected = ("rekRecipInfo", hashlib.sha256(encoded).digest()[-8:], PLAINTEXT)
    assert opened_by_hand(octets, key, hashlib.sha256(b"").digest()) == expected
    assert decrypt_with_key(octets, key) == PLAINTEXT


def test_wrapping_agrees_with_the_scheme_by_hand() -> None:
    key, ephemeral = SoftwareKey.of_value(11), SoftwareKey.of_value(22)
    p1 = hashlib.sha256(b"certificate").digest()
    secret = ephemeral.private.exchange(ec.ECDH(), key.private.public_key())
    wrapped = wrap_key(b"sixteen octets..", key.public_key, p1, ephemeral)
    assert (wrapped.c, wrapped.t) == wrapped_by_hand(b"sixteen octets..", secret, p1)
    numbers = ephemeral.private.public_key().public_numbers()
    v = Point(PointForm.UNCOMPRESSED, numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big"))
    assert unwrap_key(replace(wrapped, v=v), key, p1) == b"sixteen octets.."
    for spoiled in (
        replace(wrapped, t=bytes(16)),
        replace(wrapped, c=bytes(16)),
        replace(wrapped, v=key.public_key.point),
        replace(wrapped, v=Point(PointForm.COMPRESSED_Y0, b"\xff" * 32)),
        replace(wrapped, v=Point(PointForm.X_ONLY, v.x)),
        replace(wrapped, curve=Curve.BRAINPOOL_P256R1),
    ):
        with pytest.raises(DecryptionError):
            unwrap_key(spoiled, key, p1)
    with pytest.raises(DecryptionError):
        unwrap_key(wrapped, key, hashlib.sha256(b"another").digest())


@pytest.mark.parametrize(
    ("recipient_key", "aes_key", "p1", "c", "t"),
    [
        (
            "060E41440A4E35154CA0EFCB52412145836AD032833E6BC781E533BF14851085",
            "9169155B08B07674CBADF75FB46A7B0D",
            "A6B7B52554B4203F7E3ACFDB3A3ED8674EE086CE5906A7CAC2F8A398306D3BE9",
            "A6342013D623AD6C5F6882469673AE33",
            "80E1D85D30F1BAE4ECF1A534A89A0786",
        ),
        (
            "DA5E1D853FCC5D0C162A245B9F29D38EB6059F0DB172FB7FDA6663B925E8C744",
            "687E9757DEBFD87B0C267330C183C7B6",
            "05BED5F867B89F30FE5552DF414B65B9DD4073FC385D14921C641A145AA12051",
            "1F6346EDAEAF57561FC9604FEBEFF44E",
            "373C0FA7C52A0798EC36EADFE387C3EF",
        ),
    ],
)
def test_the_worked_examples_of_annex_d_come_out(recipient_key: str, aes_key: str, p1: str, c: str, t: str) -> None:
    """Annex D of IEEE 1609.2a-2017: both have the same ephemeral key."""
    key = SoftwareKey.of_value(int(recipient_key, 16))
    ephemeral = SoftwareKey.of_value(0x1384C31D6982D52BCA3BED8A7E60F52FECDAB44E5C0EA166815A8159E09FFB42)
    wrapped = wrap_key(bytes.fromhex(aes_key), key.public_key, bytes.fromhex(p1), ephemeral)
    assert wrapped.v.x.hex() == "f45a99137b1bb2c150d6d8cf7292ca07da68c003daa766a9af7f67f5ee916828"
    assert (wrapped.c, wrapped.t) == (bytes.fromhex(c), bytes.fromhex(t))
    assert unwrap_key(wrapped, key, bytes.fromhex(p1)) == bytes.fromhex(aes_key)


def test_an_answer_under_the_key_of_a_request_is_opened_by_its_holders_only(pki: LabPki) -> None:
    aes_key = bytes(range(16))
    request = encrypt_to_certificate(PLAINTEXT, pki.ea, aes_key)
    assert open_with_certificate(request, pki.ea, pki.ea_encryption_key) == (PLAINTEXT, aes_key)
    answer = encrypt_with_shared_key(b"answer", aes_key)
    value = second_codec.decode_data(answer)["content"][1]
    # A SymmetricEncryptionKey: the choice of AES-128-CCM, and the key.
    assert value["recipients"] == [("pskRecipInfo", hashlib.sha256(b"\x80" + aes_key).digest()[-8:])]
    nonce, ciphertext = value["ciphertext"][1]["nonce"], value["ciphertext"][1]["ccmCiphertext"]
    assert AESCCM(aes_key, 16).decrypt(nonce, ciphertext, None) == b"answer"
    assert decrypt_with_shared_key(answer, aes_key) == b"answer"
    for spoiled, key in ((answer, bytes(16)), (answer[:-1] + bytes((answer[-1] ^ 1,)), aes_key), (request, aes_key)):
        with pytest.raises(DecryptionError):
            decrypt_with_shared_key(spoiled, key)


def test_no_octet_can_be_changed_and_all_refusals_are_alike(pki: LabPki) -> None:
    octets = encrypt_to_certificate(PLAINTEXT, pki.aa)
    messages = set()
    parity_at = octets.index(pki.aa.hashed_id8) + 8 + 1  # after the identifier and the curve
    for index in range(len(octets)):
        if index == parity_at:
            continue  # V and -V have one x, which is all that ECDH uses
        spoiled = octets[:index] + bytes((octets[index] ^ 1,)) + octets[index + 1 :]
        with pytest.raises((DecryptionError, MalformedDataError)) as refusal:
            decrypt_with_certificate(spoiled, pki.aa, pki.aa_encryption_key)
        if refusal.type is DecryptionError:
            messages.add(str(refusal.value))
    with pytest.raises(DecryptionError) as refusal:
        decrypt_with_certificate(octets, pki.aa, pki.ea_encryption_key)
    messages.add(str(refusal.value))
    with pytest.raises(DecryptionError) as refusal:
        decrypt_with_certificate(octets, pki.ea, pki.ea_encryption_key)
    messages.add(str(refusal.value))
    assert len(messages) == 1


def test_the_same_plaintext_is_never_encrypted_twice_alike(pki: LabPki) -> None:
    first, second = (scan_encrypted_data(encrypt_to_certificate(PLAINTEXT, pki.ea)) for _ in range(2))
    assert first.nonce != second.nonce
    assert first.recipients[0].key and second.recipients[0].key
    assert first.recipients[0].key.v != second.recipients[0].key.v
    assert len(first.ciphertext) == len(PLAINTEXT) + 16


def test_a_recipient_among_others_finds_its_key(pki: LabPki) -> None:
    octets = encrypt_to_certificate(PLAINTEXT, pki.aa)
    value = second_codec.decode_data(octets)
    data = value["content"][1]
    (own,) = data["recipients"]
    ciphertext = ("aes128ccm", {"nonce": bytes(12), "ccmCiphertext": bytes(32)})
    another = {"v": ("x-only", bytes(32)), "c": bytes(16), "t": bytes(16)}
    others = [
        ("pskRecipInfo", b"shared-1"),
        ("symmRecipInfo", {"recipientId": b"shared-2", "encKey": ciphertext}),
        ("certRecipInfo", {"recipientId": b"another1", "encKey": ("eciesNistP256", another)}),
        ("signedDataRecipInfo", {"recipientId": pki.aa.hashed_id8, "encKey": ("eciesBrainpoolP256r1", another)}),
    ]
    several = second_codec.encode_data(
        {"protocolVersion": 3, "content": ("encryptedData", {**data, "recipients": [*others, own]})}
    )
    assert [each.choice for each in scan_encrypted_data(several).recipients] == [0, 1, 2, 3, 2]
    assert decrypt_with_certificate(several, pki.aa, pki.aa_encryption_key) == PLAINTEXT


def test_what_is_not_encrypted_data_is_refused(pki: LabPki) -> None:
    octets = encrypt_to_certificate(PLAINTEXT, pki.aa)
    for broken in (b"", b"\x03\x81", octets[:-1], octets + b"\0", b"\x02" + octets[1:]):
        with pytest.raises(MalformedDataError):
            scan_encrypted_data(broken)


def test_a_certificate_without_an_encryption_key_is_refused(pki: LabPki) -> None:
    with pytest.raises(EncodingError, match="no encryption key"):
        encrypt_to_certificate(PLAINTEXT, pki.root)
