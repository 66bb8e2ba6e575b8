"""Enrolment request and response of TS 102 941, 6.2.3.2: their types, response codes and octets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from labconsole_v2x.pki.request_parts import (
    PublicKeys,
    SubjectAttributes,
    encode_attributes,
    encode_public_keys,
    encode_response,
    read_attributes,
    read_public_keys,
    read_response,
    read_uint8,
    read_whole,
    skip_extensions,
)
from labconsole_v2x.security.encoding import encode_octets
from labconsole_v2x.security.reading import malformed, read_octets, read_optional
from labconsole_v2x.security.scanning import read_certificate_octets

MOST_ITS_ID = 64
"""Octets of an itsId; longer ones are refused."""


class EnrolmentCode(IntEnum):
    """`EnrolmentResponseCode`."""

    OK = 0
    CANTPARSE = 1
    BADCONTENTTYPE = 2
    IMNOTTHERECIPIENT = 3
    UNKNOWNENCRYPTIONALGORITHM = 4
    DECRYPTIONFAILED = 5
    UNKNOWNITS = 6
    INVALIDSIGNATURE = 7
    INVALIDENCRYPTIONKEY = 8
    BADITSSTATUS = 9
    INCOMPLETEREQUEST = 10
    DENIEDPERMISSIONS = 11
    INVALIDKEYS = 12
    DENIEDREQUEST = 13


def identifier_of(code: IntEnum) -> str:
    """The standard's identifier of a response code."""
    return code.name.lower().replace("_", "-")


@dataclass(frozen=True, slots=True)
class EnrolmentRequest:
    """`InnerEcRequest`: who asks, the keys of the enrolment credential, and what it shall permit."""

    its_id: bytes
    certificate_format: int
    keys: PublicKeys
    attributes: SubjectAttributes


@dataclass(frozen=True, slots=True)
class CertificateResponse:
    """`InnerEcResponse` or `InnerAtResponse`, which differ in the codes only; the certificate is there if it is 0."""

    request_hash: bytes
    code: int
    certificate: bytes | None = None


def encode_enrolment_request(request: EnrolmentRequest) -> bytes:
    """`InnerEcRequest`."""
    keys, attributes = encode_public_keys(request.keys), encode_attributes(request.attributes)
    return b"\0" + encode_octets(request.its_id) + bytes((request.certificate_format,)) + keys + attributes


def read_enrolment_request(octets: bytes) -> EnrolmentRequest:
    """`InnerEcRequest`. Raises `MalformedDataError`."""
    return read_whole(octets, _enrolment_request)


def _enrolment_request(octets: bytes, at: int) -> tuple[EnrolmentRequest, int]:
    extended = read_optional(octets, at)
    its_id, at = read_octets(octets, at + 1)
    if len(its_id) > MOST_ITS_ID:
        malformed(f"An itsId of {len(its_id)} octets", at)
    certificate_format, at = read_uint8(octets, at)
    keys, at = read_public_keys(octets, at)
    attributes, at = read_attributes(octets, at)
    at = skip_extensions(octets, at, extended << 7)
    return EnrolmentRequest(its_id, certificate_format, keys, attributes), at


def encode_certificate_response(response: CertificateResponse) -> bytes:
    """`InnerEcResponse` or `InnerAtResponse`."""
    return encode_response(response.request_hash, response.code, response.certificate or b"")


def read_certificate_response(octets: bytes) -> CertificateResponse:
    """`InnerEcResponse` or `InnerAtResponse`. Raises `MalformedDataError`: also if code and certificate disagree."""
    return read_whole(octets, _certificate_response)


def _certificate_response(octets: bytes, at: int) -> tuple[CertificateResponse, int]:
    parts, at = read_response(octets, at, "A certificate", read_certificate_octets)
    return CertificateResponse(*parts), at
