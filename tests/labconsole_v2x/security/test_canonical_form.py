"""Signatures of certificates and data are over the canonical form, whatever form the keys inside have.

IEEE 1609.2-2022: 6.4.8 (ToBeSignedCertificate), 6.3.4 and 6.3.9 (SignedData, HeaderInfo). What must be signed is
calculated here from a twin with compressed keys.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from labconsole_v2x.security.encoding import (
    encode_certificate,
    encode_signed_data,
    encode_signer,
    encode_to_be_signed_certificate,
    encode_to_be_signed_data,
)
from labconsole_v2x.security.issuing import issue
from labconsole_v2x.security.keys import SoftwareKey, load_public_key, signature_digest
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import Curve, Header, Point, PointForm, PublicKey, Validity
from labconsole_v2x.security.trust import TrustStore, UntrustedRootError
from labconsole_v2x.security.verification import Reason, Verifier
from tests.labconsole_v2x.security.lab_certificates import (
    HOUR_S,
    NOW_S,
    NOW_US,
    PERMISSIONS,
    Holder,
    root_authority,
    signed_cam,
    ticket,
    ticket_authority,
    verify_digest,
)

SPATEM_PSID = 137
VALIDITY = Validity(NOW_S - HOUR_S, NOW_S + HOUR_S)
ROOT = root_authority()
AUTHORITY = ticket_authority(ROOT)


def uncompressed(key: PublicKey) -> PublicKey:
    """The same key with its whole point."""
    numbers, size = load_public_key(key).public_numbers(), key.curve.size
    return PublicKey(
        key.curve, Point(PointForm.UNCOMPRESSED, numbers.x.to_bytes(size, "big"), numbers.y.to_bytes(size, "big"))
    )


def receiver() -> Verifier:
    """A receiver that knows root and AA."""
    trust = TrustStore()
    trust.add_root(ROOT.certificate)
    assert trust.add(AUTHORITY.certificate) is None
    return Verifier(trust)


@pytest.mark.parametrize("curve", Curve)
def test_issuer_signs_the_certificate_with_compressed_keys(curve: Curve) -> None:
    key, encryption_key = SoftwareKey.generate(curve).public_key, SoftwareKey.generate().public_key
    fields: dict[str, Any] = {"validity": VALIDITY, "permissions": PERMISSIONS}
    certificate = issue(
        AUTHORITY.key,
        uncompressed(key),
        issuer=AUTHORITY.certificate,
        encryption_key=uncompressed(encryption_key),
        **fields,
    )
    twin = encode_to_be_signed_certificate(name="", verification_key=key, encryption_key=encryption_key, **fields)
    digest = signature_digest("sha256", twin, AUTHORITY.certificate.octets)
    assert verify_digest(load_public_key(AUTHORITY.key.public_key), certificate.signature, digest)
    assert certificate.verification_key == uncompressed(key)  # it is issued as it was given
    assert certificate.canonical[slice(*certificate.tbs)] == twin


@pytest.mark.parametrize("curve", Curve)
def test_ticket_with_uncompressed_keys_is_accepted_only_if_its_compressed_form_was_signed(curve: Curve) -> None:
    key, encryption_key = SoftwareKey.generate(curve), SoftwareKey.generate().public_key
    fields: dict[str, Any] = {"name": "", "validity": VALIDITY, "permissions": PERMISSIONS}
    large = encode_to_be_signed_certificate(
        verification_key=uncompressed(key.public_key), encryption_key=uncompressed(encryption_key), **fields
    )
    compact = encode_to_be_signed_certificate(verification_key=key.public_key, encryption_key=encryption_key, **fields)
    for to_be_signed, reason in ((compact, Reason.ACCEPTED), (large, Reason.CHAIN_INVALID)):
        digest = signature_digest("sha256", to_be_signed, AUTHORITY.certificate.canonical)
        signature = AUTHORITY.key.sign_digest(digest)
        octets = encode_certificate(large, AUTHORITY.certificate.hashed_id8, "sha256", signature)
        outcome = receiver().verify(signed_cam(Holder(scan_certificate(octets), key)), NOW_US)
        assert (outcome.reason, outcome.signature_valid) == (reason, True)


def test_root_with_an_uncompressed_key_is_trusted_only_if_its_compressed_form_was_signed() -> None:
    key = SoftwareKey.generate()
    fields: dict[str, Any] = {
        "name": "RCA",
        "validity": VALIDITY,
        "issue_permissions": ROOT.certificate.issue_permissions,
    }
    root = issue(key, uncompressed(key.public_key), **fields)
    TrustStore().add_root(root)
    large = encode_to_be_signed_certificate(verification_key=uncompressed(key.public_key), **fields)
    signature = key.sign_digest(signature_digest("sha256", large, b""))
    with pytest.raises(UntrustedRootError):
        TrustStore().add_root(scan_certificate(encode_certificate(large, None, "sha256", signature)))


@pytest.mark.parametrize("curve", [Curve.P256, Curve.BRAINPOOL_P256R1])
def test_data_with_an_uncompressed_encryption_key_is_accepted_only_if_its_compressed_form_was_signed(
    curve: Curve,
) -> None:
    car = ticket(AUTHORITY)
    answer_key = SoftwareKey.generate(curve).public_key
    compact = Header(SPATEM_PSID, NOW_US, encryption_key=answer_key, inline_p2pcd_request=(b"abc",))
    large = replace(compact, encryption_key=uncompressed(answer_key))
    sent = encode_to_be_signed_data(b"payload", large)
    for header, reason in ((compact, Reason.ACCEPTED), (large, Reason.SIGNATURE_INVALID)):
        to_be_signed = encode_to_be_signed_data(b"payload", header)
        signature = car.key.sign_digest(signature_digest("sha256", to_be_signed, car.certificate.canonical))
        packet = encode_signed_data("sha256", sent, encode_signer([car.certificate.octets]), signature)
        assert receiver().verify(packet, NOW_US).reason is reason
    assert scan_signed_data(packet).header == large


def test_packet_signer_sends_an_encryption_key_compressed() -> None:
    car = ticket(AUTHORITY)
    answer_key = SoftwareKey.generate().public_key
    header = Header(SPATEM_PSID, NOW_US, encryption_key=uncompressed(answer_key))
    packet = PacketSigner(car.certificate, car.key).sign(b"payload", header, include_certificate=True)
    assert scan_signed_data(packet).header.encryption_key == answer_key
    assert receiver().verify(packet, NOW_US).accepted
