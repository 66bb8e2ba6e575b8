"""Which of the known CRLs count for what a State trusts: older ones, and those of a CA of the same name, do not."""

from __future__ import annotations

from collections.abc import Collection

from cryptography import x509

from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.snapshot import Snapshot


def crls_under(
    snapshot: Snapshot, trusted: Collection[CertificateRecord]
) -> tuple[x509.CertificateRevocationList, ...]:
    """The newest CRLs (one of each scope) of all CAs whose key leads to one of the CAs `trusted`.

    A path validation finds CRLs by the name of the CA alone (RFC 5280, 6.3.3): with the CRL of an untrusted CA that has
    the name of a trusted one, it would refuse the certificates of the trusted CA.
    """
    anchors = {record.name_and_key for record in trusted}
    speaking = {
        issuer: _leads_to(snapshot, snapshot.certificate_by_id[issuer], anchors)
        for issuer in {record.issuer for record in snapshot.crls}
    }
    return tuple(record.crl for record in snapshot.newest_crls if speaking[record.issuer])


def _leads_to(snapshot: Snapshot, authority: CertificateRecord, anchors: set[tuple[bytes, str]]) -> bool:
    """Whether the name and key of `authority` is one of `anchors`, or was certified below one; by a link, too."""
    seen: set[tuple[bytes, str]] = set()
    newly = {authority.name_and_key}
    while newly and not newly & anchors:
        seen |= newly
        certified = [record for each in newly for record in snapshot.authorities_called(*each)]
        newly = {issuer.name_and_key for record in certified for issuer in snapshot.issuers_of(record)} - seen
    return bool(newly)
