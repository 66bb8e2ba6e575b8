"""A CA that is about to sign: its certificate, chain and opened key; and the look at what it has signed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from labconsole.errors import UserError
from labconsole.security.pki import keys
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.secrets import Prompt
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validation.validator import validate
from labconsole_certificates.operations.record_lookup import key_of, must_hold, must_issue


@contextmanager
def opened_issuer(
    directory: Path, snapshot: Snapshot, authority: CertificateRecord, prompt: Prompt | None
) -> Iterator[Issuer]:
    """The CA with its private key, while the context is open. `directory` is that of the certificate database.

    Raises UserError: it is no CA, expired, revoked or removed, or so is a CA above it; its key does not open.
    """
    now = datetime.now(UTC)
    must_issue(snapshot, authority, now)
    chain = snapshot.chain_of(authority)
    for above in chain:
        must_hold(above, now)
    with keys.opened_key(directory, key_of(snapshot, authority), prompt) as private:
        yield Issuer(authority.certificate, private, tuple(above.certificate for above in chain))


def must_be_accepted(certificate: x509.Certificate, issuer: Issuer) -> None:
    """Look at what `issuer` has signed as those will who get it. Raises UserError: they would refuse it, and why.

    Path validation (RFC 5280, 6) is what knows name constraints of all CAs above.
    """
    *intermediates, root = (issuer.certificate, *issuer.chain)
    judgement = validate(certificate, intermediates, [root], at=datetime.now(UTC))
    if not judgement.accepted:
        name = short_name(issuer.certificate)
        raise UserError(f"Nothing was issued, since peers would refuse what {name} certifies so: {judgement.why}")
