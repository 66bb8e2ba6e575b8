"""Inspects a trust bundle before its import: its content, and what the operator must confirm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from cryptography import x509

from labconsole.security.pki.domains import claim_question
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509 import cms, parsing
from labconsole.security.x509.fingerprints import fingerprint
from labconsole_certificates.operations.record_lookup import local_state_named
from labconsole_certificates.trust.bundle_checks import anchors, check_content, subject_of
from labconsole_certificates.trust.bundle_format import BundleContent, decode


@dataclass(frozen=True)
class BundleInspection:
    """A consistent bundle. Its signature is its signer's; whether that is the State is not checked yet."""

    content: BundleContent
    signer: x509.Certificate
    sha256: str
    """SHA-256 of the content (hex)."""
    signature_algorithm: str

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the signer's certificate, for comparison out of band."""
        return fingerprint(self.signer)


def inspect_bundle(data: bytes) -> BundleInspection:
    """The content of the bundle `data` (DER or PEM). Raises BadInput: it is malformed, damaged, or inconsistent."""
    parsing.check_kind(data, parsing.ContentKind.CMS)
    message = cms.verify(data)
    content = decode(message.content)
    check_content(content, message.signer)
    return BundleInspection(content, message.signer, fingerprint(message.content), message.signature_algorithm)


def domain_question(snapshot: Snapshot, inspection: BundleInspection, *, first: bool) -> str:
    """What the operator must confirm about the domain in the bundle of another console's State; empty: nothing.

    `first`: its fingerprint is typed (`must_be_confirmed`), which confirms the first domain that it claims, too.
    """
    content, subject = inspection.content, subject_of(snapshot, inspection.content)
    if subject is not None and subject.local:
        return ""
    if first and subject is not None and not subject.domain:
        subject = replace(subject, domain=content.domain)
    return claim_question(snapshot, subject, content.state, content.domain)


def must_be_confirmed(snapshot: Snapshot, importer: str, inspection: BundleInspection) -> bool:
    """Whether `importer` trusts no root of the State of `inspection`, another one: its fingerprint has to be typed.

    Raises UserError: there is no State `importer`, or it is another console's.
    """
    importing_state, subject = local_state_named(snapshot, importer), subject_of(snapshot, inspection.content)
    return subject != importing_state and not anchors(snapshot, importing_state, subject, datetime.now(UTC))
