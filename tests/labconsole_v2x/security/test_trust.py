"""The trust store: bounds, keys loaded once, probation, waiting packets, and the chain's checks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from labconsole_v2x.security.chain import ChainReason, DigestVerifier
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import (
    CAM_PSID,
    DENM_PSID,
    Certificate,
    Circle,
    Curve,
    IssuePermission,
    Permission,
    PermissionRange,
    PublicKey,
    Rectangle,
    Validity,
)
from labconsole_v2x.security.trust import StoreLimits, TrustStore, UntrustedRootError, software_verifier
from tests.labconsole_v2x.security.lab_certificates import (
    GRAZ,
    HOUR_S,
    LATITUDE,
    LONGITUDE,
    NOW_S,
    RANGES,
    Holder,
    certify,
    root_authority,
    ticket,
    ticket_authority,
)

ROOT = root_authority(region=Circle(LATITUDE, LONGITUDE, 60_000))
AUTHORITY = ticket_authority(ROOT, region=Circle(LATITUDE, LONGITUDE, 20_000))


def store(*certificates: Certificate, **limits: int) -> TrustStore:
    trust = TrustStore(StoreLimits(**limits))
    trust.add_root(ROOT.certificate)
    for certificate in (AUTHORITY.certificate, *certificates):
        assert trust.add(certificate) is None
    return trust


def unknown(certificate: Certificate, number: int) -> Certificate:
    """A certificate of an unknown issuer that differs from all others."""
    octets = number.to_bytes(8, "big")
    return replace(certificate, octets=octets, canonical=octets, hashed_id8=octets, issuer=b"unknown!")


@pytest.mark.parametrize("count", [2_000, pytest.param(20_000, marks=pytest.mark.nightly)])
def test_flood_of_unknown_certificates_keeps_its_size_and_the_verified_ticket(count: int) -> None:
    """Nightly: 20,000 alone find a store that forgets the ticket after some thousands."""
    car = ticket(AUTHORITY).certificate
    trust = store(car, probation=100)
    for number in range(count):
        trust.add(unknown(car, number))
    assert len(trust) == 3 + 100
    assert trust.find_octets(car.octets) is trust.find(car.hashed_id8)
    assert trust.find((count - 1).to_bytes(8, "big")) is not None
    assert trust.find_octets((count - 1_000).to_bytes(8, "big")) is None


def test_ticket_in_use_outlives_tickets_that_are_not() -> None:
    first, second, third = (ticket(AUTHORITY).certificate for _ in range(3))
    trust = store(first, second, tickets=2)
    trust.find(first.hashed_id8)
    trust.add(third)
    assert trust.find(second.hashed_id8) is None
    assert trust.find_octets(second.octets) is None
    assert trust.find(first.hashed_id8) is not None


def test_key_is_loaded_once_on_probation_and_after_it() -> None:
    loads: Counter[PublicKey] = Counter()

    def load(key: PublicKey) -> DigestVerifier:
        loads[key] += 1
        return software_verifier(key)

    car = ticket(AUTHORITY).certificate
    trust = TrustStore(load_key=load)
    trust.add_root(ROOT.certificate)
    assert trust.add(car) is None
    known = trust.find(car.hashed_id8)
    assert known is not None
    assert known.chain == ()
    trust.add(car)
    trust.add(AUTHORITY.certificate)
    known = trust.find(car.hashed_id8)
    assert known is not None
    assert known.chain == (car, AUTHORITY.certificate, ROOT.certificate)
    assert loads == {holder.verification_key: 1 for holder in (ROOT.certificate, AUTHORITY.certificate, car)}


def test_certificate_on_probation_that_its_issuer_refuses_is_removed() -> None:
    car = ticket(AUTHORITY, permissions=(Permission(139),)).certificate
    trust = TrustStore()
    trust.add_root(ROOT.certificate)
    assert trust.add(car) is None
    trust.add(AUTHORITY.certificate)
    assert trust.find(car.hashed_id8) is None
    assert len(trust) == 2


def test_waiting_packets_are_bounded_in_number_and_octets() -> None:
    car = ticket(AUTHORITY).certificate
    for limits, kept in (({"waiting_packets": 3}, 3), ({"waiting_octets": 25}, 2)):
        trust = store(**limits)
        packets = [bytes((number,)) * 10 for number in range(10)]
        for packet in packets:
            trust.wait_for(car.hashed_id8, packet)
        assert trust.released() == []
        trust.add(car)
        assert [packet.octets for packet in trust.released()] == packets[-kept:]
        trust.wait_for(car.hashed_id8, packets[0])
        assert [packet.octets for packet in trust.released()] == packets[:1]


def test_only_a_sound_self_signed_authority_becomes_a_root() -> None:
    trust = TrustStore()
    octets = ROOT.certificate.octets
    spoiled = replace(ROOT.certificate, signature=AUTHORITY.certificate.signature, octets=octets)
    for certificate in (AUTHORITY.certificate, certify(None).certificate, spoiled):
        with pytest.raises(UntrustedRootError, match="cannot be a trusted root"):
            trust.add_root(certificate)
    assert len(trust) == 0


@pytest.mark.parametrize("curve", Curve)
def test_chain_of_the_issuing_part_is_accepted(curve: Curve) -> None:
    pki = LabPki.create(NOW_S, root_curve=Curve.BRAINPOOL_P384R1, authority_curve=curve, region=frozenset({40}))
    trust = TrustStore()
    trust.add_root(pki.root)
    for certificate in (pki.aa, pki.ea, pki.ticket(SoftwareKey.generate().public_key, NOW_S)):
        assert trust.add(certificate) is None
        known = trust.find(certificate.hashed_id8)
        assert known is not None
        assert known.chain[-1] == pki.root
    assert trust.find_authority(pki.aa.hashed_id3) == pki.aa


def group(*ranges: PermissionRange, **fields: Any) -> dict[str, Any]:
    return {"issue_permissions": (IssuePermission(ranges, **fields),), "permissions": ()}


CAM_ALL = PermissionRange(CAM_PSID)
CAM_PLAIN = PermissionRange(CAM_PSID, b"\x01\x00\x00", b"\xff\xff\xff")


@pytest.mark.parametrize(
    ("issuer", "fields", "reason"),
    [
        (AUTHORITY, {"validity": Validity(NOW_S - 13 * HOUR_S, NOW_S)}, ChainReason.VALIDITY),
        (AUTHORITY, {"validity": Validity(NOW_S, NOW_S + 13 * HOUR_S)}, ChainReason.VALIDITY),
        (AUTHORITY, {"validity": Validity(NOW_S, NOW_S)}, ChainReason.VALIDITY),
        (AUTHORITY, {"region": Circle(LATITUDE, LONGITUDE, 20_001)}, ChainReason.REGION),
        (AUTHORITY, {"region": frozenset({40})}, ChainReason.REGION),
        (AUTHORITY, {"permissions": (Permission(138),)}, ChainReason.PERMISSIONS),
        (AUTHORITY, {"permissions": (Permission(CAM_PSID),)}, ChainReason.PERMISSIONS),
        (AUTHORITY, {"permissions": (Permission(CAM_PSID, b"\x01\x00\x01"),)}, ChainReason.PERMISSIONS),
        (AUTHORITY, {"permissions": (Permission(CAM_PSID, b"\x01\x00"),)}, ChainReason.PERMISSIONS),
        (AUTHORITY, {"permissions": (Permission(CAM_PSID, b"\x01\x00\x00", bitmap=False),)}, ChainReason.PERMISSIONS),
        (AUTHORITY, group(CAM_PLAIN), ChainReason.PERMISSIONS),  # tickets issue no certificates
        (ROOT, {"permissions": (Permission(CAM_PSID, b"\x01\x00\x00"),)}, ChainReason.PERMISSIONS),  # 2 must follow
        (ROOT, group(CAM_ALL), ChainReason.PERMISSIONS),
        (ROOT, group(PermissionRange(CAM_PSID, b"\x01\xff\xff", b"\xff\x00\x00")), ChainReason.PERMISSIONS),
        (ROOT, group(PermissionRange(CAM_PSID, b"\x01\xff\xfc", b"\xff\x00\x01")), ChainReason.PERMISSIONS),
        (ROOT, group(PermissionRange(CAM_PSID, b"\x02\x00\x00", b"\xff\xff\xff")), ChainReason.PERMISSIONS),
        (ROOT, group(CAM_PLAIN, chain_range=1), ChainReason.PERMISSIONS),
        (ROOT, group(CAM_PLAIN, chain_range=-1), ChainReason.PERMISSIONS),
        (ROOT, group(CAM_PLAIN, enrolment=True), ChainReason.PERMISSIONS),
        (ROOT, {"issue_permissions": (IssuePermission(None),), "permissions": ()}, ChainReason.PERMISSIONS),
        (ROOT, {"request_permissions": (IssuePermission((CAM_ALL,)),), "permissions": ()}, ChainReason.PERMISSIONS),
    ],
)
def test_certificate_beyond_its_issuer_is_refused(issuer: Holder, fields: dict[str, Any], reason: ChainReason) -> None:
    fault = store().add(ticket(issuer, **fields).certificate)
    assert fault is not None
    assert fault.reason is reason


@pytest.mark.parametrize(
    ("issuer", "fields"),
    [
        (AUTHORITY, {"validity": AUTHORITY.certificate.validity}),
        (AUTHORITY, {"region": GRAZ}),
        (AUTHORITY, {"region": (Rectangle(LATITUDE + 9, LONGITUDE - 9, LATITUDE - 9, LONGITUDE + 9),)}),
        (AUTHORITY, {"permissions": (Permission(DENM_PSID, b"\x01\x00\x00\x01"),)}),
        (ROOT, group(CAM_PLAIN)),
        (ROOT, {"request_permissions": (IssuePermission((CAM_PLAIN,)),), "permissions": ()}),
        (ROOT, {"permissions": ()}),
    ],
)
def test_certificate_within_its_issuer_is_accepted(issuer: Holder, fields: dict[str, Any]) -> None:
    assert store().add(ticket(issuer, **fields).certificate) is None


def test_unlimited_root_may_have_authorities_below_authorities() -> None:
    root = root_authority(issue_permissions=(IssuePermission(None, chain_range=-1, enrolment=True),))
    upper = ticket_authority(root, issue_permissions=(IssuePermission(RANGES, chain_range=1),))
    lower = ticket_authority(upper)
    car = ticket(lower)
    trust = TrustStore()
    trust.add_root(root.certificate)
    assert [trust.add(holder.certificate) for holder in (upper, lower, car)] == [None] * 3
    known = trust.find(car.certificate.hashed_id8)
    assert known is not None
    assert [len(known.chain), known.chain[-1]] == [4, root.certificate]


def test_spoiled_or_mixed_up_signature_is_refused() -> None:
    certificate = ticket(AUTHORITY).certificate
    other_tbs = ticket(AUTHORITY, region=GRAZ).certificate
    spoiled = replace(other_tbs, signature=certificate.signature)
    other_curve = replace(certificate, signature=replace(certificate.signature, curve=Curve.BRAINPOOL_P256R1))
    other_hash = replace(certificate, issuer_hash="sha384")
    reasons = [ChainReason.SIGNATURE, ChainReason.SIGNATURE, ChainReason.ISSUER]
    for faulty, reason in zip((spoiled, other_curve, other_hash), reasons, strict=True):
        fault = store().add(faulty)
        assert fault is not None
        assert fault.reason is reason


def test_self_signed_certificate_that_is_not_trusted_is_refused() -> None:
    fault = store().add(root_authority().certificate)
    assert fault is not None
    assert fault.reason is ChainReason.ISSUER


def test_other_certificate_of_the_same_hashed_id8_is_refused() -> None:
    car, other = ticket(AUTHORITY).certificate, ticket(AUTHORITY).certificate
    fault = store(car).add(replace(other, hashed_id8=car.hashed_id8))
    assert fault is not None
    assert fault.reason is ChainReason.COLLISION


def test_a_distrusted_certificate_is_removed_with_all_below_it_and_not_learned_again() -> None:
    first, second, other = ticket(AUTHORITY), ticket(AUTHORITY), ticket_authority(ROOT)
    trust = store(first.certificate, other.certificate)
    trust.distrust(AUTHORITY.certificate.hashed_id8)
    assert len(trust) == 2 and trust.issuer(other.certificate.hashed_id8) is not None
    for certificate in (AUTHORITY.certificate, first.certificate, second.certificate):
        fault = trust.add(certificate)
        assert fault is not None and fault.reason is ChainReason.REVOKED
        assert trust.find_octets(certificate.octets) is None and trust.is_distrusted(certificate.hashed_id8)
    assert trust.add(ticket(other).certificate) is None
    trust.trust_again(AUTHORITY.certificate.hashed_id8)
    assert [trust.add(holder.certificate) for holder in (AUTHORITY, first, second)] == [None] * 3


def test_a_certificate_is_distrusted_below_one_root_only() -> None:
    trust = store()
    trust.distrust(AUTHORITY.certificate.hashed_id8, root=b"another!")
    assert trust.issuer(AUTHORITY.certificate.hashed_id8) is not None
    trust.distrust(AUTHORITY.certificate.hashed_id8, root=ROOT.certificate.hashed_id8)
    assert trust.issuer(AUTHORITY.certificate.hashed_id8) is None
    # Learned when its root is known: before that, nothing shows that it is below it.
    fault = trust.add(AUTHORITY.certificate)
    assert fault is not None and fault.reason is ChainReason.REVOKED


def test_one_on_probation_below_a_distrusted_authority_is_removed() -> None:
    trust = store()
    new, waiting = ticket_authority(ROOT), ticket(ticket_authority(ROOT))
    below = ticket(new)
    assert trust.add(below.certificate) is None and trust.add(waiting.certificate) is None
    trust.distrust(new.certificate.hashed_id8)
    fault = trust.add(below.certificate)
    assert fault is not None and fault.reason is ChainReason.REVOKED
    assert trust.find(waiting.certificate.hashed_id8) is not None


def test_a_distrusted_root_is_not_trusted_until_it_may_be() -> None:
    trust = store()
    trust.distrust(ROOT.certificate.hashed_id8)
    assert len(trust) == 0
    with pytest.raises(UntrustedRootError, match="revoked"):
        trust.add_root(ROOT.certificate)
    trust.trust_again(ROOT.certificate.hashed_id8)
    trust.add_root(ROOT.certificate)
    assert trust.add(AUTHORITY.certificate) is None


def test_distrusted_certificates_are_remembered_within_bounds() -> None:
    trust = store(tickets=3)
    trust.distrust(AUTHORITY.certificate.hashed_id8)
    for _ in range(10):
        trust.add(ticket(AUTHORITY).certificate)
    assert len(trust._removed) == 3
