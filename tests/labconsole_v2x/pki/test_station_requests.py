"""A station uses no certificate but the right one, and names the authority's URL in one sentence else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labconsole.errors import UserError
from labconsole_v2x.pki.authorization_authority import RemoteAuthority
from labconsole_v2x.pki.authorization_messages import ValidationResponse, encode_validation_response
from labconsole_v2x.pki.enrolment_messages import (
    CertificateResponse,
    EnrolmentCode,
    encode_certificate_response,
    read_enrolment_request,
)
from labconsole_v2x.pki.request_parts import Content, SubjectAttributes, read_data
from labconsole_v2x.pki.secured_messages import ReceivedRequest, open_request, payload_of, seal_response
from labconsole_v2x.pki.station_requests import RefusedRequestError, Task, authorize, check_authority, enrol
from labconsole_v2x.security.encryption import decrypt_with_shared_key, encrypt_with_shared_key
from labconsole_v2x.security.issuing import CREDENTIAL_PERMISSIONS, TICKET_PERMISSIONS, issue
from labconsole_v2x.security.keys import SoftwareKey, load_public_key
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import Certificate, Permission, Point, PointForm, PublicKey, Validity
from tests.labconsole_v2x.pki.pki_lab import AA_URL, EA_URL, ITS_ID, NOW_S, PkiLab, lab_pki


@pytest.fixture
def lab(tmp_path: Path) -> PkiLab:
    return PkiLab(tmp_path)


def requested_key(request: ReceivedRequest) -> PublicKey:
    """The key of an enrolment request."""
    _, possession = read_data(payload_of(scan_signed_data(request.signed_octets)))
    return read_enrolment_request(payload_of(scan_signed_data(possession))).keys.verification


def credential(
    lab: PkiLab, key: PublicKey, permissions: tuple[Permission, ...] = CREDENTIAL_PERMISSIONS
) -> Certificate:
    validity = Validity(NOW_S, NOW_S + 3600)
    return issue(lab.pki.ea_key, key, validity, issuer=lab.pki.ea, permissions=permissions)


def enrolled_by(lab: PkiLab, answer: Callable[[ReceivedRequest], bytes]) -> Certificate:
    """The credential that a station accepts of an EA that answers so."""

    def post(url: str, octets: bytes) -> bytes:
        return answer(open_request(octets, lab.ea_identity))

    remote = RemoteAuthority(EA_URL, lab.pki.ea)
    return enrol(ITS_ID, lab.canonical, remote, lab.pki.root, post).certificate


def sealed(lab: PkiLab, request: ReceivedRequest, response: CertificateResponse) -> bytes:
    message = encode_certificate_response(response)
    return seal_response(Content.ENROLMENT_RESPONSE, message, request, lab.ea_identity, lab.now_us)


def test_a_right_answer_is_accepted_whatever_the_form_of_its_key(lab: PkiLab) -> None:
    def answer(request: ReceivedRequest) -> bytes:
        key = requested_key(request)
        numbers = load_public_key(key).public_numbers()
        point = Point(PointForm.UNCOMPRESSED, numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big"))
        octets = credential(lab, replace(key, point=point)).octets
        return sealed(lab, request, CertificateResponse(request.request_hash, 0, octets))

    assert enrolled_by(lab, answer).permissions == CREDENTIAL_PERMISSIONS


def test_an_answer_to_another_request_is_refused(lab: PkiLab) -> None:
    def answer(request: ReceivedRequest) -> bytes:
        octets = credential(lab, requested_key(request)).octets
        return sealed(lab, request, CertificateResponse(bytes(16), 0, octets))

    with pytest.raises(UserError, match=f"{EA_URL} answers no valid response .it answers another request"):
        enrolled_by(lab, answer)


def test_a_certificate_of_another_key_is_refused(lab: PkiLab) -> None:
    def answer(request: ReceivedRequest) -> bytes:
        octets = credential(lab, SoftwareKey.generate().public_key).octets
        return sealed(lab, request, CertificateResponse(request.request_hash, 0, octets))

    with pytest.raises(UserError, match=f"{EA_URL} answers with a certificate of another key"):
        enrolled_by(lab, answer)


def test_a_certificate_beyond_the_authority_is_refused(lab: PkiLab) -> None:
    def answer(request: ReceivedRequest) -> bytes:
        octets = credential(lab, requested_key(request), TICKET_PERMISSIONS).octets
        return sealed(lab, request, CertificateResponse(request.request_hash, 0, octets))

    with pytest.raises(UserError, match=f"{EA_URL} answers with a certificate that is not valid"):
        enrolled_by(lab, answer)


def test_an_answer_that_names_another_signer_is_refused(lab: PkiLab) -> None:
    def answer(request: ReceivedRequest) -> bytes:
        octets = credential(lab, requested_key(request)).octets
        response = sealed(lab, request, CertificateResponse(request.request_hash, 0, octets))
        signed = decrypt_with_shared_key(response, request.aes_key)
        before, found, after = signed.rpartition(b"\x80" + lab.pki.ea.hashed_id8)
        assert found
        return encrypt_with_shared_key(before + b"\x80" + lab.pki.aa.hashed_id8 + after, request.aes_key)

    with pytest.raises(UserError, match="signature is not that of the authority"):
        enrolled_by(lab, answer)


def test_a_refusal_says_code_cause_and_remedy(lab: PkiLab) -> None:
    def answer(request: ReceivedRequest) -> bytes:
        return sealed(lab, request, CertificateResponse(request.request_hash, 6))

    with pytest.raises(RefusedRequestError) as refusal:
        enrolled_by(lab, answer)
    assert refusal.value.code is EnrolmentCode.UNKNOWNITS
    assert str(refusal.value).startswith(f"{EA_URL} refuses: unknownits; the EA does not know this station")
    with pytest.raises(UserError, match="answers no valid response"):
        enrolled_by(lab, lambda request: sealed(lab, request, CertificateResponse(request.request_hash, 99)))


def test_an_authority_of_another_root_gets_no_request(lab: PkiLab) -> None:
    other = lab_pki()
    for certificate, root in ((lab.pki.ea, other.root), (lab.pki.root, lab.pki.root)):
        sentence = f"The certificate of the EA is not one under the root {root.hashed_id8.hex()} "
        with pytest.raises(UserError, match=sentence):
            check_authority("the EA", certificate, root, Task.ENROLMENT)
    with pytest.raises(UserError, match="The root is not the certificate of a root CA"):
        check_authority("the EA", lab.pki.ea, lab.pki.aa, Task.ENROLMENT)
    no_point = replace(other.root.verification_key, point=replace(other.root.verification_key.point, x=b"\xff" * 32))
    with pytest.raises(UserError, match="The root's public key is not a point"):
        check_authority("the EA", other.ea, replace(other.root, verification_key=no_point), Task.ENROLMENT)
    for key in (None, no_point):
        certificate = issue(
            lab.pki.root_key,
            lab.pki.ea_key.public_key,
            lab.pki.ea.validity,
            issuer=lab.pki.root,
            permissions=lab.pki.ea.permissions,
            encryption_key=key,
        )
        with pytest.raises(UserError, match="The certificate of the EA has no key for encryption"):
            check_authority("the EA", certificate, lab.pki.root, Task.ENROLMENT)

    def post(url: str, octets: bytes) -> bytes:
        raise AssertionError("a request was sent")

    with pytest.raises(UserError, match=f"The certificate of {EA_URL} is not one under the root"):
        enrol(ITS_ID, lab.canonical, RemoteAuthority(EA_URL, lab.pki.ea), other.root, post)
    with pytest.raises(UserError, match=f"The certificate of {EA_URL} is not one of an EA: choose"):
        enrol(ITS_ID, lab.canonical, RemoteAuthority(EA_URL, lab.pki.aa), lab.pki.root, post)
    with pytest.raises(UserError, match=f"The certificate of {AA_URL} is not one of an AA"):
        authorize(
            lab.credential(), TICKET_PERMISSIONS, lab.pki.ea, RemoteAuthority(AA_URL, lab.pki.ea), lab.pki.root, post
        )
    with pytest.raises(UserError, match="The certificate of the EA is not one of an EA"):
        authorize(
            lab.credential(), TICKET_PERMISSIONS, lab.pki.aa, RemoteAuthority(AA_URL, lab.pki.aa), lab.pki.root, post
        )
    aa = RemoteAuthority(AA_URL, lab.pki.aa)
    with pytest.raises(UserError, match="The certificate of the EA is not one under the root"):
        authorize(lab.credential(), TICKET_PERMISSIONS, other.ea, aa, lab.pki.root, post)


def test_an_aa_refuses_an_answer_of_the_ea_to_another_request(lab: PkiLab) -> None:
    def post(url: str, octets: bytes) -> bytes:
        request = open_request(octets, lab.ea_identity)
        response = encode_validation_response(ValidationResponse(bytes(16), 0, SubjectAttributes(TICKET_PERMISSIONS)))
        return seal_response(Content.VALIDATION_RESPONSE, response, request, lab.ea_identity, lab.now_us)

    lab.post = post  # type: ignore[method-assign]
    lab.start()
    lab.aa.answer(lab.authorization(lab.credential(), SoftwareKey.generate()).octets)
    assert (lab.decisions[-1].code, "another request" in lab.decisions[-1].reason) == ("aa-ea-cantreachea", True)


def test_an_aa_grants_no_more_than_was_asked(lab: PkiLab) -> None:
    def post(url: str, octets: bytes) -> bytes:
        request = open_request(octets, lab.ea_identity)
        attributes = SubjectAttributes(TICKET_PERMISSIONS)
        response = encode_validation_response(ValidationResponse(request.request_hash, 0, attributes))
        return seal_response(Content.VALIDATION_RESPONSE, response, request, lab.ea_identity, lab.now_us)

    lab.post = post  # type: ignore[method-assign]
    lab.start()
    lab.aa.answer(lab.authorization(lab.credential(), SoftwareKey.generate()).octets)
    assert lab.decisions[-1].code == "its-aa-deniedpermissions"
