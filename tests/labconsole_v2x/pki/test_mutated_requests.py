"""Damaged requests of each kind, at three layers, are refused by reason; nothing is uncaught, and no octet is trusted.

`LABCONSOLE_MUTATED_REQUESTS=100000 pytest -k mutated_requests -s` runs as many of each kind by hand and prints counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from labconsole.errors import UserError
from labconsole_v2x.pki.authorization_authority import RemoteAuthority
from labconsole_v2x.pki.authorization_messages import AuthorizationCode
from labconsole_v2x.pki.enrolment_messages import EnrolmentCode
from labconsole_v2x.pki.request_parts import Content, encode_data, read_data
from labconsole_v2x.pki.root.authority_requests import fingerprint, rekeying_request
from labconsole_v2x.pki.secured_messages import (
    AuthorityIdentity,
    DeniedRequestError,
    ReceivedRequest,
    UnreadableRequestError,
    open_request,
    payload_of,
    seal_request,
    sign_payload,
)
from labconsole_v2x.pki.station_requests import CertifiedKey, certificate_of_response
from labconsole_v2x.security.encryption import (
    decrypt_with_certificate,
    decrypt_with_shared_key,
    encrypt_with_shared_key,
)
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import Certificate
from tests.helpers.mutations import mutations
from tests.labconsole_v2x.pki.pki_lab import EA_URL, MUTANTS, NOW_US, PkiLab
from tests.labconsole_v2x.pki.root.root_lab import RootLab


@dataclass(frozen=True)
class Kind:
    """A kind of request: its signed octets, the keys that sign it, its receiver, and what to do with its answer."""

    signed: bytes
    key: SoftwareKey
    certificate: Certificate | None
    recipient: Certificate
    recipient_key: SoftwareKey
    answer: Callable[[bytes], bytes]
    inner: Callable[[bytes], bytes] | None = None
    """Signs a damaged inner part again, where there is one."""


def kinds(lab: PkiLab) -> dict[str, Kind]:
    """A right request of each kind."""
    pki, key = lab.pki, SoftwareKey.generate()
    to_ea = (pki.ea, pki.ea_encryption_key, lab.ea.answer)
    enrolment = decrypt_with_certificate(lab.enrolment(key).octets, pki.ea, pki.ea_encryption_key)
    authorization_sent = lab.authorization(lab.credential(), key)
    authorization = decrypt_with_certificate(authorization_sent.octets, pki.aa, pki.aa_encryption_key)
    lab.aa.answer(authorization_sent.octets)
    (validation_exchange,) = [one for one in lab.exchanges if one.url == EA_URL]
    validation = decrypt_with_certificate(validation_exchange.request, pki.ea, pki.ea_encryption_key)

    def inner_enrolment(octets: bytes) -> bytes:
        return encode_data(Content.ENROLMENT_REQUEST, sign_payload(octets, key, None, lab.now_us))

    return {
        "enrolment": Kind(enrolment, lab.canonical, None, *to_ea, inner_enrolment),
        "authorization": Kind(authorization, key, None, pki.aa, pki.aa_encryption_key, lab.aa.answer),
        "validation": Kind(validation, pki.aa_key, pki.aa, *to_ea),
    }


def damaged(lab: PkiLab, kind: Kind, count: int) -> Iterator[bytes]:
    """Requests damaged on their way, before they were encrypted, and before they were signed (inner part: twice)."""
    outer = seal_request(kind.signed, kind.recipient).octets
    yield from mutations(outer, count // 3, 1)
    for plaintext in mutations(kind.signed, count // 3, 2):
        yield seal_request(plaintext, kind.recipient).octets
    payload = payload_of(scan_signed_data(kind.signed))
    rest = count - 2 * (count // 3)
    streams = [mutations(payload, rest, 3)]
    if kind.inner is not None:
        request = payload_of(scan_signed_data(read_data(payload)[1]))
        streams.append(map(kind.inner, mutations(request, rest, 4)))
    for number in range(rest):
        signed_again = sign_payload(next(streams[number % len(streams)]), kind.key, kind.certificate, lab.now_us)
        yield seal_request(signed_again, kind.recipient).octets


@pytest.mark.parametrize("count", MUTANTS)
@pytest.mark.parametrize("name", ["enrolment", "authorization", "validation"])
def test_mutated_requests_are_refused_by_reason(tmp_path: Path, name: str, count: int) -> None:
    lab = PkiLab(tmp_path)
    kind = kinds(lab)[name]
    lab.decisions.clear()
    counts: Counter[str] = Counter()
    for octets in damaged(lab, kind, count):
        lab.exchanges.clear()
        decided = len(lab.decisions)
        try:
            kind.answer(octets)
        except UnreadableRequestError as error:
            counts["unreadable"] += 1
            assert str(error) and len(lab.decisions) == decided
        else:
            decision = lab.decisions[-1]
            assert len(lab.decisions) > decided and decision.code and decision.reason
            counts[decision.code] += 1
    print(name, dict(counts))
    assert sum(counts.values()) == count
    # Outer octets alone leave a third unreadable; a few changes of values are right requests of another content.
    assert counts["unreadable"] > count // 4 and len(counts) > 4
    assert counts["ok"] < count // 10


def damaged_responses(response: bytes, request: ReceivedRequest, signer: AuthorityIdentity, seed: int) -> bytes:
    """A response damaged on its way, before it was encrypted, or before it was signed."""
    layer = seed % 3
    if layer == 0:
        return next(mutations(response, 1, seed))
    signed = decrypt_with_shared_key(response, request.aes_key)
    if layer == 1:
        return encrypt_with_shared_key(next(mutations(signed, 1, seed)), request.aes_key)
    payload = next(mutations(payload_of(scan_signed_data(signed)), 1, seed))
    signed = sign_payload(payload, signer.key, signer.certificate, NOW_US)
    return encrypt_with_shared_key(signed, request.aes_key)


def damaged_ca_requests(lab: RootLab, current: CertifiedKey | None, count: int) -> Iterator[bytes]:
    """Requests of an authority damaged on their way, and before they were signed; `current` signs for the next."""
    key, now_us = lab.keys[0], lab.now_us
    request = lab.request()
    whole = request if current is None else rekeying_request(request, current, now_us)
    yield from mutations(whole, count // 3, 1)
    for payload in mutations(payload_of(scan_signed_data(request)), count // 3, 2):
        signed = sign_payload(payload, key, None, now_us)
        yield signed if current is None else rekeying_request(signed, current, now_us)
    for payload in mutations(payload_of(scan_signed_data(whole)), count - 2 * (count // 3), 3):
        signer, certificate = (current.key, current.certificate) if current else (key, None)
        yield sign_payload(payload, signer, certificate, now_us)


@pytest.mark.parametrize("count", MUTANTS)
@pytest.mark.parametrize("first", [True, False], ids=["first", "rekeying"])
def test_mutated_requests_of_authorities_are_refused_by_reason(tmp_path: Path, first: bool, count: int) -> None:
    lab = RootLab(tmp_path)
    current = None if first else lab.certified()
    if current is not None:  # the next one has keys of its own
        lab.keys = (SoftwareKey.generate(), SoftwareKey.generate())
    signed_key = lab.keys[0] if current is None else current.key
    accepted = lab.register.by_key(fingerprint(signed_key.public_key))
    assert accepted is not None
    lab.decisions.clear()
    counts: Counter[str] = Counter()
    for number, octets in enumerate(damaged_ca_requests(lab, current, count), 1):
        try:
            lab.root.answer(octets)
        except DeniedRequestError as error:
            assert str(error)
        decision = lab.decisions[-1]
        assert len(lab.decisions) == number and decision.code and decision.reason
        counts[decision.code] += 1
        if decision.code == "ok":  # else it would be sent again for whatever the holder of the key asks
            lab.register.accept(accepted)
    print("CA certificate", "first" if first else "rekeying", dict(counts))
    assert counts["cantparse"] > count // 10 and len(counts) > 4
    assert counts["deniedpermissions"] and counts["ok"] < count // 10


@pytest.mark.parametrize("count", MUTANTS)
@pytest.mark.parametrize("content", [Content.ENROLMENT_RESPONSE, Content.AUTHORIZATION_RESPONSE])
def test_a_station_refuses_mutated_responses(tmp_path: Path, content: Content, count: int) -> None:
    lab = PkiLab(tmp_path)
    key = SoftwareKey.generate()
    if content is Content.ENROLMENT_RESPONSE:
        sent, identity, authority = lab.enrolment(key), lab.ea_identity, lab.ea
    else:
        sent, identity, authority = lab.authorization(lab.credential(), key), lab.aa_identity, lab.aa
    codes = EnrolmentCode if authority is lab.ea else AuthorizationCode
    remote = RemoteAuthority(EA_URL, identity.certificate)
    response, request = authority.answer(sent.octets), open_request(sent.octets, identity)
    right = certificate_of_response(response, sent, remote, lab.pki.root, content, codes)
    counts: Counter[str] = Counter()
    for seed in range(count):
        octets = damaged_responses(response, request, identity, seed)
        try:
            certificate = certificate_of_response(octets, sent, remote, lab.pki.root, content, codes)
        except UserError as error:
            assert EA_URL in str(error)
            counts[type(error).__name__] += 1
        else:
            assert certificate.canonical == right.canonical  # R of its signature has several forms
            counts["right"] += 1
    assert counts["UserError"] > 9 * count // 10


@pytest.mark.parametrize("count", MUTANTS)
def test_an_aa_refuses_mutated_responses_of_the_ea(tmp_path: Path, count: int) -> None:
    lab = PkiLab(tmp_path)
    credential, key = lab.credential(), SoftwareKey.generate()
    seeds = iter(range(count))

    def post(url: str, octets: bytes) -> bytes:
        request = open_request(octets, lab.ea_identity)
        return damaged_responses(lab.ea.answer(octets), request, lab.ea_identity, next(seeds))

    lab.post = post  # type: ignore[method-assign]
    lab.start()
    counts: Counter[str] = Counter()
    for _ in range(count):
        lab.aa.answer(lab.authorization(credential, key).octets)
        counts[lab.decisions[-1].code] += 1
    assert counts["aa-ea-cantreachea"] > 9 * count // 10
