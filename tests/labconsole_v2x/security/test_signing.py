"""Packets of a ticket: read by a second codec, and with valid signatures."""

from __future__ import annotations

import hashlib
import itertools

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import Certificate, Curve, Header, PointForm
from tests.labconsole_v2x.security import second_codec

START_S = 700_000_000
HEADER = Header(36, START_S * 1_000_000)


def check_signature(octets: bytes, certificate: Certificate, key: SoftwareKey) -> None:
    """IEEE 1609.2, 5.3.1.2, by `hashlib` and `cryptography` alone."""
    data = scan_signed_data(octets)
    algorithm = hashlib.sha256 if key.curve.size == 32 else hashlib.sha384
    digest = algorithm(algorithm(data.tbs).digest() + algorithm(certificate.octets).digest()).digest()
    r, s = (int.from_bytes(part, "big") for part in (data.signature.r.x, data.signature.s))
    prehashed = utils.Prehashed(hashes.SHA256() if key.curve.size == 32 else hashes.SHA384())
    key.private.public_key().verify(utils.encode_dss_signature(r, s), digest, ec.ECDSA(prehashed))


@pytest.mark.parametrize("include_certificate", [False, True])
@pytest.mark.parametrize("compressed_r", [False, True])
@pytest.mark.parametrize("curve", Curve)
def test_packets_of_all_curves_have_valid_signatures(
    pki: LabPki, curve: Curve, compressed_r: bool, include_certificate: bool
) -> None:
    key = SoftwareKey.generate(curve, compressed_r=compressed_r)
    ticket = pki.ticket(key.public_key, START_S)
    octets = PacketSigner(ticket, key).sign(b"payload", HEADER, include_certificate=include_certificate)
    data = scan_signed_data(octets)
    check_signature(octets, ticket, key)
    assert (data.payload, data.header, data.hash_name) == (b"payload", HEADER, curve.hash_name)
    assert data.digest == (None if include_certificate else ticket.hashed_id8)
    assert data.certificates == ((ticket.octets,) if include_certificate else ())
    assert (data.signature.r.form is PointForm.X_ONLY) is not compressed_r


@pytest.mark.parametrize("curve", [Curve.P256, Curve.BRAINPOOL_P256R1, Curve.BRAINPOOL_P384R1])
def test_packets_are_read_by_the_second_codec(pki: LabPki, curve: Curve) -> None:
    key = SoftwareKey.generate(curve)
    ticket = pki.ticket(key.public_key, START_S)
    header = Header(37, 5, location=(470_000_000, 150_000_000, 3500))
    for include_certificate in (False, True):
        octets = PacketSigner(ticket, key).sign(b"payload" * 40, header, include_certificate=include_certificate)
        version, (kind, data) = second_codec.decode_data(octets).values()
        assert (version, kind, data["hashId"]) == (3, "signedData", curve.hash_name)
        assert data["tbsData"]["payload"]["data"]["content"] == ("unsecuredData", b"payload" * 40)
        location = {"latitude": 470_000_000, "longitude": 150_000_000, "elevation": 3500 + 4096}
        assert data["tbsData"]["headerInfo"] == {"psid": 37, "generationTime": 5, "generationLocation": location}
        if include_certificate:
            assert data["signer"] == ("certificate", [second_codec.decode_certificate(ticket.octets)])
        else:
            assert data["signer"] == ("digest", ticket.hashed_id8)


def test_one_signer_signs_many_different_packets(pki: LabPki) -> None:
    key = SoftwareKey.generate()
    ticket = pki.ticket(key.public_key, START_S)
    signer = PacketSigner(ticket, key)
    packets = [
        signer.sign(
            bytes((number,)) * 50, Header(36, START_S * 1_000_000 + number), include_certificate=number % 2 == 0
        )
        for number in range(10)
    ]
    for number, octets in enumerate(packets):
        check_signature(octets, ticket, key)
        data = scan_signed_data(octets)
        assert (data.payload, data.header.generation_time) == (bytes((number,)) * 50, START_S * 1_000_000 + number)
        assert bool(data.certificates) is (number % 2 == 0)
    assert all(left != right for left, right in itertools.combinations(packets, 2))
