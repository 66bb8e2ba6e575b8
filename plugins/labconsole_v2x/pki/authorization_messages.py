"""Messages of authorization and of its validation, TS 102 941, 6.2.3.3 and 6.2.3.4: types, codes and octets."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import IntEnum

from labconsole_v2x.pki.request_parts import (
    CERTIFICATE_FORMAT,
    HASH_SIZE,
    PublicKeys,
    SubjectAttributes,
    encode_attributes,
    encode_public_keys,
    encode_response,
    public_keys_to_tag,
    read_attributes,
    read_public_keys,
    read_response,
    read_uint8,
    read_whole,
    skip_extensions,
)
from labconsole_v2x.security.encryption import read_encrypted_data
from labconsole_v2x.security.reading import read_choice, read_optional
from labconsole_v2x.security.scanning import read_signed_data

HMAC_KEY_SIZE = 32
_ENCRYPTED, _CLEAR = 0, 1


class AuthorizationCode(IntEnum):
    """`AuthorizationResponseCode`."""

    OK = 0
    ITS_AA_CANTPARSE = 1
    ITS_AA_BADCONTENTTYPE = 2
    ITS_AA_IMNOTTHERECIPIENT = 3
    ITS_AA_UNKNOWNENCRYPTIONALGORITHM = 4
    ITS_AA_DECRYPTIONFAILED = 5
    ITS_AA_KEYSDONTMATCH = 6
    ITS_AA_INCOMPLETEREQUEST = 7
    ITS_AA_INVALIDENCRYPTIONKEY = 8
    ITS_AA_OUTOFSYNCREQUEST = 9
    ITS_AA_UNKNOWNEA = 10
    ITS_AA_INVALIDEA = 11
    ITS_AA_DENIEDPERMISSIONS = 12
    AA_EA_CANTREACHEA = 13
    EA_AA_CANTPARSE = 14
    EA_AA_BADCONTENTTYPE = 15
    EA_AA_IMNOTTHERECIPIENT = 16
    EA_AA_UNKNOWNENCRYPTIONALGORITHM = 17
    EA_AA_DECRYPTIONFAILED = 18
    INVALIDAA = 19
    INVALIDAASIGNATURE = 20
    WRONGEA = 21
    UNKNOWNITS = 22
    INVALIDSIGNATURE = 23
    INVALIDENCRYPTIONKEY = 24
    DENIEDPERMISSIONS = 25
    DENIEDTOOMANYCERTS = 26


class ValidationCode(IntEnum):
    """`AuthorizationValidationResponseCode`."""

    OK = 0
    CANTPARSE = 1
    BADCONTENTTYPE = 2
    IMNOTTHERECIPIENT = 3
    UNKNOWNENCRYPTIONALGORITHM = 4
    DECRYPTIONFAILED = 5
    INVALIDAA = 6
    INVALIDAASIGNATURE = 7
    WRONGEA = 8
    UNKNOWNITS = 9
    INVALIDSIGNATURE = 10
    INVALIDENCRYPTIONKEY = 11
    DENIEDPERMISSIONS = 12
    DENIEDTOOMANYCERTS = 13
    DENIEDREQUEST = 14

    @property
    def for_station(self) -> AuthorizationCode:
        """The code with which the AA answers the station; a denied request has none of its own there."""
        if self is ValidationCode.DENIEDREQUEST:
            return AuthorizationCode.DENIEDPERMISSIONS
        return AuthorizationCode(self + 13) if self else AuthorizationCode.OK


@dataclass(frozen=True, slots=True)
class SharedRequest:
    """`SharedAtRequest`, which the EA sees: it has a tag of the ticket's keys, not the keys."""

    ea_id: bytes
    key_tag: bytes
    certificate_format: int
    attributes: SubjectAttributes


@dataclass(frozen=True, slots=True)
class EcSignature:
    """`EcSignature`: signed data with the hash of the SharedAtRequest, encrypted to the EA or in clear."""

    octets: bytes
    encrypted: bool


@dataclass(frozen=True, slots=True)
class ValidationRequest:
    """`AuthorizationValidationRequest`: the shared request as its octets were received, and read."""

    shared_octets: bytes
    shared: SharedRequest
    ec_signature: EcSignature


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """`InnerAtRequest`: the ticket's keys, the key of their tag, and what is forwarded to the EA."""

    keys: PublicKeys
    hmac_key: bytes
    forwarded: ValidationRequest

    @property
    def tag_fits(self) -> bool:
        """Whether the keyTag, which the EC's owner has signed, is that of these keys."""
        return hmac.compare_digest(key_tag(self.keys, self.hmac_key), self.forwarded.shared.key_tag)


@dataclass(frozen=True, slots=True)
class ValidationResponse:
    """`AuthorizationValidationResponse`; the confirmed attributes are there if the code is 0."""

    request_hash: bytes
    code: int
    attributes: SubjectAttributes | None = None


def key_tag(keys: PublicKeys, hmac_key: bytes) -> bytes:
    """The keyTag: the first 16 octets of the HMAC-SHA256 over the encoded keys."""
    return hmac.digest(hmac_key, public_keys_to_tag(keys), "sha256")[:HASH_SIZE]


def encode_shared_request(ea_id: bytes, tag: bytes, attributes: SubjectAttributes) -> bytes:
    """`SharedAtRequest`."""
    return b"\0" + ea_id + tag + bytes((CERTIFICATE_FORMAT,)) + encode_attributes(attributes)


def encode_validation_request(shared_octets: bytes, ec_signature: EcSignature) -> bytes:
    """`AuthorizationValidationRequest`."""
    return b"\0" + _forwarded(shared_octets, ec_signature)


def encode_authorization_request(
    keys: PublicKeys, hmac_key: bytes, shared_octets: bytes, ec_signature: EcSignature
) -> bytes:
    """`InnerAtRequest`."""
    return b"\0" + encode_public_keys(keys) + hmac_key + _forwarded(shared_octets, ec_signature)


def _forwarded(shared_octets: bytes, ec_signature: EcSignature) -> bytes:
    choice = _ENCRYPTED if ec_signature.encrypted else _CLEAR
    return shared_octets + bytes((0x80 | choice,)) + ec_signature.octets


def read_authorization_request(octets: bytes) -> AuthorizationRequest:
    """`InnerAtRequest`. Raises `MalformedDataError`."""
    return read_whole(octets, _authorization_request)


def read_validation_request(octets: bytes) -> ValidationRequest:
    """`AuthorizationValidationRequest`. Raises `MalformedDataError`."""
    return read_whole(octets, _validation_request)


def encode_validation_response(response: ValidationResponse) -> bytes:
    """`AuthorizationValidationResponse`."""
    attributes = encode_attributes(response.attributes) if response.attributes else b""
    return encode_response(response.request_hash, response.code, attributes)


def read_validation_response(octets: bytes) -> ValidationResponse:
    """`AuthorizationValidationResponse`. Raises `MalformedDataError`: also if code and attributes disagree."""
    return read_whole(octets, _validation_response)


def _authorization_request(octets: bytes, at: int) -> tuple[AuthorizationRequest, int]:
    extended = read_optional(octets, at)
    keys, at = read_public_keys(octets, at + 1)
    hmac_key, at = octets[at : at + HMAC_KEY_SIZE], at + HMAC_KEY_SIZE
    forwarded, at = _read_forwarded(octets, at)
    return AuthorizationRequest(keys, hmac_key, forwarded), skip_extensions(octets, at, extended << 7)


def _validation_request(octets: bytes, at: int) -> tuple[ValidationRequest, int]:
    extended = read_optional(octets, at)
    request, at = _read_forwarded(octets, at + 1)
    return request, skip_extensions(octets, at, extended << 7)


def _read_forwarded(octets: bytes, at: int) -> tuple[ValidationRequest, int]:
    start = at
    shared, at = _shared_request(octets, at)
    shared_octets = octets[start:at]
    choice = read_choice(octets[at], 2, "EC signature", at)
    start = at + 1
    _, at = read_encrypted_data(octets, start) if choice == _ENCRYPTED else read_signed_data(octets, start)
    return ValidationRequest(shared_octets, shared, EcSignature(octets[start:at], choice == _ENCRYPTED)), at


def _shared_request(octets: bytes, at: int) -> tuple[SharedRequest, int]:
    extended = read_optional(octets, at)
    ea_id, at = octets[at + 1 : at + 9], at + 9
    tag, at = octets[at : at + HASH_SIZE], at + HASH_SIZE
    certificate_format, at = read_uint8(octets, at)
    attributes, at = read_attributes(octets, at)
    return SharedRequest(ea_id, tag, certificate_format, attributes), skip_extensions(octets, at, extended << 7)


def _validation_response(octets: bytes, at: int) -> tuple[ValidationResponse, int]:
    parts, at = read_response(octets, at, "Attributes", read_attributes)
    return ValidationResponse(*parts), at
