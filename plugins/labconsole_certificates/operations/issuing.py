"""CAs of the database that issue: opened with their key, names for certificates, and validation of the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from labconsole.errors import BadInput, UserError
from labconsole.security.pki import keys
from labconsole.security.pki.domains import refusal
from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.secrets import Prompt
from labconsole.security.x509.certificate_profiles import TEXTS, CertificateProfile
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.names import (
    general_name_from_text,
    name_constraint_from_text,
    name_from_text,
    name_of,
    short_name,
)
from labconsole.security.x509.validation.validator import validate
from labconsole_certificates.operations.record_lookup import key_of, must_be_valid, must_issue


@contextmanager
def opened_issuer(
    directory: Path, snapshot: Snapshot, authority: CertificateRecord, prompt: Prompt | None
) -> Iterator[Issuer]:
    """The CA with its private key, while the context is open. `directory` is that of the certificate database.

    Raises UserError: it is not a CA, expired, revoked or removed, or so is a CA above it; its key does not open.
    """
    now = datetime.now(UTC)
    must_issue(snapshot, authority, now)
    chain = snapshot.chain_of(authority)
    for above in chain:
        must_be_valid(above, now)
    with keys.opened_key(directory, key_of(snapshot, authority), prompt) as private:
        yield Issuer(authority.certificate, private, tuple(above.certificate for above in chain))


def must_be_accepted(certificate: x509.Certificate, issuer: Issuer) -> None:
    """Validate an issued certificate as its recipients will. Raises UserError: they would refuse it, and why.

    Only path validation (RFC 5280, 6) covers name constraints of all CAs above.
    """
    *intermediates, root = (issuer.certificate, *issuer.chain)
    judgement = validate(certificate, intermediates, [root], at=datetime.now(UTC))
    if not judgement.accepted:
        name = short_name(issuer.certificate)
        raise UserError(f"Nothing was issued, since peers would refuse what {name} certifies so: {judgement.why}")


def subject_of(state: State, profile: CertificateProfile, text: str) -> x509.Name:
    """The subject in `text` (RFC 4514); empty: `CN=<State> <profile>,O=<State>`. Raises BadInput."""
    if text.strip():
        return name_from_text(text)
    return name_of(("O", state.name), ("CN", f"{state.name} {TEXTS[profile].title}"))


def alternative_names(texts: Sequence[str]) -> tuple[x509.GeneralName, ...]:
    """Subject alternative names (RFC 5280, 4.2.1.6). Raises BadInput."""
    return tuple(general_name_from_text(text) for text in texts)


def server_host(state: State) -> str:
    """The proposed host name for the server of `state`, within its domain."""
    return f"swim.{state.domain.split()[0]}" if state.domain else "localhost"


def must_be_within(state: State, names: Sequence[x509.GeneralName]) -> None:
    """Raises BadInput: one of the names is outside the domain of `state`."""
    refused = refusal(state, names)
    if refused:
        raise BadInput(refused)


def constraints(texts: Sequence[str]) -> tuple[x509.GeneralName, ...]:
    """Permitted subtrees of name constraints (RFC 5280, 4.2.1.10). Raises BadInput."""
    return tuple(name_constraint_from_text(text) for text in texts)
