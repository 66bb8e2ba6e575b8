"""Requests of an EA or AA for its certificate to the root CA: `CaCertificateRequest` of TS 102 941, annex A.2."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum

from labconsole.errors import UserError
from labconsole_v2x.pki.authorization_authority import Post
from labconsole_v2x.pki.request_parts import (
    Content,
    PublicKeys,
    SubjectAttributes,
    encode_attributes,
    encode_data,
    encode_public_keys,
    read_attributes,
    read_public_keys,
    read_whole,
    skip_extensions,
)
from labconsole_v2x.pki.secured_messages import sign_payload
from labconsole_v2x.pki.station_requests import Certified, Task, check_authority
from labconsole_v2x.security.encoding import compressed, encode_verification_key
from labconsole_v2x.security.issuing import AA_ISSUES, AA_PERMISSIONS, EA_ISSUES, EA_PERMISSIONS
from labconsole_v2x.security.keys import SigningKey, SoftwareKey
from labconsole_v2x.security.reading import MalformedDataError, read_optional
from labconsole_v2x.security.scanning import scan_certificate
from labconsole_v2x.security.structures import Certificate, IssuePermission, Permission, PublicKey


class AuthorityKind(Enum):
    """An authority under the root: its name, its task, and what its certificate permits."""

    EA = ("Lab EA", Task.ENROLMENT, EA_PERMISSIONS, EA_ISSUES)
    AA = ("Lab AA", Task.AUTHORIZATION, AA_PERMISSIONS, AA_ISSUES)

    def __init__(
        self,
        title: str,
        task: Task,
        permissions: tuple[Permission, ...],
        issue_permissions: tuple[IssuePermission, ...],
    ) -> None:
        self.title = title
        self.task = task
        self.attributes = SubjectAttributes(permissions, name=title, issue_permissions=issue_permissions)

    @property
    def folder(self) -> str:
        """Its folder in a lab."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class CaCertificateRequest:
    """The keys to be certified, and what the certificate shall permit."""

    keys: PublicKeys
    attributes: SubjectAttributes


def encode_ca_request(request: CaCertificateRequest) -> bytes:
    """`CaCertificateRequest`."""
    return b"\0" + encode_public_keys(request.keys) + encode_attributes(request.attributes)


def read_ca_request(octets: bytes) -> CaCertificateRequest:
    """`CaCertificateRequest`. Raises `MalformedDataError`."""
    return read_whole(octets, _ca_request)


def _ca_request(octets: bytes, at: int) -> tuple[CaCertificateRequest, int]:
    extended = read_optional(octets, at)
    keys, at = read_public_keys(octets, at + 1)
    attributes, at = read_attributes(octets, at)
    return CaCertificateRequest(keys, attributes), skip_extensions(octets, at, extended << 7)


def fingerprint(key: PublicKey) -> bytes:
    """The SHA-256 of a public key, compressed and encoded: what its holder and the root's operator compare."""
    return hashlib.sha256(encode_verification_key(compressed(key))).digest()


def attributes_of(certificate: Certificate) -> SubjectAttributes:
    """What a certificate permits, to be asked for again."""
    return SubjectAttributes(
        certificate.permissions, name=certificate.name, issue_permissions=certificate.issue_permissions
    )


def certificate_request(
    key: SigningKey, encryption_key: SigningKey, attributes: SubjectAttributes, now_us: int
) -> bytes:
    """`CaCertificateRequestMessage`: signed with the new key (proof of possession)."""
    keys = PublicKeys(key.public_key, encryption_key.public_key)
    message = encode_ca_request(CaCertificateRequest(keys, attributes))
    return sign_payload(encode_data(Content.CA_CERTIFICATE_REQUEST, message), key, None, now_us)


def rekeying_request(request: bytes, current: Certified[SigningKey], now_us: int) -> bytes:
    """`CaCertificateRekeyingMessage`: a request for the next certificate, signed with the current one."""
    return sign_payload(request, current.key, current.certificate, now_us)


def certified_by_root(
    url: str,
    root: Certificate,
    kind: AuthorityKind,
    keys: tuple[SoftwareKey, SoftwareKey],
    current: Certified[SoftwareKey] | None,
    post: Post,
    now_us: int,
) -> Certificate:
    """The certificate of an authority's new keys, for signatures and for encryption.

    `current`: what it has had so far; it signs for the next. Raises UserError: the root CA does not answer, refuses,
    or answers something else.
    """
    key, encryption_key = keys
    attributes = kind.attributes if current is None else attributes_of(current.certificate)
    request = certificate_request(key, encryption_key, attributes, now_us)
    octets = post(url, request if current is None else rekeying_request(request, current, now_us))
    try:
        certificate = scan_certificate(octets)
    except MalformedDataError as error:
        raise UserError(f"{url} answers no certificate ({str(error).rstrip('.')}): check the URL.") from error
    check_authority(url, certificate, root, kind.task)
    wanted = (compressed(key.public_key), compressed(encryption_key.public_key))
    given = certificate.encryption_key
    if (compressed(certificate.verification_key), given and compressed(given)) != wanted:
        raise UserError(f"{url} answers with a certificate of other keys: it is not used.")
    return certificate
