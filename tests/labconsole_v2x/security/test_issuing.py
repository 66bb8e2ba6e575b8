"""Certificates of a lab's PKI: really signed, named by the right hashes, and as TS 103 097 profiles them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from labconsole_v2x.security.chain import ChainReason, link_fault
from labconsole_v2x.security.encoding import YEAR_S, EncodingError
from labconsole_v2x.security.issuing import (
    ROADSIDE_PERMISSIONS,
    ROADSIDE_RANGES,
    TICKET_PERMISSIONS,
    LabPki,
    issue,
)
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import Certificate, Circle, Curve, Permission, PointForm, Validity
from labconsole_v2x.security.trust import TrustStore, software_verifier
from tests.labconsole_v2x.security import second_codec

START_S = 700_000_000
MIXES = [(curve, curve, curve) for curve in Curve] + [
    (Curve.BRAINPOOL_P384R1, Curve.P256, Curve.P256),
    (Curve.P256, Curve.P384, Curve.BRAINPOOL_P256R1),
    (Curve.P384, Curve.BRAINPOOL_P384R1, Curve.P256),
]


def is_signed_by(certificate: Certificate, key: SoftwareKey, signer_octets: bytes) -> bool:
    """IEEE 1609.2, 5.3.1.2, by `hashlib` and `cryptography` alone; `signer_octets` in canonical form."""
    algorithm = hashlib.sha256 if key.curve.size == 32 else hashlib.sha384
    tbs = certificate.octets[certificate.tbs[0] : certificate.tbs[1]]
    digest = algorithm(algorithm(tbs).digest() + algorithm(signer_octets).digest()).digest()
    r, s = (int.from_bytes(octets, "big") for octets in (certificate.signature.r.x, certificate.signature.s))
    prehashed = utils.Prehashed(hashes.SHA256() if key.curve.size == 32 else hashes.SHA384())
    try:
        key.private.public_key().verify(utils.encode_dss_signature(r, s), digest, ec.ECDSA(prehashed))
    except InvalidSignature:
        return False
    return True


def whole_certificate_hash(octets: bytes, own_curve: Curve) -> bytes:
    return (hashlib.sha256 if own_curve.size == 32 else hashlib.sha384)(octets).digest()[-8:]


@pytest.mark.parametrize(("root_curve", "authority_curve", "ticket_curve"), MIXES)
def test_chains_of_all_curves_are_signed_and_named_by_the_right_hashes(
    root_curve: Curve, authority_curve: Curve, ticket_curve: Curve
) -> None:
    pki = LabPki.create(START_S, root_curve=root_curve, authority_curve=authority_curve)
    key = SoftwareKey.generate(ticket_curve)
    ticket = pki.ticket(key.public_key, START_S)
    root_hash, authority_hash = root_curve.hash_name, authority_curve.hash_name

    assert is_signed_by(pki.root, pki.root_key, b"")
    assert (pki.root.issuer, pki.root.issuer_hash) == (None, root_hash)
    for authority in (pki.aa, pki.ea):
        assert is_signed_by(authority, pki.root_key, pki.root.octets)
        assert not is_signed_by(authority, pki.root_key, b"")
        expected = whole_certificate_hash(pki.root.octets, root_curve)
        assert (authority.issuer, authority.issuer_hash) == (expected, root_hash)
    assert is_signed_by(ticket, pki.aa_key, pki.aa.octets)
    expected = whole_certificate_hash(pki.aa.octets, authority_curve)
    assert (ticket.issuer, ticket.issuer_hash) == (expected, authority_hash)
    assert ticket.hashed_id8 == whole_certificate_hash(ticket.octets, ticket_curve)
    assert ticket.verification_key == key.public_key


def test_a_lab_pki_is_read_by_the_second_codec_as_the_profile_wants_it() -> None:
    pki = LabPki.create(START_S, root_curve=Curve.BRAINPOOL_P384R1, region=Circle(470_000_000, 150_000_000, 50_000))
    ticket = pki.ticket(SoftwareKey.generate().public_key, START_S + 60)
    root, aa, ea, read_ticket = (
        second_codec.decode_certificate(each.octets) for each in (pki.root, pki.aa, pki.ea, ticket)
    )

    # TS 103 097, 7.2.1: no name, application permissions, no permission to issue, no encryption key needed.
    tbs = read_ticket["toBeSigned"]
    assert (tbs["id"], tbs["cracaId"], tbs["crlSeries"]) == (("none", 0), bytes(3), 0)
    assert tbs["appPermissions"] == [
        {"psid": 36, "ssp": ("bitmapSsp", b"\x01\x00\x00")},
        {"psid": 37, "ssp": ("bitmapSsp", b"\x01\xff\xff\xff")},
    ]
    assert tbs["validityPeriod"] == {"start": START_S + 60, "duration": ("hours", 168)}
    assert not {"certIssuePermissions", "certRequestPermissions", "canRequestRollover"} & set(tbs)
    assert read_ticket["issuer"] == ("sha256AndDigest", pki.aa.hashed_id8)

    # 7.2.3 and 7.2.4: names, permissions to issue, and encryption keys of the EA and AA.
    assert root["issuer"] == ("self", "sha384")
    assert root["toBeSigned"]["validityPeriod"]["duration"] == ("years", 10)
    for authority in (aa, ea):
        assert authority["issuer"] == ("sha384AndDigest", pki.root.hashed_id8)
        assert authority["toBeSigned"]["id"][0] == "name"
        assert authority["toBeSigned"]["encryptionKey"]["publicKey"][0] == "eciesNistP256"
        assert authority["toBeSigned"]["region"] == tbs["region"] == root["toBeSigned"]["region"]
    assert _issued(aa) == [(36, 37), 1, 0, (0x80, 8)]
    assert _issued(ea) == [(623,), 1, 0, (0x40, 8)]
    assert _issued(root) == [(36, 37), 2, 0, (0x80, 8)]


def _issued(certificate: dict[str, Any]) -> list[Any]:
    """The first group of permissions to issue: PSIDs, least chain length, its range and the kind of end entity."""
    group = certificate["toBeSigned"]["certIssuePermissions"][0]
    psids = tuple(given["psid"] for given in group["subjectPermissions"][1])
    return [psids, group.get("minChainLength", 1), group.get("chainLengthRange", 0), group.get("eeType", (0x80, 8))]


def test_permissions_of_a_ticket_are_in_the_ranges_of_the_authority() -> None:
    pki = LabPki.create(START_S)
    ticket = pki.ticket(SoftwareKey.generate().public_key, START_S)
    ranges = {given.psid: given for given in pki.aa.issue_permissions[0].ranges or ()}
    for permission in ticket.permissions:
        given = ranges[permission.psid]
        assert permission.ssp and given.bitmap_value and given.bitmap_mask
        assert len(permission.ssp) == len(given.bitmap_value) == len(given.bitmap_mask)
        for ssp, value, mask in zip(permission.ssp, given.bitmap_value, given.bitmap_mask, strict=True):
            assert ssp & mask == value & mask


def test_further_ranges_are_issued_by_the_root_and_the_aa_and_no_more_than_these() -> None:
    pki = LabPki.create(START_S, further_ranges=ROADSIDE_RANGES)
    trust = TrustStore()
    trust.add_root(pki.root)
    assert trust.add(pki.aa) is None
    assert trust.add(pki.ea) is None
    key = SoftwareKey.generate()
    for permissions in (TICKET_PERMISSIONS, ROADSIDE_PERMISSIONS):
        assert trust.add(pki.ticket(key.public_key, START_S, permissions=permissions)) is None
    for permission in ROADSIDE_PERMISSIONS:
        assert permission.ssp is not None
        other = Permission(permission.psid, b"\x02" + permission.ssp[1:])
        for refused in (other, Permission(permission.psid), replace(permission, bitmap=False)):
            fault = trust.add(pki.ticket(key.public_key, START_S, permissions=[refused]))
            assert fault is not None and fault.reason is ChainReason.PERMISSIONS
    plain = LabPki.create(START_S)
    ticket = plain.ticket(key.public_key, START_S, permissions=ROADSIDE_PERMISSIONS[:1])
    fault = link_fault(ticket, (plain.aa, plain.root), software_verifier(plain.aa.verification_key))
    assert fault is not None and fault.detail == "application permission for ITS-AID 137"


def test_ticket_with_an_encryption_key_has_it_and_others_have_none() -> None:
    pki, key, encryption_key = LabPki.create(START_S), SoftwareKey.generate(), SoftwareKey.generate()
    ticket = pki.ticket(key.public_key, START_S, encryption_key=encryption_key.public_key)
    assert ticket.encryption_key == encryption_key.public_key
    assert pki.ticket(key.public_key, START_S).encryption_key is None
    assert link_fault(ticket, (pki.aa, pki.root), software_verifier(pki.aa.verification_key)) is None


def test_what_is_given_is_issued() -> None:
    key = SoftwareKey.generate(Curve.BRAINPOOL_P256R1, compressed_r=True)
    pki = LabPki.create(START_S)
    ticket = issue(
        pki.aa_key,
        key.public_key,
        Validity(5, 5 + YEAR_S),
        issuer=pki.aa,
        name="odd one",
        region=frozenset({276}),
        assurance=0x20,
        permissions=[Permission(1), Permission(137, b"x", bitmap=False)],
        encryption_key=key.public_key,
    )
    assert (ticket.name, ticket.region, ticket.assurance) == ("odd one", frozenset({276}), 0x20)
    assert ticket.permissions == (Permission(1), Permission(137, b"x", bitmap=False))
    assert ticket.validity == Validity(5, 5 + YEAR_S)
    assert ticket.encryption_key == key.public_key
    assert is_signed_by(ticket, pki.aa_key, pki.aa.octets)


def test_an_issuer_with_compressed_r_is_hashed_in_canonical_form() -> None:
    root_key, aa_key = (SoftwareKey.generate(compressed_r=True) for _ in range(2))
    validity = Validity(START_S, START_S + 3600)
    root = issue(root_key, root_key.public_key, validity, name="root")
    aa = issue(root_key, aa_key.public_key, validity, issuer=root, name="AA")
    assert root.signature.r.form in (PointForm.COMPRESSED_Y0, PointForm.COMPRESSED_Y1)
    # The only octet that differs is the choice of R, 65 octets before the end.
    canonical = root.octets[:-65] + b"\x80" + root.octets[-64:]
    assert aa.issuer == hashlib.sha256(canonical).digest()[-8:]
    assert is_signed_by(aa, root_key, canonical)
    assert not is_signed_by(aa, root_key, root.octets)


def test_a_validity_that_cannot_be_encoded_is_refused() -> None:
    pki = LabPki.create(START_S)
    with pytest.raises(EncodingError, match="65537 s"):
        pki.ticket(SoftwareKey.generate().public_key, START_S, duration_s=65_537)
