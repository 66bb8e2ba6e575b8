"""The certificates that two States use towards each other, as client and as server, and their revocation."""

from __future__ import annotations

from labconsole.security.pki.records import CertificateRecord, RequestRecord, State, TrustKind
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import CertificateProfile

CLIENT_PROFILES = frozenset({CertificateProfile.TLS_CLIENT, CertificateProfile.STATE})
"""Profiles with which a State connects to another one's broker."""
SERVER_PROFILES = frozenset({CertificateProfile.TLS_SERVER})


def revoked_certificate(
    snapshot: Snapshot, owner: State, issuer: State, profiles: frozenset[CertificateProfile]
) -> CertificateRecord | None:
    """The newest certificate of `owner` by a CA of `issuer` that was revoked, here or by a CRL of its CA."""
    return next(
        (
            each
            for each in reversed(snapshot.certificates)
            if each.state == owner.id
            and each.profile in profiles
            and each.removed is None
            and revocation(snapshot, each)
            and any(above.state == issuer.id for above in snapshot.chain_of(each))
        ),
        None,
    )


def newest_request(snapshot: Snapshot, client: State, server: State) -> RequestRecord | None:
    """The last request of `client` for a client's certificate by the CA of `server`, unless that was revoked since."""
    asked = (
        each
        for each in reversed(snapshot.requests)
        if (each.requester, each.issuer) == (client.id, server.id)
        and each.profile in CLIENT_PROFILES
        and (each.certificate is None or _is_valid(snapshot, snapshot.certificate_by_id[each.certificate]))
    )
    return next(asked, None)


def client_certificate(snapshot: Snapshot, client: State, server: State) -> CertificateRecord | None:
    """The newest certificate with which `client` connects to `server`: by a CA of `server`, or pinned there."""
    pinned = set(snapshot.trusted_by(server.id, TrustKind.PIN))
    return next(
        (
            each
            for each in _of(snapshot, client, CLIENT_PROFILES)
            if each in pinned or any(above.state == server.id for above in snapshot.chain_of(each))
        ),
        None,
    )


def server_certificate(snapshot: Snapshot, server: State, client: State) -> CertificateRecord | None:
    """The newest certificate with which `server` answers `client`: by its own root, or one trusted there, or pinned."""
    pinned = set(snapshot.trusted_by(client.id, TrustKind.PIN))
    roots = {*snapshot.roots_of(server.id), *snapshot.trusted_by(client.id, TrustKind.ROOT)}
    return next(
        (
            each
            for each in _of(snapshot, server, SERVER_PROFILES)
            if each in pinned or roots.intersection(snapshot.chain_of(each)[-1:])
        ),
        None,
    )


def _of(snapshot: Snapshot, state: State, profiles: frozenset[CertificateProfile]) -> list[CertificateRecord]:
    """Certificates of `state`, newest first; of a local State those whose key is stored here."""
    return [
        each
        for each in reversed(snapshot.certificates)
        if each.state == state.id
        and each.profile in profiles
        and _is_valid(snapshot, each)
        and (each.key is not None or not state.local)
    ]


def _is_valid(snapshot: Snapshot, record: CertificateRecord) -> bool:
    """Whether it is neither removed nor revoked, here or by a CRL of its CA."""
    return record.removed is None and not revocation(snapshot, record)


def revocation(snapshot: Snapshot, record: CertificateRecord) -> str:
    """When a certificate was revoked, as in "2026-11-22 10:00 UTC", here or by a CRL of its CA; empty if it was not."""
    if record.revoked is not None:
        return f"{record.revoked.at:%Y-%m-%d %H:%M} UTC"
    issuers = {issuer.id for issuer in snapshot.issuers_of(record)}
    serial = record.certificate.serial_number
    for crl in snapshot.newest_crls:
        entry = crl.crl.get_revoked_certificate_by_serial_number(serial) if crl.issuer in issuers else None
        if entry is not None:
            return f"{entry.revocation_date_utc:%Y-%m-%d %H:%M} UTC"
    return ""
