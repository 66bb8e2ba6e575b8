"""Rows of the certificate database as records: which columns, in which order, and what their values mean."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509

from labconsole.security.pki.records import (
    AuditRecord,
    BundleRecord,
    CertificateRecord,
    CrlRecord,
    FileKey,
    HandoverRecord,
    IdentityRecord,
    Item,
    KeyRecord,
    Origin,
    ProofRecord,
    RequestRecord,
    RequestStatus,
    Revocation,
    RotationRecord,
    RotationStatus,
    State,
    TokenKey,
    TrustKind,
    TrustRecord,
)
from labconsole.security.secrets import SecretSource
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.key_types import KeyType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

STATE = "SELECT id, name, domain, local, made FROM state"
KEY = "SELECT id, state, label, type, spki_sha256, file, source, token, token_label, made FROM key"
CERTIFICATE = (
    "SELECT certificate.id, der, sha256, coalesce(certificate.state, key.state), key.id, profile, origin, revoked, "
    "reason, replaces, certificate.made, removed FROM certificate LEFT JOIN key USING (spki_sha256)"
)
REQUEST = (
    "SELECT request.id, der, sha256, requester, issuer, profile, key.id, status, reason, certificate, request.made, "
    "decided FROM request LEFT JOIN key USING (spki_sha256)"
)
CRL = "SELECT id, der, sha256, issuer, number, this_update, next_update FROM crl"
TRUST = "SELECT id, state, certificate, kind, since, confirmed, withdrawn FROM trust"
BUNDLE = "SELECT id, importer, subject, sequence, made, next_update, sha256, signer, trusted FROM bundle"
HANDOVER = "SELECT id, at, sender, receiver, item, sha256 FROM handover"
PROOF = "SELECT id, at, client, server, client_certificate, server_certificate, detail FROM proof"
ROTATION = (
    "SELECT id, certificate, successor, status, overlap_days, begun, switched, ended, "
    "(SELECT group_concat(peer) FROM rotation_peer WHERE rotation = id), "
    "(SELECT group_concat(peer) FROM rotation_peer WHERE rotation = id AND confirmed IS NOT NULL) FROM rotation"
)
IDENTITY = "SELECT name, state, certificate FROM identity"
AUDIT = "SELECT id, at, who, what, subject, fingerprint, detail FROM audit"


def as_number(at: datetime) -> int:
    """An aware time as it stands in a row."""
    return (at - _EPOCH) // _MICROSECOND


def as_time(number: int) -> datetime:
    """A time of a row; aware, UTC."""
    return _EPOCH + number * _MICROSECOND


def _time_or_none(number: int | None) -> datetime | None:
    return None if number is None else as_time(number)


def state_of(row: Sequence[Any]) -> State:
    """A row of STATE."""
    number, name, domain, local, made = row
    return State(number, name, domain, bool(local), as_time(made))


def key_of(row: Sequence[Any]) -> KeyRecord:
    """A row of KEY."""
    number, state, label, kind, spki, file, source, token, token_label, made = row
    place = TokenKey(token, token_label) if file is None else FileKey(file, SecretSource.model_validate_json(source))
    return KeyRecord(number, state, label, KeyType(kind), spki, place, as_time(made))


def certificate_of(row: Sequence[Any]) -> CertificateRecord:
    """A row of CERTIFICATE."""
    number, der, sha256, state, key, profile, origin, revoked, reason, replaces, made, removed = row
    return CertificateRecord(
        number,
        der,
        sha256,
        state,
        key,
        None if profile is None else CertificateProfile(profile),
        Origin(origin),
        None if revoked is None else Revocation(as_time(revoked), x509.ReasonFlags(reason)),
        replaces,
        as_time(made),
        _time_or_none(removed),
    )


def request_of(row: Sequence[Any]) -> RequestRecord:
    """A row of REQUEST."""
    number, der, sha256, requester, issuer, profile, key, status, reason, certificate, made, decided = row
    return RequestRecord(
        number,
        der,
        sha256,
        requester,
        issuer,
        CertificateProfile(profile),
        key,
        RequestStatus(status),
        reason,
        certificate,
        as_time(made),
        _time_or_none(decided),
    )


def crl_of(row: Sequence[Any]) -> CrlRecord:
    """A row of CRL."""
    number, der, sha256, issuer, crl_number, this_update, next_update = row
    return CrlRecord(number, der, sha256, issuer, int(crl_number, 16), as_time(this_update), as_time(next_update))


def trust_of(row: Sequence[Any]) -> TrustRecord:
    """A row of TRUST."""
    number, state, certificate, kind, since, confirmed, withdrawn = row
    return TrustRecord(number, state, certificate, TrustKind(kind), as_time(since), confirmed, _time_or_none(withdrawn))


def bundle_of(row: Sequence[Any]) -> BundleRecord:
    """A row of BUNDLE."""
    number, importer, subject, sequence, made, next_update, sha256, signer, trusted = row
    return BundleRecord(
        number,
        importer,
        subject,
        sequence,
        as_time(made),
        as_time(next_update),
        sha256,
        signer,
        tuple(trusted.split()),
    )


def handover_of(row: Sequence[Any]) -> HandoverRecord:
    """A row of HANDOVER."""
    number, at, sender, receiver, item, sha256 = row
    return HandoverRecord(number, as_time(at), sender, receiver, Item(item), sha256)


def proof_of(row: Sequence[Any]) -> ProofRecord:
    """A row of PROOF."""
    number, at, client, server, client_certificate, server_certificate, detail = row
    return ProofRecord(number, as_time(at), client, server, client_certificate, server_certificate, detail)


def rotation_of(row: Sequence[Any]) -> RotationRecord:
    """A row of ROTATION."""
    number, certificate, successor, status, overlap_days, begun, switched, ended, peers, confirmed = row
    return RotationRecord(
        number,
        certificate,
        successor,
        RotationStatus(status),
        overlap_days,
        as_time(begun),
        _time_or_none(switched),
        _time_or_none(ended),
        _ids(peers),
        _ids(confirmed),
    )


def identity_of(row: Sequence[Any]) -> IdentityRecord:
    """A row of IDENTITY."""
    return IdentityRecord(*row)


def audit_of(row: Sequence[Any]) -> AuditRecord:
    """A row of AUDIT."""
    number, at, who, what, subject, fingerprint, detail = row
    return AuditRecord(number, as_time(at), who, what, subject, fingerprint, detail)


def _ids(text: str | None) -> tuple[int, ...]:
    return () if text is None else tuple(sorted(int(part) for part in text.split(",")))
