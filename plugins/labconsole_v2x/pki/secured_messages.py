"""Security of TS 102 941 messages: requests signed and encrypted to an authority, responses under their AES key."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from labconsole_v2x.pki.request_parts import HASH_SIZE, Content, encode_data, read_data
from labconsole_v2x.security.encoding import encode_to_be_signed_data
from labconsole_v2x.security.encryption import (
    KEY_SIZE,
    DecryptionError,
    decrypt_with_shared_key,
    encrypt_to_certificate,
    encrypt_with_shared_key,
    open_with_certificate,
)
from labconsole_v2x.security.issuing import CERTIFICATE_REQUEST_PSID
from labconsole_v2x.security.keys import (
    SigningKey,
    SoftwareKey,
    integers,
    integers_verifier,
    load_public_key,
    signature_digest,
)
from labconsole_v2x.security.reading import MalformedDataError, malformed
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.signing import sign_to_be_signed_data
from labconsole_v2x.security.structures import Certificate, Header, PublicKey, SignedData


class UnreadableRequestError(Exception):
    """A request whose AES key is not known, so that no response can be encrypted; the text is the reason."""


class DeniedRequestError(Exception):
    """A request that is refused without a response of the standard; the text is the reason."""


class BadResponseError(Exception):
    """A response that is not one to the request; the text is the reason."""


@dataclass(frozen=True)
class AuthorityIdentity:
    """An authority's own certificate with its root, and its two keys."""

    certificate: Certificate
    root: Certificate
    key: SoftwareKey
    encryption_key: SoftwareKey


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request, and what its sender needs to read the response."""

    octets: bytes
    aes_key: bytes
    request_hash: bytes


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request that an authority has decrypted: signed data, whatever that is, and what the response needs."""

    signed_octets: bytes
    aes_key: bytes

    @property
    def request_hash(self) -> bytes:
        """The first 16 octets of the SHA-256 of the EtsiTs103097Data-Signed (6.2.3.2.2, 6.2.3.3.2)."""
        return _request_hash(self.signed_octets)


def _request_hash(signed_octets: bytes) -> bytes:
    return hashlib.sha256(signed_octets).digest()[:HASH_SIZE]


def request_header(now_us: int) -> Header:
    """The header of all signed messages: the ITS-AID of certificate requests and the generation time, in us."""
    return Header(CERTIFICATE_REQUEST_PSID, now_us)


def sign_payload(payload: bytes, key: SigningKey, certificate: Certificate | None, now_us: int) -> bytes:
    """EtsiTs103097Data-Signed, by the digest of a certificate, or by "self" without one."""
    return sign_to_be_signed_data(encode_to_be_signed_data(payload, request_header(now_us)), key, certificate)


def seal_request(signed_octets: bytes, recipient: Certificate) -> SentRequest:
    """Encrypts signed data to an authority. Raises `EncodingError`: its certificate has no encryption key."""
    aes_key = os.urandom(KEY_SIZE)
    return SentRequest(encrypt_to_certificate(signed_octets, recipient, aes_key), aes_key, _request_hash(signed_octets))


def open_request(octets: bytes, identity: AuthorityIdentity) -> ReceivedRequest:
    """Decrypts a request. Raises `UnreadableRequestError`."""
    try:
        return ReceivedRequest(*open_with_certificate(octets, identity.certificate, identity.encryption_key))
    except MalformedDataError as error:
        raise UnreadableRequestError(f"not encrypted data: {error}") from error
    except DecryptionError as error:
        raise UnreadableRequestError(
            "imnottherecipient or decryptionfailed: it is not encrypted to this key"
        ) from error


def seal_response(
    content: Content, message: bytes, request: ReceivedRequest, identity: AuthorityIdentity, now_us: int
) -> bytes:
    """A response, signed by the authority and encrypted under the request's AES key."""
    signed = sign_payload(encode_data(content, message), identity.key, identity.certificate, now_us)
    return encrypt_with_shared_key(signed, request.aes_key)


def open_response(octets: bytes, request: SentRequest, signer: Certificate, content: Content) -> bytes:
    """The encoded message of a response to `request`, signed by `signer`. Raises `BadResponseError`."""
    try:
        data = scan_signed_data(decrypt_with_shared_key(octets, request.aes_key))
        check_profile(data)
        if data.digest != signer.hashed_id8 or not is_signed_by(data, signer.verification_key, signer.canonical):
            raise BadResponseError("its signature is not that of the authority")
        kind, message = read_data(payload_of(data))
    except MalformedDataError as error:
        raise BadResponseError(f"it is malformed: {error}") from error
    except DecryptionError as error:
        raise BadResponseError("it is not encrypted under the key of the request") from error
    if kind is not content:
        raise BadResponseError("it is a message of another kind")
    return message


def check_profile(data: SignedData) -> None:
    """Check the header: the ITS-AID, the generation time, nothing else. Raises `MalformedDataError`."""
    header = data.header
    if header.generation_time is None or header != request_header(header.generation_time):
        malformed("A header with another ITS-AID, without generation time, or with further fields", 0)
    if data.certificates:
        malformed("A signer that is not a digest or self", 0)


def payload_of(data: SignedData) -> bytes:
    """The payload of signed data. Raises `MalformedDataError`: it has none."""
    if data.payload is None or data.tbs[0] != 0x40:
        malformed("No payload, or further parts next to it", 0)
    return data.payload


def is_signed_by(data: SignedData, key: PublicKey, signer_canonical: bytes) -> bool:
    """Whether the signature is valid; `signer_canonical` is empty for "self". False where the key is not a point."""
    if data.signature.curve is not key.curve or data.hash_name != key.curve.hash_name:
        return False
    try:
        verify = integers_verifier(load_public_key(key))
    except ValueError:
        return False
    return verify(*integers(data.signature), signature_digest(data.hash_name, data.tbs, signer_canonical))


def is_point(key: PublicKey) -> bool:
    """Whether a public key can be loaded."""
    try:
        load_public_key(key)
    except ValueError:
        return False
    return True
