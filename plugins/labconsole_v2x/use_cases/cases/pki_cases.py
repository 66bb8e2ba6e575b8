"""Cases on RP2, RP3 and RP5: enrolment, tickets, what EA and AA may see, and attacks on them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from random import Random

from labconsole.errors import UserError
from labconsole_v2x.pki.authorization_authority import RemoteAuthority
from labconsole_v2x.pki.authorization_messages import (
    HMAC_KEY_SIZE,
    EcSignature,
    encode_authorization_request,
    encode_shared_request,
    key_tag,
)
from labconsole_v2x.pki.enrolment_messages import EnrolmentRequest, encode_enrolment_request
from labconsole_v2x.pki.request_parts import CERTIFICATE_FORMAT, Content, PublicKeys, SubjectAttributes, encode_data
from labconsole_v2x.pki.secured_messages import request_header, seal_request, sign_payload
from labconsole_v2x.security.encoding import encode_to_be_signed_hash
from labconsole_v2x.security.encryption import encrypt_to_certificate
from labconsole_v2x.security.issuing import (
    CERTIFICATE_REQUEST_PSID,
    CREDENTIAL_PERMISSIONS,
    TICKET_PERMISSIONS,
    LabPki,
)
from labconsole_v2x.security.signing import sign_to_be_signed_data
from labconsole_v2x.security.structures import CAM_PSID, Permission
from labconsole_v2x.use_cases.cases.bench import Bench
from labconsole_v2x.use_cases.cases.bench_authorities import ITS_ID, BenchAuthorities, CaseKey

CAM_ONLY = (Permission(CAM_PSID, bytes.fromhex("010000")),)
EMERGENCY = (Permission(CAM_PSID, bytes.fromhex("010200")),)
"""CAMs, with the emergency container (EN 302 637-2, 6.2.2.2)."""
_TICKETS = 5
_FLOOD = 200
_OLD_S = 600.0


def _enrolment(bench: Bench) -> None:
    authorities = BenchAuthorities(bench)
    for _ in range(2):
        authorities.enrol()


def _authorization(bench: Bench) -> None:
    authorities = BenchAuthorities(bench)
    credential = authorities.enrol()
    for _ in range(_TICKETS):
        authorities.authorize(credential)


def _beyond_the_credential(bench: Bench) -> None:
    authorities = BenchAuthorities(bench, CAM_ONLY)
    credential = authorities.enrol()
    for step, permissions in (("beyond", EMERGENCY), ("within", CAM_ONLY)):
        authorities.step = f"ticket {step} the credential"
        try:
            authorities.authorize(credential, permissions)
        except UserError as error:
            bench.decided("station: request for a ticket", f"refused: {error}")


def _attacks_on_ea(bench: Bench) -> None:
    authorities, new_key = BenchAuthorities(bench), bench.new_key
    other = authorities.add_station(b"another-station")
    right = authorities.enrolment(new_key())
    ea = authorities.ea
    authorities.attempt("right request", ea, right.octets)
    more = (*CAM_ONLY, Permission(CERTIFICATE_REQUEST_PSID, b"\x01\xc0"))
    attempts = {
        "replayed request": right.octets,
        "wrong proof of possession": _enrolment_with_foreign_possession(authorities),
        "key of another station": authorities.enrolment(new_key(), canonical=other).octets,
        "unregistered station": authorities.enrolment(new_key(), its_id=b"unregistered").octets,
        "more permissions": authorities.enrolment(new_key(), permissions=more).octets,
        "old request": authorities.enrolment(new_key(), late_s=_OLD_S).octets,
    }
    for step, octets in attempts.items():
        authorities.attempt(step, ea, octets)
    _flood(bench.random, authorities, ea, right.octets)
    authorities.attempt("right request after the flood", ea, authorities.enrolment(new_key()).octets)


def _enrolment_with_foreign_possession(authorities: BenchAuthorities) -> bytes:
    """A request whose new key is signed for with another one."""

    bench = authorities.bench
    wanted, signing, now_us = bench.new_key(), bench.new_key(), bench.clock()
    keys, attributes = PublicKeys(wanted.public_key), SubjectAttributes(CREDENTIAL_PERMISSIONS)
    message = encode_enrolment_request(EnrolmentRequest(ITS_ID, CERTIFICATE_FORMAT, keys, attributes))
    possession = sign_payload(message, signing, None, now_us)
    payload = encode_data(Content.ENROLMENT_REQUEST, possession)
    return seal_request(sign_payload(payload, authorities.canonical, None, now_us), authorities.ea.certificate).octets


def _attacks_on_aa(bench: Bench) -> None:
    authorities, new_key = BenchAuthorities(bench), bench.new_key
    credential, withdrawn = authorities.enrol(), authorities.enrol()
    authorities.register.credentials.pop(withdrawn.certificate.hashed_id8)
    authorities.register.add_credential(ITS_ID, credential.certificate)
    aa = authorities.aa
    foreign = LabPki.create(bench.pki.root.validity.start_s)
    right = authorities.authorization(credential, new_key())
    authorities.attempt("right request", aa, right.octets)
    more = (*TICKET_PERMISSIONS[:1], Permission(CAM_PSID + 1000, b"\x01"))
    attempts = {
        "replayed request": right.octets,
        "wrong proof of possession": _authorization_signed_with(authorities, credential, fits=True),
        "keys that do not fit": _authorization_signed_with(authorities, credential, fits=False),
        "credential of another EA": authorities.authorization(credential, new_key(), ea=foreign.ea).octets,
        "withdrawn credential": authorities.authorization(withdrawn, new_key()).octets,
        "more permissions": authorities.authorization(credential, new_key(), permissions=more).octets,
        "old request": authorities.authorization(credential, new_key(), late_s=_OLD_S).octets,
    }
    for step, octets in attempts.items():
        authorities.attempt(step, aa, octets)
    _flood(bench.random, authorities, aa, right.octets)
    authorities.attempt("right request after the flood", aa, authorities.authorization(credential, new_key()).octets)


def _authorization_signed_with(authorities: BenchAuthorities, credential: CaseKey, *, fits: bool) -> bytes:
    """A request signed with another key than the ticket's; unless it `fits`, the keyTag is that of another key."""

    bench = authorities.bench
    wanted, other, now_us = bench.new_key(), bench.new_key(), bench.clock()
    keys, hmac_key = PublicKeys(wanted.public_key), os.urandom(HMAC_KEY_SIZE)
    tag = key_tag(keys if fits else PublicKeys(other.public_key), hmac_key)
    ea, attributes = authorities.ea.certificate, SubjectAttributes(TICKET_PERMISSIONS)
    shared = encode_shared_request(ea.hashed_id8, tag, attributes)
    tbs = encode_to_be_signed_hash(hashlib.sha256(shared).digest(), request_header(now_us))
    signature = encrypt_to_certificate(sign_to_be_signed_data(tbs, credential.key, credential.certificate), ea)
    message = encode_authorization_request(keys, hmac_key, shared, EcSignature(signature, True))
    payload = encode_data(Content.AUTHORIZATION_REQUEST, message)
    return seal_request(sign_payload(payload, other, None, now_us), authorities.aa.certificate).octets


def _flood(random: Random, authorities: BenchAuthorities, authority: RemoteAuthority, right: bytes) -> None:
    for octets in islice(malformed(random, right), _FLOOD):
        authorities.attempt("malformed request", authority, octets)


def malformed(random: Random, right: bytes) -> Iterator[bytes]:
    """Malformed requests: random octets, and a right request with one bit changed or cut short, in turns."""
    while True:
        yield random.randbytes(random.randrange(1, 500))
        changed = bytearray(right)
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        yield bytes(changed)
        yield right[: random.randrange(1, len(right))]


PKI_CASES: Mapping[str, Callable[[Bench], None]] = {
    "F-SIG-07": _beyond_the_credential,
    "F-CER-01": _enrolment,
    "F-CER-04": _authorization,
    "A-CER-05": _attacks_on_ea,
    "A-CER-06": _attacks_on_aa,
}
