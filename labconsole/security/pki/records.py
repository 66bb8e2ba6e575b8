"""What the certificate database holds, row by row, as records. All times are aware, UTC; `sha256` is hex of the DER."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property

from cryptography import x509

from labconsole.security.secrets import SecretSource
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.extensions import crl_scope
from labconsole.security.x509.fingerprints import key_fingerprint
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.signatures import issued_by
from labconsole.store.errors import StoreError


def _unchanged(der: bytes, sha256: str) -> bytes:
    """`der`, whose hash is stored with it. Raises StoreError."""
    if hashlib.sha256(der).hexdigest() != sha256:
        raise StoreError(
            f"The certificate database does not contain what it stored with SHA-256 {sha256}: another program changed "
            "it. Keep it, and continue with an earlier copy."
        )
    return der


@dataclass(frozen=True)
class State:
    """A State, or another party with a CA of its own. `local`: this console has its private keys."""

    id: int
    name: str
    domain: str
    """DNS domains of its hosts, one blank between them, as in `caas.gov.sg`; empty: any (see `pki.domains`)."""
    local: bool
    made: datetime


@dataclass(frozen=True)
class FileKey:
    """A private key in an encrypted PKCS#8 file (PEM, 0600) of the database's directory."""

    file: str
    """Name of the file, relative to the directory of keys."""
    source: SecretSource
    """Where its passphrase comes from; a passphrase file is named relative to that directory too."""


@dataclass(frozen=True)
class TokenKey:
    """A private key in a PKCS#11 token, which it never leaves."""

    token: str
    """Name of the token (`labconsole hsm tokens`)."""
    label: str
    """CKA_LABEL."""


@dataclass(frozen=True)
class KeyRecord:
    """A key pair of a State."""

    id: int
    state: int
    label: str
    type: KeyType
    spki_sha256: str
    place: FileKey | TokenKey
    made: datetime


class Origin(StrEnum):
    """How a certificate came into the database."""

    SELF_SIGNED = "self-signed"
    ISSUED = "issued"
    LINK = "link"
    IMPORTED = "imported"
    BUNDLE = "bundle"


@dataclass(frozen=True)
class Revocation:
    """That a certificate was revoked by its issuer (RFC 5280, 5.3.1)."""

    at: datetime
    reason: x509.ReasonFlags


@dataclass(frozen=True)
class CertificateRecord:
    """A certificate. `state` is whom it certifies, if known; `key` the key here that it belongs to."""

    id: int
    der: bytes
    sha256: str
    state: int | None
    key: int | None
    profile: CertificateProfile | None
    origin: Origin
    revoked: Revocation | None
    replaces: int | None
    """The certificate that it takes over from."""
    made: datetime
    removed: datetime | None
    """Since when it is hidden; it can be restored."""

    @cached_property
    def certificate(self) -> x509.Certificate:
        """The certificate itself, parsed once. Raises StoreError: another program changed it."""
        return x509.load_der_x509_certificate(_unchanged(self.der, self.sha256))

    @cached_property
    def self_signed(self) -> bool:
        """Whether its own key signed it: a root or a pinned one, unlike a link certificate of the same names."""
        return issued_by(self.certificate, self.certificate)

    @property
    def is_link(self) -> bool:
        """Whether it joins two keys of one CA (RFC 9810, 4.4): signed in the CA's own name, by another key."""
        return self.certificate.subject == self.certificate.issuer and not self.self_signed

    @cached_property
    def name_and_key(self) -> tuple[bytes, str]:
        """Whom it certifies: DER of the subject, SHA-256 (hex) of the public key. Renewed ones say the same."""
        return self.certificate.subject.public_bytes(), key_fingerprint(self.certificate.public_key())


class RequestStatus(StrEnum):
    """How far a certificate signing request has come."""

    MADE = "made"
    """By a State of this console, for another one."""
    RECEIVED = "received"
    APPROVED = "approved"
    REFUSED = "refused"


@dataclass(frozen=True)
class RequestRecord:
    """A CSR: from whom, to whom, and what was decided."""

    id: int
    der: bytes
    sha256: str
    requester: int
    """State."""
    issuer: int
    """State whose CA is asked."""
    profile: CertificateProfile
    """What it asks for; the issuer may decide for another."""
    key: int | None
    status: RequestStatus
    reason: str
    """Why it was refused."""
    certificate: int | None
    made: datetime
    decided: datetime | None

    @cached_property
    def csr(self) -> x509.CertificateSigningRequest:
        """The request itself, parsed once. Raises StoreError: another program changed it."""
        return x509.load_der_x509_csr(_unchanged(self.der, self.sha256))


@dataclass(frozen=True)
class CrlRecord:
    """A CRL. `issuer` is the CA certificate whose key signed it."""

    id: int
    der: bytes
    sha256: str
    issuer: int
    number: int
    this_update: datetime
    next_update: datetime

    @cached_property
    def crl(self) -> x509.CertificateRevocationList:
        """The CRL itself, parsed once. Raises StoreError: another program changed it."""
        return x509.load_der_x509_crl(_unchanged(self.der, self.sha256))

    @property
    def age(self) -> tuple[int, datetime]:
        """What grows from each CRL of a CA and scope to the next; not every CA numbers them."""
        return self.number, self.this_update

    @property
    def renewal(self) -> datetime:
        """When the next one is due: in the last third of the time until nextUpdate, after which peers refuse."""
        return self.next_update - (self.next_update - self.this_update) / 3

    @cached_property
    def scope(self) -> bytes:
        """What it covers, to be compared: all, a part (RFC 5280, 5.2.5), or what changed since another (5.2.4)."""
        return crl_scope(self.crl)


class TrustKind(StrEnum):
    """What is trusted."""

    ROOT = "root"
    """A CA and what it issues."""
    PIN = "pin"
    """One end certificate by its fingerprint, without any CA."""


@dataclass(frozen=True)
class TrustRecord:
    """That a State trusts a certificate. `confirmed` says in a few words why, for the operator."""

    id: int
    state: int
    certificate: int
    kind: TrustKind
    since: datetime
    confirmed: str
    withdrawn: datetime | None


@dataclass(frozen=True)
class BundleRecord:
    """A trust bundle that `importer` took from `subject`; of one's own: `importer` is `subject`."""

    id: int
    importer: int
    subject: int
    sequence: int
    made: datetime
    next_update: datetime
    sha256: str
    signer: str
    """SHA-256 of the signer's certificate."""
    trusted: tuple[str, ...]
    """SHA-256 of the roots that `subject` trusts, as the bundle says."""


class Item(StrEnum):
    """What States hand to each other."""

    ROOT = "root"
    CSR = "csr"
    CERTIFICATE = "certificate"
    CRL = "crl"
    BUNDLE = "bundle"
    PKCS12 = "pkcs12"


@dataclass(frozen=True)
class HandoverRecord:
    """That something went from one State to another."""

    id: int
    at: datetime
    sender: int
    receiver: int
    item: Item
    sha256: str


@dataclass(frozen=True)
class ProofRecord:
    """That a handshake passed: `client` connected to `server`, with these certificates (ids)."""

    id: int
    at: datetime
    client: int
    server: int
    client_certificate: int
    server_certificate: int
    detail: str
    """Protocol and cipher, in a few words."""


class RotationStatus(StrEnum):
    """How far a rotation has come."""

    PREPARING = "preparing"
    """The successor is being made."""
    OVERLAP = "overlap"
    """Old and new hold; peers confirm."""
    SWITCHED = "switched"
    """The new one is used; the old one still holds."""
    FINISHED = "finished"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class RotationRecord:
    """The plan to replace a certificate (an end certificate, or a root with link certificates)."""

    id: int
    certificate: int
    successor: int | None
    status: RotationStatus
    overlap_days: int
    begun: datetime
    switched: datetime | None
    ended: datetime | None
    peers: tuple[int, ...]
    """States that must confirm."""
    confirmed: tuple[int, ...]


@dataclass(frozen=True)
class IdentityRecord:
    """A certificate with its key, ready for a trial, by a name that is unique in the database."""

    name: str
    state: int
    certificate: int


@dataclass(frozen=True)
class AuditRecord:
    """Who did what, and when. `fingerprint` is the SHA-256 (hex) of what it was done to, where there is one."""

    id: int
    at: datetime
    who: str
    what: str
    subject: str
    fingerprint: str
    detail: str
