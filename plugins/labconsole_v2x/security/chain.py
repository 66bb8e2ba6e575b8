"""Validation of a certificate against its issuer's chain: signature, validity, region and permissions nest.

IEEE 1609.2, 5.1.2 (consistency of certificates) and 5.3.1 (signature); TS 103 097, clause 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from labconsole_v2x.security.issuing import CERTIFICATE_REQUEST_PSID
from labconsole_v2x.security.keys import integers, signature_digest
from labconsole_v2x.security.regions import unproven_inside
from labconsole_v2x.security.structures import (
    Certificate,
    IssuePermission,
    Permission,
    PermissionRange,
    Region,
)

DigestVerifier = Callable[[bytes, bytes, bytes], bool]
"""Verifies r and s (`keys.integers`) as a signature of a digest, with one public key, which it holds loaded."""


class ChainReason(StrEnum):
    """Why a certificate is refused."""

    ISSUER = "issuer does not fit"
    SIGNATURE = "signature invalid"
    VALIDITY = "validity exceeds the issuer's"
    REGION = "region is not proven to be inside the issuer's"
    PERMISSIONS = "permissions exceed the issuer's"
    KEY = "public key is not a point of its curve"
    COLLISION = "another certificate has the same HashedId8"
    REVOKED = "revoked, or deleted from a trust list"


@dataclass(frozen=True, slots=True)
class ChainFault:
    """Why a certificate is refused, and what exactly differs."""

    reason: ChainReason
    detail: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


def root_fault(certificate: Certificate, verify: DigestVerifier) -> ChainFault | None:
    """Return why a certificate is not a sound root: self-signed, may issue, and its signature is valid."""
    if certificate.issuer is None and not certificate.issue_permissions:
        return ChainFault(ChainReason.PERMISSIONS, "the certificate may not issue certificates")
    return self_signature_fault(certificate, verify)


def self_signature_fault(certificate: Certificate, verify: DigestVerifier) -> ChainFault | None:
    """Return why a certificate is not self-signed with a valid signature."""
    if certificate.issuer is not None:
        return ChainFault(ChainReason.ISSUER, "the certificate is not self-signed")
    return _signature_fault(certificate, certificate, b"", verify)


def link_fault(certificate: Certificate, issuers: Sequence[Certificate], verify: DigestVerifier) -> ChainFault | None:
    """Return why a certificate is refused under its issuer; cheap checks first, the signature last.

    `issuers`: the issuer's validated chain, from the issuer to the root; `verify` holds the issuer's key.
    """
    issuer = issuers[0]
    if certificate.issuer != issuer.hashed_id8 or certificate.issuer_hash != issuer.verification_key.curve.hash_name:
        return ChainFault(ChainReason.ISSUER, f"its issuer is not {issuer.name or issuer.hashed_id8.hex()}")
    inner, outer = certificate.validity, issuer.validity
    if not outer.start_s <= inner.start_s < inner.end_s <= outer.end_s:
        detail = f"{inner.start_s} s to {inner.end_s} s under {outer.start_s} s to {outer.end_s} s"
        return ChainFault(ChainReason.VALIDITY, detail)
    region = effective_region(issuers)
    if certificate.region is not None and region is not None and (why := unproven_inside(certificate.region, region)):
        return ChainFault(ChainReason.REGION, why)
    if excess := permissions_fault(certificate, issuer):
        return ChainFault(ChainReason.PERMISSIONS, excess)
    return _signature_fault(certificate, issuer, issuer.canonical, verify)


def effective_region(chain: Iterable[Certificate]) -> Region | None:
    """Return the region of the first certificate of a chain: one without a region has its issuer's."""
    return next((certificate.region for certificate in chain if certificate.region is not None), None)


def permissions_fault(certificate: Certificate, issuer: Certificate) -> str | None:
    """Return which permission of a certificate its issuer must not grant (IEEE 1609.2, 5.1.2.4)."""
    for permission in certificate.permissions:
        if not any(_grants(group, permission) for group in issuer.issue_permissions):
            return f"application permission for ITS-AID {permission.psid}"
    for kind, groups in (("issue", certificate.issue_permissions), ("request", certificate.request_permissions)):
        for group in groups:
            excess = _excess(group, issuer, compare_length=kind == "issue")
            if excess is not None:
                return f"{kind} permission for {excess}"
    return None


def _grants(group: IssuePermission, permission: Permission) -> bool:
    """Return whether a group permits a certificate directly below to have an application permission.

    A group for enrolment only permits certificate requests: those of an enrolment credential (TS 103 097, 7.2.2).
    """
    kind = group.application or (group.enrolment and permission.psid == CERTIFICATE_REQUEST_PSID)
    if not (kind and _covers_length(group, 1, 1)):
        return False
    return group.ranges is None or any(_range_grants(allowed, permission) for allowed in group.ranges)


def _range_grants(allowed: PermissionRange, permission: Permission) -> bool:
    if allowed.psid != permission.psid:
        return False
    value, mask, ssp = allowed.bitmap_value, allowed.bitmap_mask, permission.ssp
    if value is None or mask is None:
        return True
    if ssp is None or not permission.bitmap or not len(ssp) == len(value) == len(mask):
        return False
    return all((s ^ v) & m == 0 for s, v, m in zip(ssp, value, mask, strict=True))


def _excess(group: IssuePermission, issuer: Certificate, *, compare_length: bool) -> str | None:
    """Return which part of a group none of the issuer's groups covers; None where all is covered."""
    low = group.min_chain + 1
    high = None if group.chain_range < 0 else low + group.chain_range
    wide = [
        outer
        for outer in issuer.issue_permissions
        if (outer.application or not group.application)
        and (outer.enrolment or not group.enrolment)
        and (not compare_length or _covers_length(outer, low, high))
    ]
    if group.ranges is None:
        return None if any(outer.ranges is None for outer in wide) else "all ITS-AIDs"
    for narrow in group.ranges:
        if not any(outer.ranges is None or any(_range_inside(narrow, r) for r in outer.ranges) for outer in wide):
            return f"ITS-AID {narrow.psid}"
    return None


def _covers_length(group: IssuePermission, low: int, high: int | None) -> bool:
    """Return whether a group permits every chain of `low` to `high` certificates below it; None is without limit."""
    if low < group.min_chain:
        return False
    return group.chain_range < 0 or (high is not None and high <= group.min_chain + group.chain_range)


def _range_inside(narrow: PermissionRange, wide: PermissionRange) -> bool:
    """Return whether each SSP of `narrow` is one of `wide`: what `wide` fixes, `narrow` fixes to the same value."""
    if narrow.psid != wide.psid:
        return False
    if wide.bitmap_value is None or wide.bitmap_mask is None:
        return True
    if narrow.bitmap_value is None or narrow.bitmap_mask is None:
        return False
    if not len(narrow.bitmap_value) == len(narrow.bitmap_mask) == len(wide.bitmap_value) == len(wide.bitmap_mask):
        return False
    bits = zip(narrow.bitmap_value, narrow.bitmap_mask, wide.bitmap_value, wide.bitmap_mask, strict=True)
    return all(wm & ~nm == 0 and (nv ^ wv) & wm == 0 for nv, nm, wv, wm in bits)


def _signature_fault(
    certificate: Certificate, signer: Certificate, signer_canonical: bytes, verify: DigestVerifier
) -> ChainFault | None:
    """Check the signature: hash and curve are those of the signer's key."""
    curve = signer.verification_key.curve
    if certificate.signature.curve is not curve:
        detail = f"it has {certificate.signature.curve.title}, the issuer's key {curve.title}"
        return ChainFault(ChainReason.SIGNATURE, detail)
    tbs = certificate.canonical[slice(*certificate.tbs)]
    if not verify(*integers(certificate.signature), signature_digest(curve.hash_name, tbs, signer_canonical)):
        return ChainFault(ChainReason.SIGNATURE, "it does not verify with the issuer's key")
    return None
