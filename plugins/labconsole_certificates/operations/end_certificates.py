"""The paper's title taken literally: a self-signed end certificate, which others pin by its fingerprint."""

from __future__ import annotations

from collections.abc import Sequence

from labconsole.security.pki.records import CertificateRecord, Origin, State
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt
from labconsole.security.x509.issuing import make_self_signed as self_signed
from labconsole.security.x509.profiles import TEXTS, CertificateProfile
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.new_keys import NewKey, made_key
from labconsole_certificates.operations.references import must_be_local
from labconsole_certificates.operations.requests import END_DAYS
from labconsole_certificates.operations.subjects import alternative_names, must_be_within, subject_of

WARNING = (
    "A self-signed certificate has no CA: it cannot be revoked, and each peer must pin it anew when it is replaced."
)


def make_self_signed(
    store: PkiStore,
    state: State,
    new: NewKey,
    profile: CertificateProfile,
    *,
    subject: str = "",
    names: Sequence[str] = (),
    days: int = END_DAYS,
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """Make a key pair and an end certificate that it signs itself. Raises UserError; nothing changed."""
    must_be_local(state)
    name, alternatives = subject_of(state, profile, subject), alternative_names(names)
    must_be_within(state, alternatives)
    validity = Validity.for_days(days)
    with made_key(store.directory, new, f"{state.name} {TEXTS[profile].title}", prompt) as key:
        certificate = self_signed(key.private, name, alternatives, profile, validity)
        with store.change() as change:
            key.record(change, state)
            return change.add_certificate(certificate, state=state.id, profile=profile, origin=Origin.SELF_SIGNED)
