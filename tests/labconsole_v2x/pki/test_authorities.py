"""EA and AA grant right requests, refuse others by the standard's codes, and see only what concerns them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labconsole_v2x.pki import authority as authority_module
from labconsole_v2x.pki.authorization_messages import (
    AuthorizationCode,
    EcSignature,
    encode_authorization_request,
    encode_shared_request,
    encode_validation_request,
    key_tag,
    read_authorization_request,
    read_validation_request,
)
from labconsole_v2x.pki.enrolment_messages import (
    EnrolmentCode,
    EnrolmentRequest,
    encode_enrolment_request,
    read_certificate_response,
)
from labconsole_v2x.pki.key_folders import StationFolder
from labconsole_v2x.pki.request_parts import Content, PublicKeys, SubjectAttributes, encode_data, read_data
from labconsole_v2x.pki.secured_messages import (
    BadResponseError,
    SentRequest,
    UnreadableRequestError,
    open_response,
    payload_of,
    request_header,
    seal_request,
    sign_payload,
)
from labconsole_v2x.pki.station_requests import CertifiedKey, re_enrolment_request
from labconsole_v2x.security.chain import link_fault
from labconsole_v2x.security.encoding import encode_to_be_signed_data, encode_to_be_signed_hash
from labconsole_v2x.security.encryption import decrypt_with_certificate, encrypt_to_certificate
from labconsole_v2x.security.issuing import (
    CREDENTIAL_PERMISSIONS,
    EA_ISSUES,
    TICKET_PERMISSIONS,
    TICKET_S,
    LabPki,
    issue,
)
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.signing import sign_to_be_signed_data
from labconsole_v2x.security.structures import Certificate, Circle, Curve, Permission, Validity
from labconsole_v2x.security.trust import software_verifier
from tests.labconsole_v2x.pki.pki_lab import AA_URL, EA_URL, ITS_ID, NOW_S, NOW_US, PkiLab, lab_pki

SPECIAL_CAM = (Permission(36, b"\x01\x80\x00"),)


@pytest.fixture(scope="module")
def shared_pki() -> LabPki:
    return lab_pki()


@pytest.fixture
def lab(tmp_path: Path, shared_pki: LabPki) -> PkiLab:
    return PkiLab(tmp_path, shared_pki)


def enrolled(lab: PkiLab, sent: SentRequest) -> tuple[EnrolmentCode, Certificate | None]:
    """Code and certificate of the EA's answer."""
    message = open_response(lab.post(EA_URL, sent.octets), sent, lab.pki.ea, Content.ENROLMENT_RESPONSE)
    response = read_certificate_response(message)
    assert response.request_hash == sent.request_hash
    return EnrolmentCode(response.code), scan_certificate(response.certificate) if response.certificate else None


def authorized(lab: PkiLab, sent: SentRequest) -> tuple[AuthorizationCode, Certificate | None]:
    """Code and ticket of the AA's answer."""
    message = open_response(lab.post(AA_URL, sent.octets), sent, lab.pki.aa, Content.AUTHORIZATION_RESPONSE)
    response = read_certificate_response(message)
    assert response.request_hash == sent.request_hash
    return AuthorizationCode(response.code), scan_certificate(response.certificate) if response.certificate else None


def test_a_registered_station_enrols_and_gets_a_ticket(lab: PkiLab) -> None:
    key, ticket_key = SoftwareKey.generate(), SoftwareKey.generate()
    code, certificate = enrolled(lab, lab.enrolment(key))
    assert code is EnrolmentCode.OK and certificate is not None
    assert (certificate.permissions, certificate.verification_key) == (CREDENTIAL_PERMISSIONS, key.public_key)
    sent = lab.authorization(
        CertifiedKey(certificate, key), ticket_key, attributes=SubjectAttributes(TICKET_PERMISSIONS)
    )
    result, ticket = authorized(lab, sent)
    assert result is AuthorizationCode.OK and ticket is not None
    assert (ticket.permissions, ticket.verification_key, ticket.name) == (TICKET_PERMISSIONS, ticket_key.public_key, "")
    assert ticket.validity == Validity(NOW_S, NOW_S + TICKET_S)
    pki = lab.pki
    assert link_fault(ticket, (pki.aa, pki.root), software_verifier(pki.aa.verification_key)) is None
    assert [one.code for one in lab.decisions] == ["ok", "ok", "ok"]


@pytest.mark.parametrize("curve", Curve)
def test_tickets_and_credentials_have_keys_on_any_curve(lab: PkiLab, curve: Curve) -> None:
    key, ticket_key = SoftwareKey.generate(curve), SoftwareKey.generate(curve)
    _, certificate = enrolled(lab, lab.enrolment(key))
    assert certificate is not None
    code, ticket = authorized(lab, lab.authorization(CertifiedKey(certificate, key), ticket_key))
    assert code is AuthorizationCode.OK and ticket is not None and ticket.verification_key == ticket_key.public_key


def test_encryption_keys_are_certified(lab: PkiLab) -> None:
    key = SoftwareKey.generate()
    keys = PublicKeys(key.public_key, SoftwareKey.generate().public_key)
    code, ticket = authorized(lab, by_hand(lab, lab.credential(), key, keys=keys))
    assert code is AuthorizationCode.OK and ticket is not None and ticket.encryption_key == keys.encryption


def by_hand(
    lab: PkiLab,
    credential: CertifiedKey,
    key: SoftwareKey,
    *,
    keys: PublicKeys | None = None,
    tag: bytes | None = None,
    pop_key: SoftwareKey | None = None,
    ea_id: bytes | None = None,
    signature: Callable[[bytes], bytes] | None = None,
    encrypted: bool = False,
    signed_us: int | None = None,
) -> SentRequest:
    """A request for a ticket in which single parts are other ones."""
    keys = keys or PublicKeys(key.public_key)
    attributes = SubjectAttributes(TICKET_PERMISSIONS[:1])
    shared = encode_shared_request(ea_id or lab.pki.ea.hashed_id8, tag or key_tag(keys, bytes(32)), attributes)
    header = request_header(lab.now_us if signed_us is None else signed_us)
    tbs = encode_to_be_signed_hash(hashlib.sha256(shared).digest(), header)
    octets = sign_to_be_signed_data(tbs, credential.key, credential.certificate)
    if signature is not None:
        octets = signature(octets)
    message = encode_authorization_request(keys, bytes(32), shared, EcSignature(octets, encrypted))
    payload = encode_data(Content.AUTHORIZATION_REQUEST, message)
    return seal_request(sign_payload(payload, pop_key or key, None, lab.now_us), lab.pki.aa)


def of_enrolment(lab: PkiLab, kind: str) -> SentRequest:
    """An enrolment request that must be refused."""
    key, other = SoftwareKey.generate(), SoftwareKey.generate()
    request = EnrolmentRequest(ITS_ID, 1, PublicKeys(key.public_key), SubjectAttributes(CREDENTIAL_PERMISSIONS))
    outer_key, certificate = lab.canonical, None
    possession_key, content, now_us = key, Content.ENROLMENT_REQUEST, lab.now_us
    if kind == "foreign canonical key":
        outer_key = other
    elif kind == "unknown station":
        request = replace(request, its_id=b"car-2")
    elif kind == "foreign proof of possession":
        possession_key = other
    elif kind == "too old":
        now_us -= 301_000_000
    elif kind == "in the future":
        now_us += 6_000_000
    elif kind == "permissions of a ticket":
        request = replace(request, attributes=SubjectAttributes(TICKET_PERMISSIONS))
    elif kind == "more permissions":
        request = replace(request, attributes=SubjectAttributes((Permission(623, b"\x01\xe0"),)))
    elif kind == "no permissions":
        request = replace(request, attributes=SubjectAttributes())
    elif kind == "format":
        request = replace(request, certificate_format=2)
    elif kind == "name":
        request = replace(request, attributes=SubjectAttributes(CREDENTIAL_PERMISSIONS, name="Lab EA"))
    elif kind == "region":
        request = replace(request, attributes=SubjectAttributes(CREDENTIAL_PERMISSIONS, region=Circle(1, 1, 1)))
    elif kind == "issuing":
        attributes = SubjectAttributes(CREDENTIAL_PERMISSIONS, issue_permissions=EA_ISSUES)
        request = replace(request, attributes=attributes)
    elif kind == "four years":
        validity = Validity(NOW_S, NOW_S + 4 * 365 * 86_400)
        request = replace(request, attributes=SubjectAttributes(CREDENTIAL_PERMISSIONS, validity))
    elif kind == "credential as signer":
        certificate = lab.credential().certificate
    elif kind == "no point":
        point = replace(key.public_key.point, x=b"\xff" * 32)
        request = replace(request, keys=PublicKeys(replace(key.public_key, point=point)))
    elif kind == "other message":
        content = Content.AUTHORIZATION_RESPONSE
    elif kind in ("ITS-AID of CAMs", "further header field", "hash next to the payload"):
        header = request_header(now_us)
        header = replace(header, psid=36) if kind == "ITS-AID of CAMs" else replace(header, expiry_time=now_us)
        payload = encode_data(content, sign_payload(encode_enrolment_request(request), key, None, now_us))
        tbs = encode_to_be_signed_data(payload, header)
        if kind == "hash next to the payload":
            tbs = encode_to_be_signed_data(payload, request_header(now_us))
            tbs = b"\x60" + tbs[1:-12] + b"\x80" + bytes(32) + tbs[-12:]
        return seal_request(sign_to_be_signed_data(tbs, lab.canonical, None), lab.pki.ea)
    possession = sign_payload(encode_enrolment_request(request), possession_key, None, now_us)
    return seal_request(sign_payload(encode_data(content, possession), outer_key, certificate, now_us), lab.pki.ea)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("foreign canonical key", EnrolmentCode.INVALIDSIGNATURE),
        ("unknown station", EnrolmentCode.UNKNOWNITS),
        ("foreign proof of possession", EnrolmentCode.INVALIDSIGNATURE),
        ("too old", EnrolmentCode.DENIEDREQUEST),
        ("in the future", EnrolmentCode.DENIEDREQUEST),
        ("permissions of a ticket", EnrolmentCode.DENIEDPERMISSIONS),
        ("more permissions", EnrolmentCode.DENIEDPERMISSIONS),
        ("no permissions", EnrolmentCode.INCOMPLETEREQUEST),
        ("format", EnrolmentCode.INCOMPLETEREQUEST),
        ("name", EnrolmentCode.DENIEDPERMISSIONS),
        ("region", EnrolmentCode.DENIEDPERMISSIONS),
        ("issuing", EnrolmentCode.DENIEDPERMISSIONS),
        ("four years", EnrolmentCode.DENIEDREQUEST),
        ("credential as signer", EnrolmentCode.UNKNOWNITS),
        ("no point", EnrolmentCode.INVALIDKEYS),
        ("other message", EnrolmentCode.BADCONTENTTYPE),
        ("ITS-AID of CAMs", EnrolmentCode.CANTPARSE),
        ("further header field", EnrolmentCode.CANTPARSE),
        ("hash next to the payload", EnrolmentCode.CANTPARSE),
    ],
)
def test_the_ea_refuses_an_enrolment(lab: PkiLab, kind: str, code: EnrolmentCode) -> None:
    lab.now_us += 400_000_000  # older ones are from before its start
    assert enrolled(lab, of_enrolment(lab, kind)) == (code, None)
    assert enrolled(lab, of_enrolment(lab, "right"))[0] is EnrolmentCode.OK


def re_enrolment(lab: PkiLab, credential: CertifiedKey, key: SoftwareKey) -> SentRequest:
    return re_enrolment_request(credential, key, SubjectAttributes(CREDENTIAL_PERMISSIONS), lab.pki.ea, lab.now_us)


def with_credential(lab: PkiLab, sent: SentRequest, key: SoftwareKey) -> CertifiedKey:
    code, certificate = enrolled(lab, sent)
    assert code is EnrolmentCode.OK and certificate is not None
    return CertifiedKey(certificate, key)


def test_the_next_credential_withdraws_the_one_before(lab: PkiLab) -> None:
    keys = [SoftwareKey.generate() for _ in range(3)]
    first = with_credential(lab, lab.enrolment(keys[0]), keys[0])
    second = with_credential(lab, re_enrolment(lab, first, keys[1]), keys[1])
    third = with_credential(lab, lab.enrolment(keys[2]), keys[2])
    lab.register = StationFolder(lab.folder)  # as another process reads it
    lab.start()
    for withdrawn in (first, second):
        assert authorized(lab, lab.authorization(withdrawn, SoftwareKey.generate()))[0] is AuthorizationCode.UNKNOWNITS
        assert enrolled(lab, re_enrolment(lab, withdrawn, SoftwareKey.generate())) == (EnrolmentCode.UNKNOWNITS, None)
        assert "withdrawn" in lab.decisions[-1].reason
    assert authorized(lab, lab.authorization(third, SoftwareKey.generate()))[0] is AuthorizationCode.OK


def test_a_credential_of_another_station_stays(lab: PkiLab) -> None:
    other = lab.add_station(b"car-2")
    key = SoftwareKey.generate()
    credential = with_credential(lab, lab.enrolment(key, its_id=b"car-2", canonical_key=other), key)
    with_credential(lab, lab.enrolment(SoftwareKey.generate()), SoftwareKey.generate())
    assert authorized(lab, lab.authorization(credential, SoftwareKey.generate()))[0] is AuthorizationCode.OK


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("foreign key", EnrolmentCode.INVALIDSIGNATURE),
        ("canonical key", EnrolmentCode.INVALIDSIGNATURE),
        ("expired", EnrolmentCode.UNKNOWNITS),
        ("no right to enrol", EnrolmentCode.DENIEDPERMISSIONS),
        ("certificate of another EA", EnrolmentCode.UNKNOWNITS),
        ("proof of possession with a signer", EnrolmentCode.DENIEDREQUEST),
    ],
)
def test_the_ea_refuses_a_re_enrolment(lab: PkiLab, kind: str, code: EnrolmentCode) -> None:
    credential, key = lab.credential(), SoftwareKey.generate()
    if kind == "foreign key":
        credential = CertifiedKey(credential.certificate, SoftwareKey.generate())
    elif kind == "canonical key":
        credential = CertifiedKey(credential.certificate, lab.canonical)
    elif kind == "expired":
        lab.now_us += 2 * 86_400_000_000
    elif kind == "no right to enrol":
        credential = lab.credential(permissions=(Permission(623, b"\x01\x40"),))
    elif kind == "certificate of another EA":
        other, foreign = lab_pki(), SoftwareKey.generate()
        validity = Validity(NOW_S, NOW_S + 3600)
        certificate = issue(other.ea_key, foreign.public_key, validity, issuer=other.ea)
        credential = CertifiedKey(certificate, foreign)
    sent = re_enrolment(lab, credential, key)
    if kind == "proof of possession with a signer":
        its_id, attributes = credential.certificate.hashed_id8, SubjectAttributes(CREDENTIAL_PERMISSIONS)
        request = encode_enrolment_request(EnrolmentRequest(its_id, 1, PublicKeys(key.public_key), attributes))
        possession = sign_payload(request, key, credential.certificate, lab.now_us)
        payload = encode_data(Content.ENROLMENT_REQUEST, possession)
        signed = sign_payload(payload, credential.key, credential.certificate, lab.now_us)
        sent = seal_request(signed, lab.pki.ea)
    assert enrolled(lab, sent) == (code, None)


def test_a_replayed_enrolment_is_refused_and_issues_nothing(lab: PkiLab) -> None:
    sent = lab.enrolment(SoftwareKey.generate())
    assert enrolled(lab, sent)[0] is EnrolmentCode.OK
    issued = sorted((lab.folder / "ea" / "credentials").iterdir())
    assert enrolled(lab, sent) == (EnrolmentCode.DENIEDREQUEST, None)
    assert "replay" in lab.decisions[-1].reason
    # The same signed request in another envelope is the same one.
    plaintext = decrypt_with_certificate(sent.octets, lab.pki.ea, lab.pki.ea_encryption_key)
    assert enrolled(lab, seal_request(plaintext, lab.pki.ea)) == (EnrolmentCode.DENIEDREQUEST, None)
    # So is another signature of the same.
    again = sign_to_be_signed_data(scan_signed_data(plaintext).tbs, lab.canonical, None)
    assert again != plaintext
    assert enrolled(lab, seal_request(again, lab.pki.ea)) == (EnrolmentCode.DENIEDREQUEST, None)
    assert sorted((lab.folder / "ea" / "credentials").iterdir()) == issued


def test_a_request_from_before_a_restart_is_refused(lab: PkiLab) -> None:
    sent = lab.enrolment(SoftwareKey.generate())
    assert enrolled(lab, sent)[0] is EnrolmentCode.OK
    lab.now_us += 10_000_000
    lab.start()
    assert enrolled(lab, sent) == (EnrolmentCode.DENIEDREQUEST, None)
    assert enrolled(lab, lab.enrolment(SoftwareKey.generate()))[0] is EnrolmentCode.OK


def test_accepted_requests_are_remembered_within_a_bound(lab: PkiLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authority_module, "MOST_REMEMBERED", 2)
    codes = [enrolled(lab, lab.enrolment(SoftwareKey.generate()))[0] for _ in range(3)]
    assert codes == [EnrolmentCode.OK, EnrolmentCode.OK, EnrolmentCode.DENIEDREQUEST]
    lab.now_us += 306_000_000
    assert enrolled(lab, lab.enrolment(SoftwareKey.generate()))[0] is EnrolmentCode.OK


def refused_ticket(lab: PkiLab, kind: str) -> SentRequest:
    """A request for a ticket that must be refused."""
    credential, key, other = lab.credential(), SoftwareKey.generate(), SoftwareKey.generate()
    match kind:
        case "keyTag":
            return by_hand(lab, credential, key, tag=bytes(16))
        case "keyTag of other keys":
            return by_hand(lab, credential, key, tag=key_tag(PublicKeys(other.public_key), bytes(32)))
        case "foreign proof of possession":
            return by_hand(lab, credential, key, pop_key=other)
        case "unknown EA":
            return by_hand(lab, credential, key, ea_id=b"another1")
        case "unknown credential":
            lab.folder.joinpath("ea", "credentials", f"{credential.certificate.hashed_id8.hex()}.json").unlink()
            return by_hand(lab, credential, key)
        case "foreign key of the credential":
            return by_hand(lab, CertifiedKey(credential.certificate, other), key)
        case "old EC signature":
            return by_hand(lab, credential, key, signed_us=lab.now_us - 301_000_000)
        case "EC signature to another EA":
            to_aa = lambda octets: encrypt_to_certificate(octets, lab.pki.aa)  # noqa: E731
            return by_hand(lab, credential, key, signature=to_aa, encrypted=True)
        case "EC signature of another request":
            foreign = read_ec_signature(lab, lab.authorization(credential, other, private=False))
            return by_hand(lab, credential, key, signature=lambda _: foreign)
        case "no right to authorize":
            return by_hand(lab, lab.credential(permissions=(Permission(623, b"\x01\x80"),)), key)
        case "more than registered":
            attributes = SubjectAttributes(SPECIAL_CAM)
            return lab.authorization(credential, key, attributes=attributes)
        case "another ITS-AID":
            return lab.authorization(credential, key, attributes=SubjectAttributes((Permission(137, b"\x01"),)))
        case "DENM of a CAM station":
            lab.add_station(b"cam-only", TICKET_PERMISSIONS[:1])
            attributes = SubjectAttributes(TICKET_PERMISSIONS)
            return lab.authorization(lab.credential(b"cam-only"), key, attributes=attributes)
        case "two weeks":
            attributes = SubjectAttributes(TICKET_PERMISSIONS, Validity(NOW_S + 400, NOW_S + 400 + 2 * TICKET_S))
            return lab.authorization(credential, key, attributes=attributes)
        case "next year":
            start_s = NOW_S + 365 * 86_400
            attributes = SubjectAttributes(TICKET_PERMISSIONS, Validity(start_s, start_s + TICKET_S))
            return lab.authorization(credential, key, attributes=attributes)
        case "no permissions":
            return lab.authorization(credential, key, attributes=SubjectAttributes())
        case "too old":
            return lab.authorization(credential, key, now_us=lab.now_us - 301_000_000)
        case "EA answers garbage":
            lab.ea_answers = False
            return lab.authorization(credential, key)
        case "other message":
            payload = encode_data(Content.ENROLMENT_RESPONSE, bytes(18))
            return seal_request(sign_payload(payload, key, None, lab.now_us), lab.pki.aa)
        case "beyond the AA":
            spatem = (Permission(137, b"\x01"),)
            lab.add_station(b"roadside", spatem)
            return lab.authorization(lab.credential(b"roadside"), key, attributes=SubjectAttributes(spatem))
        case "encryption key":
            keys = PublicKeys(
                key.public_key, replace(key.public_key, point=replace(key.public_key.point, x=b"\xff" * 32))
            )
            return by_hand(lab, credential, key, keys=keys)
        case "expired credential":
            lab.now_us += 2 * 86_400_000_000
            return lab.authorization(credential, key)
        case "expired AA":
            lab.now_us += 6 * 366 * 86_400_000_000
            return lab.authorization(credential, key)
        case "unknown AA":
            lab.start(known_authorities=())
            return lab.authorization(credential, key)
    raise AssertionError(kind)


def read_ec_signature(lab: PkiLab, sent: SentRequest) -> bytes:
    """The EC signature of a request to the AA."""
    plaintext = decrypt_with_certificate(sent.octets, lab.pki.aa, lab.pki.aa_encryption_key)
    _, message = read_data(payload_of(scan_signed_data(plaintext)))
    return read_authorization_request(message).forwarded.ec_signature.octets


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("keyTag", AuthorizationCode.ITS_AA_KEYSDONTMATCH),
        ("keyTag of other keys", AuthorizationCode.ITS_AA_KEYSDONTMATCH),
        ("foreign proof of possession", AuthorizationCode.INVALIDSIGNATURE),
        ("unknown EA", AuthorizationCode.ITS_AA_UNKNOWNEA),
        ("unknown credential", AuthorizationCode.UNKNOWNITS),
        ("foreign key of the credential", AuthorizationCode.INVALIDSIGNATURE),
        ("old EC signature", AuthorizationCode.DENIEDPERMISSIONS),
        ("EC signature to another EA", AuthorizationCode.WRONGEA),
        ("EC signature of another request", AuthorizationCode.INVALIDSIGNATURE),
        ("no right to authorize", AuthorizationCode.DENIEDPERMISSIONS),
        ("more than registered", AuthorizationCode.DENIEDPERMISSIONS),
        ("another ITS-AID", AuthorizationCode.DENIEDPERMISSIONS),
        ("DENM of a CAM station", AuthorizationCode.DENIEDPERMISSIONS),
        ("two weeks", AuthorizationCode.ITS_AA_DENIEDPERMISSIONS),
        ("next year", AuthorizationCode.ITS_AA_DENIEDPERMISSIONS),
        ("no permissions", AuthorizationCode.ITS_AA_INCOMPLETEREQUEST),
        ("too old", AuthorizationCode.ITS_AA_OUTOFSYNCREQUEST),
        ("EA answers garbage", AuthorizationCode.AA_EA_CANTREACHEA),
        ("other message", AuthorizationCode.ITS_AA_BADCONTENTTYPE),
        ("unknown AA", AuthorizationCode.INVALIDAA),
        ("expired AA", AuthorizationCode.INVALIDAA),
        ("expired credential", AuthorizationCode.UNKNOWNITS),
        ("encryption key", AuthorizationCode.ITS_AA_INVALIDENCRYPTIONKEY),
        ("beyond the AA", AuthorizationCode.ITS_AA_DENIEDPERMISSIONS),
    ],
)
def test_a_ticket_is_refused(lab: PkiLab, kind: str, code: AuthorizationCode) -> None:
    lab.now_us += 400_000_000
    assert authorized(lab, refused_ticket(lab, kind)) == (code, None)
    assert lab.decisions[-1].code == code.name.lower().replace("_", "-") and lab.decisions[-1].reason


def test_a_replayed_request_for_a_ticket_is_refused(lab: PkiLab) -> None:
    sent = lab.authorization(lab.credential(), SoftwareKey.generate())
    assert authorized(lab, sent)[0] is AuthorizationCode.OK
    asked = len(lab.exchanges)
    assert authorized(lab, sent) == (AuthorizationCode.ITS_AA_OUTOFSYNCREQUEST, None)
    assert len(lab.exchanges) == asked + 1  # the EA is not asked again


def test_a_validation_is_answered_to_the_aa_that_signed_it_and_once(lab: PkiLab) -> None:
    authorized(lab, lab.authorization(lab.credential(), SoftwareKey.generate()))
    (validation,) = [one for one in lab.exchanges if one.url == EA_URL]
    plaintext = decrypt_with_certificate(validation.request, lab.pki.ea, lab.pki.ea_encryption_key)
    lab.post(EA_URL, validation.request)
    assert (lab.decisions[-1].code, "replay" in lab.decisions[-1].reason) == ("deniedrequest", True)
    payload = payload_of(scan_signed_data(plaintext))
    forged = sign_payload(payload, SoftwareKey.generate(), lab.pki.aa, NOW_US)
    lab.post(EA_URL, seal_request(forged, lab.pki.ea).octets)
    assert lab.decisions[-1].code == "invalidaasignature"


def test_a_validation_for_another_ea_is_refused(lab: PkiLab) -> None:
    shared = encode_shared_request(b"another1", bytes(16), SubjectAttributes(TICKET_PERMISSIONS))
    signature = EcSignature(lab.enrolment(SoftwareKey.generate()).octets, encrypted=True)
    payload = encode_data(Content.VALIDATION_REQUEST, encode_validation_request(shared, signature))
    lab.post(EA_URL, seal_request(sign_payload(payload, lab.pki.aa_key, lab.pki.aa, NOW_US), lab.pki.ea).octets)
    assert (lab.decisions[-1].code, lab.decisions[-1].reason) == ("wrongea", "it is meant for another EA")


def test_the_aa_never_sees_the_credential_and_the_ea_never_the_keys(lab: PkiLab) -> None:
    credential, key = lab.credential(), SoftwareKey.generate()
    authorized(lab, lab.authorization(credential, key))
    to_ea, to_aa = lab.exchanges
    identity = lab.pki.aa_encryption_key
    seen_by_aa = decrypt_with_certificate(to_aa.request, lab.pki.aa, identity)
    own = credential.certificate
    secrets_of_station = (own.octets, own.hashed_id8, own.verification_key.point.x, ITS_ID)
    # Each of them is in what the EA decrypts or knows: the search can find them.
    seen_by_ea = decrypt_with_certificate(to_ea.request, lab.pki.ea, lab.pki.ea_encryption_key)
    _, message = read_data(payload_of(scan_signed_data(seen_by_ea)))
    forwarded = read_validation_request(message)
    signature = decrypt_with_certificate(forwarded.ec_signature.octets, lab.pki.ea, lab.pki.ea_encryption_key)
    assert own.hashed_id8 in signature
    for octets in (to_aa.request, seen_by_aa, to_aa.response, to_ea.request, to_ea.response):
        assert not [one for one in secrets_of_station if one in octets]
    point = key.public_key.point.x
    assert point in seen_by_aa
    for octets in (to_ea.request, seen_by_ea, signature, to_ea.response):
        assert point not in octets
    _, message = read_data(payload_of(scan_signed_data(seen_by_aa)))
    hmac_key = read_authorization_request(message).hmac_key
    assert hmac_key in seen_by_aa and hmac_key not in seen_by_ea and hmac_key not in signature


def test_without_privacy_the_aa_sees_which_credential_signs(lab: PkiLab) -> None:
    credential = lab.credential()
    sent = lab.authorization(credential, SoftwareKey.generate(), private=False)
    assert authorized(lab, sent)[0] is AuthorizationCode.OK
    assert credential.certificate.hashed_id8 in read_ec_signature(lab, sent)


def test_a_response_to_another_request_or_of_another_signer_is_refused(lab: PkiLab) -> None:
    first, second = (lab.enrolment(SoftwareKey.generate()) for _ in range(2))
    response = lab.post(EA_URL, first.octets)
    with pytest.raises(BadResponseError, match="not encrypted under the key"):
        open_response(response, second, lab.pki.ea, Content.ENROLMENT_RESPONSE)
    with pytest.raises(BadResponseError, match="signature"):
        open_response(response, first, lab.pki.aa, Content.ENROLMENT_RESPONSE)
    with pytest.raises(BadResponseError, match="another kind"):
        open_response(response, first, lab.pki.ea, Content.AUTHORIZATION_RESPONSE)


def test_what_is_not_encrypted_to_the_authority_has_no_response(lab: PkiLab) -> None:
    sent = lab.enrolment(SoftwareKey.generate())
    for octets in (b"", b"\x03\x82", sent.octets[:-1], sent.octets[:-1] + bytes((sent.octets[-1] ^ 1,))):
        with pytest.raises(UnreadableRequestError):
            lab.ea.answer(octets)
    with pytest.raises(UnreadableRequestError, match="imnottherecipient"):
        lab.aa.answer(sent.octets)


def test_a_broken_file_of_a_station_is_reported_to_the_operator_only(lab: PkiLab) -> None:
    (lab.folder / "ea" / "stations" / f"{ITS_ID.hex()}.json").write_text("{")
    assert enrolled(lab, lab.enrolment(SoftwareKey.generate())) == (EnrolmentCode.DENIEDREQUEST, None)
    assert "is broken" in lab.decisions[-1].reason


def test_the_aa_refuses_a_message_for_the_ea(lab: PkiLab) -> None:
    shared = encode_shared_request(lab.pki.ea.hashed_id8, bytes(16), SubjectAttributes())
    signature = EcSignature(lab.enrolment(SoftwareKey.generate()).octets, encrypted=True)
    payload = encode_data(Content.VALIDATION_REQUEST, encode_validation_request(shared, signature))
    sent = seal_request(sign_payload(payload, SoftwareKey.generate(), None, lab.now_us), lab.pki.aa)
    assert authorized(lab, sent) == (AuthorizationCode.ITS_AA_BADCONTENTTYPE, None)
