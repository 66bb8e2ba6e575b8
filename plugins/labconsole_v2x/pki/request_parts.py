"""Parts that the messages of TS 102 941 share: EtsiTs102941Data, public keys, requested attributes (annex A.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from labconsole_v2x.security.encoding import (
    encode_encryption_key,
    encode_issue_permission,
    encode_list,
    encode_name,
    encode_permission,
    encode_region,
    encode_validity,
    encode_verification_key,
)
from labconsole_v2x.security.reading import (
    READ_ERRORS,
    MalformedDataError,
    Reader,
    check_end,
    malformed,
    read_choice,
    read_encryption_key,
    read_extensions,
    read_key_on,
    read_list,
    read_name,
    read_on_curve,
    read_optional,
    read_permission,
    read_region,
    read_validity,
    unsupported,
)
from labconsole_v2x.security.scanning import read_issue_permission
from labconsole_v2x.security.structures import IssuePermission, Permission, PublicKey, Region, Validity

VERSION = 1
"""Of EtsiTs102941Data."""
CERTIFICATE_FORMAT = 1
"""ts103097v131, the only one."""
HASH_SIZE = 16
"""Octets of a request's hash and of a keyTag: the first ones of a SHA-256 or HMAC-SHA256."""
T = TypeVar("T")


class Content(IntEnum):
    """The choices of EtsiTs102941DataContent that are handled."""

    ENROLMENT_REQUEST = 0
    ENROLMENT_RESPONSE = 1
    AUTHORIZATION_REQUEST = 2
    AUTHORIZATION_RESPONSE = 3
    REVOCATION_LIST = 4
    TLM_TRUST_LIST = 5
    ROOT_TRUST_LIST = 6
    VALIDATION_REQUEST = 7
    VALIDATION_RESPONSE = 8
    CA_CERTIFICATE_REQUEST = 9


_CHOICES = 13
"""All of them, with link certificates."""


@dataclass(frozen=True, slots=True)
class PublicKeys:
    """The keys to be certified."""

    verification: PublicKey
    encryption: PublicKey | None = None


@dataclass(frozen=True, slots=True)
class SubjectAttributes:
    """Attributes that are requested for a certificate or confirmed.

    `name` None is absent, an empty one "none".
    """

    permissions: tuple[Permission, ...] | None = None
    validity: Validity | None = None
    region: Region | None = None
    assurance: int | None = None
    name: str | None = None
    issue_permissions: tuple[IssuePermission, ...] | None = None


def encode_data(content: Content, message: bytes) -> bytes:
    """`EtsiTs102941Data` around an encoded message."""
    return bytes((VERSION, 0x80 | content)) + message


def read_data(octets: bytes) -> tuple[Content, bytes]:
    """The kind of message in `EtsiTs102941Data`, and its octets. Raises `MalformedDataError`."""
    if len(octets) < 2 or octets[0] != VERSION:
        malformed("Not EtsiTs102941Data of version 1", 0)
    choice = read_choice(octets[1], _CHOICES, "Message", 1)
    if choice not in set(Content):
        unsupported(f"Message of kind {choice}", 1)
    return Content(choice), octets[2:]


def read_whole(octets: bytes, read: Reader[T]) -> T:
    """What `read` reads of all these octets. Raises `MalformedDataError`."""
    try:
        value, end = read(octets, 0)
    except READ_ERRORS as error:
        raise MalformedDataError("The message is truncated or has broken text. Check that it is whole.") from error
    check_end(end, len(octets))
    return value


def skip_extensions(octets: bytes, at: int, preamble: int) -> int:
    """The offset after the extension additions of a later version, which are skipped."""
    return read_extensions(octets, at)[1] if preamble & 0x80 else at


def encode_public_keys(keys: PublicKeys) -> bytes:
    """`PublicKeys`."""
    preamble = b"\x80" if keys.encryption else b"\0"
    return preamble + public_keys_to_tag(keys)


def public_keys_to_tag(keys: PublicKeys) -> bytes:
    """The octets of the keys one after the other, over which the keyTag is computed (6.2.3.3.1)."""
    encryption = encode_encryption_key(keys.encryption) if keys.encryption else b""
    return encode_verification_key(keys.verification) + encryption


def read_public_keys(octets: bytes, at: int) -> tuple[PublicKeys, int]:
    """`PublicKeys`."""
    encrypts = read_optional(octets, at)
    verification, at = read_on_curve(octets, at + 1, "Verification key", read_key_on)
    if not encrypts:
        return PublicKeys(verification), at
    encryption, at = read_encryption_key(octets, at)
    return PublicKeys(verification, encryption), at


def encode_attributes(attributes: SubjectAttributes) -> bytes:
    """`CertificateSubjectAttributes`."""
    fields = (
        encode_name(attributes.name) if attributes.name is not None else b"",
        encode_validity(attributes.validity) if attributes.validity else b"",
        encode_region(attributes.region) if attributes.region is not None else b"",
        bytes((attributes.assurance,)) if attributes.assurance is not None else b"",
        encode_list(attributes.permissions, encode_permission) if attributes.permissions is not None else b"",
        encode_list(attributes.issue_permissions, encode_issue_permission)
        if attributes.issue_permissions is not None
        else b"",
    )
    preamble = sum(0x40 >> index for index, field in enumerate(fields) if field)
    return bytes((preamble,)) + b"".join(fields)


def read_attributes(octets: bytes, at: int) -> tuple[SubjectAttributes, int]:
    """`CertificateSubjectAttributes`."""
    preamble = octets[at]
    if preamble & 0x01:
        malformed("Unused bits set", at)
    at += 1
    name, at = _if_present(preamble & 0x40, read_name, octets, at)
    validity, at = _if_present(preamble & 0x20, read_validity, octets, at)
    region, at = _if_present(preamble & 0x10, read_region, octets, at)
    assurance, at = _if_present(preamble & 0x08, read_uint8, octets, at)
    permissions, at = _if_present(preamble & 0x04, _permissions, octets, at)
    issue_permissions, at = _if_present(preamble & 0x02, _issue_permissions, octets, at)
    at = skip_extensions(octets, at, preamble)
    return SubjectAttributes(permissions, validity, region, assurance, name, issue_permissions), at


def encode_response(request_hash: bytes, code: int, granted: bytes) -> bytes:
    """A response: the hash of the request, a code, and what is granted (empty: refused)."""
    return (b"\x40" if granted else b"\0") + request_hash + bytes((code,)) + granted


def read_response(octets: bytes, at: int, what: str, read: Reader[T]) -> tuple[tuple[bytes, int, T | None], int]:
    """The hash, the code and what is granted; code 0 and no other has it. Raises `MalformedDataError`."""
    preamble = octets[at]
    if preamble & 0x3F:
        malformed("Unused bits set", at)
    request_hash, at = octets[at + 1 : at + 1 + HASH_SIZE], at + 1 + HASH_SIZE
    code, at = read_uint8(octets, at)
    if bool(preamble & 0x40) != (code == 0):
        malformed(f"{what} with a refusal, or none without", at)
    granted, at = _if_present(preamble & 0x40, read, octets, at)
    return (request_hash, code, granted), skip_extensions(octets, at, preamble)


def read_uint8(octets: bytes, at: int) -> tuple[int, int]:
    """An integer or enumeration of one octet."""
    return octets[at], at + 1


def _permissions(octets: bytes, at: int) -> tuple[tuple[Permission, ...], int]:
    return read_list(octets, at, read_permission)


def _issue_permissions(octets: bytes, at: int) -> tuple[tuple[IssuePermission, ...], int]:
    return read_list(octets, at, read_issue_permission)


def _if_present(
    present: int, read: Callable[[bytes, int], tuple[T, int]], octets: bytes, at: int
) -> tuple[T | None, int]:
    return read(octets, at) if present else (None, at)
