"""Messages of TS 102 941 are what a second codec reads and writes; others are refused with a reason."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

import pytest

from labconsole_v2x.pki.authorization_messages import (
    AuthorizationCode,
    EcSignature,
    ValidationCode,
    ValidationResponse,
    encode_authorization_request,
    encode_shared_request,
    encode_validation_request,
    encode_validation_response,
    key_tag,
    read_authorization_request,
    read_validation_request,
    read_validation_response,
)
from labconsole_v2x.pki.enrolment_messages import (
    CertificateResponse,
    EnrolmentCode,
    EnrolmentRequest,
    encode_certificate_response,
    encode_enrolment_request,
    identifier_of,
    read_certificate_response,
    read_enrolment_request,
)
from labconsole_v2x.pki.request_parts import Content, PublicKeys, SubjectAttributes, encode_data, read_data
from labconsole_v2x.pki.root.authority_requests import (
    AuthorityKind,
    CaCertificateRequest,
    encode_ca_request,
    read_ca_request,
)
from labconsole_v2x.security.encryption import encrypt_to_certificate
from labconsole_v2x.security.issuing import CREDENTIAL_PERMISSIONS, TICKET_PERMISSIONS, LabPki
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.structures import Circle, Curve, Validity
from tests.labconsole_v2x.pki import second_codec

KEYS = PublicKeys(SoftwareKey.of_value(5).public_key, SoftwareKey.of_value(7).public_key)
ALL_ATTRIBUTES = SubjectAttributes(TICKET_PERMISSIONS, Validity(5, 3605), Circle(1, -2, 3), 0x40, "car")
HASH = bytes(range(16))
ATTRIBUTES = [
    ALL_ATTRIBUTES,
    SubjectAttributes(),
    SubjectAttributes(CREDENTIAL_PERMISSIONS),
    SubjectAttributes(name=""),
    SubjectAttributes(validity=Validity(0, 7 * 86_400)),
]


@pytest.mark.parametrize("attributes", ATTRIBUTES)
def test_a_second_codec_reads_enrolment_requests(attributes: SubjectAttributes) -> None:
    request = EnrolmentRequest(b"car-1", 1, replace(KEYS, encryption=None), attributes)
    octets = encode_enrolment_request(request)
    values = second_codec.decode("EcRequest", octets)
    assert (values["itsId"], values["certificateFormat"]) == (b"car-1", 1)
    permissions = [(one.psid, ("bitmapSsp", one.ssp)) for one in attributes.permissions or ()]
    assert [(one["psid"], one["ssp"]) for one in values["attributes"].get("appPermissions", [])] == permissions
    if attributes is ALL_ATTRIBUTES:
        assert values["attributes"]["validityPeriod"] == {"start": 5, "duration": ("hours", 1)}
        assert values["attributes"]["region"] == ("circle", {"center": {"latitude": 1, "longitude": -2}, "radius": 3})
        assert (values["attributes"]["id"], values["attributes"]["assuranceLevel"]) == (("name", "car"), b"\x40")
    assert read_enrolment_request(octets) == request


def test_a_second_codec_reads_authorization_and_validation_requests(pki: LabPki) -> None:
    hmac_key = bytes(32)
    tag = key_tag(KEYS, hmac_key)
    shared = encode_shared_request(b"ea-id-08", tag, SubjectAttributes(TICKET_PERMISSIONS))
    signature = EcSignature(encrypt_to_certificate(b"signature", pki.ea), encrypted=True)
    octets = encode_authorization_request(KEYS, hmac_key, shared, signature)
    kind, values = second_codec.decode("Data", encode_data(Content.AUTHORIZATION_REQUEST, octets))["content"]
    assert kind == "authorizationRequest"
    assert values["shared"]["keyTag"] == tag and values["ecSignature"][0] == "encrypted"
    form = {2: "y0", 3: "y1"}
    points = [(form[key.point.form.value], key.point.x) for key in (KEYS.verification, KEYS.encryption) if key]
    assert [values["publicKeys"]["verificationKey"], values["publicKeys"]["encryptionKey"]["key"]] == [
        ("p256", point) for point in points
    ]
    request = read_authorization_request(octets)
    assert (request.keys, request.hmac_key, request.forwarded.shared_octets) == (KEYS, hmac_key, shared)
    assert request.tag_fits
    forwarded = encode_validation_request(shared, signature)
    kind, values = second_codec.decode("Data", encode_data(Content.VALIDATION_REQUEST, forwarded))["content"]
    assert (kind, values["shared"]["eaId"]) == ("validationRequest", b"ea-id-08")
    assert read_validation_request(forwarded) == request.forwarded


@pytest.mark.parametrize("kind", AuthorityKind)
def test_a_second_codec_reads_requests_of_authorities(kind: AuthorityKind) -> None:
    octets = encode_ca_request(CaCertificateRequest(KEYS, kind.attributes))
    name, values = second_codec.decode("Data", encode_data(Content.CA_CERTIFICATE_REQUEST, octets))["content"]
    assert (name, values["attributes"]["id"]) == ("caRequest", ("name", kind.title))
    (group,) = values["attributes"]["certIssuePermissions"]
    psids = {AuthorityKind.EA: [623], AuthorityKind.AA: [36, 37]}
    assert [one["psid"] for one in group["subjectPermissions"][1]] == psids[kind]
    assert read_ca_request(octets) == CaCertificateRequest(KEYS, kind.attributes)
    for length in range(len(octets)):
        with pytest.raises(MalformedDataError):
            read_ca_request(octets[:length])


def test_the_key_tag_is_the_hmac_of_both_encoded_keys() -> None:
    encoded = [
        b"\x80" + key.point.form.tag + key.point.x for key in (KEYS.verification, KEYS.encryption) if key is not None
    ]
    expected = hmac.new(b"k" * 32, encoded[0] + b"\0" + encoded[1], hashlib.sha256).digest()[:16]
    assert key_tag(KEYS, b"k" * 32) == expected


def test_a_second_codec_reads_responses() -> None:
    octets = encode_certificate_response(CertificateResponse(HASH, EnrolmentCode.UNKNOWNITS))
    for content, name in ((Content.ENROLMENT_RESPONSE, "enrolment"), (Content.AUTHORIZATION_RESPONSE, "authorization")):
        kind, values = second_codec.decode("Data", encode_data(content, octets))["content"]
        assert (kind, values["responseCode"], values["requestHash"]) == (f"{name}Response", "unknownits", HASH)
    for code, attributes in ((ValidationCode.DENIEDPERMISSIONS, None), (ValidationCode.OK, ALL_ATTRIBUTES)):
        response = ValidationResponse(HASH, code, attributes)
        octets = encode_validation_response(response)
        kind, values = second_codec.decode("Data", encode_data(Content.VALIDATION_RESPONSE, octets))["content"]
        assert (kind, values["responseCode"]) == ("validationResponse", identifier_of(code))
        assert read_validation_response(octets) == response


def test_a_certificate_is_there_exactly_if_the_code_is_ok(pki: LabPki) -> None:
    for code, certificate in ((EnrolmentCode.OK, pki.aa.octets), (EnrolmentCode.DENIEDREQUEST, None)):
        response = CertificateResponse(HASH, code, certificate)
        octets = encode_certificate_response(response)
        assert read_certificate_response(octets) == response
        with pytest.raises(MalformedDataError, match="refusal"):
            read_certificate_response(octets[:17] + bytes((5 - 5 * (code != 0),)) + octets[18:])


def test_extensions_of_later_versions_are_skipped() -> None:
    octets = encode_certificate_response(CertificateResponse(HASH, 1))
    assert read_certificate_response(b"\x80" + octets[1:] + b"\2\7\x80\1x") == CertificateResponse(HASH, 1)


@pytest.mark.parametrize("curve", Curve)
def test_keys_of_all_curves_are_requested(curve: Curve) -> None:
    keys = PublicKeys(SoftwareKey.generate(curve).public_key)
    request = EnrolmentRequest(b"", 1, keys, SubjectAttributes())
    assert read_enrolment_request(encode_enrolment_request(request)) == request


def test_what_is_truncated_extended_or_unknown_is_refused() -> None:
    octets = encode_enrolment_request(EnrolmentRequest(b"car-1", 1, KEYS, ALL_ATTRIBUTES))
    for length in range(len(octets)):
        with pytest.raises(MalformedDataError):
            read_enrolment_request(octets[:length])
    with pytest.raises(MalformedDataError, match="Trailing"):
        read_enrolment_request(octets + b"\0")
    with pytest.raises(MalformedDataError, match="itsId of 65 octets"):
        read_enrolment_request(encode_enrolment_request(EnrolmentRequest(bytes(65), 1, KEYS, ALL_ATTRIBUTES)))
    with pytest.raises(MalformedDataError, match="Unused bits"):
        read_enrolment_request(
            encode_enrolment_request(EnrolmentRequest(b"", 1, KEYS, SubjectAttributes()))[:-1] + b"\1"
        )
    for broken in (b"", b"\1", b"\2\x80", b"\1\x8a", b"\1\x9f", b"\1\0"):
        with pytest.raises(MalformedDataError):
            read_data(broken)


def test_every_code_of_the_ea_has_one_for_the_station() -> None:
    assert ValidationCode.OK.for_station is AuthorizationCode.OK
    assert ValidationCode.CANTPARSE.for_station is AuthorizationCode.EA_AA_CANTPARSE
    assert ValidationCode.DENIEDREQUEST.for_station is AuthorizationCode.DENIEDPERMISSIONS
    for code in list(ValidationCode)[6:14]:
        assert code.for_station.name == code.name
    assert identifier_of(AuthorizationCode.ITS_AA_KEYSDONTMATCH) == "its-aa-keysdontmatch"
