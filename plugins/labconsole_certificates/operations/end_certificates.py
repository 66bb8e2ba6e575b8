"""The paper's title taken literally: a self-signed end certificate, which others pin by its fingerprint."""

from __future__ import annotations

from collections.abc import Sequence

from labconsole.security.pki.store import PkiStore

from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.secrets import Prompt
from labconsole.security.x509.profiles import CertificateProfile
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.requests import END_DAYS

WARNING = (
    "A self-signed certificate has no CA: it cannot be revoked, and each peer must pin it anew when it is replaced."
)


def make_self_signed(
    store: PkiStore,
    state: State,
    new: NewKey,
    profile: CertificateProfile,
    *,
    subject: str,
    names: Sequence[str] = (),
    days: int = END_DAYS,
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """Make a key pair and an end certificate that it signs itself. Raises TrialError; nothing changed."""
    raise NotImplementedError
