"""CRLs of this console's CAs that are about to expire, and renewal of those that need no passphrase."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from labconsole.errors import UserError
from labconsole.security.pki.keys import key_secret
from labconsole.security.pki.records import CertificateRecord, CrlRecord, FileKey, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.record_lookup import authorities_of
from labconsole_certificates.revocation.crl_operations import publish_crl, signed_crl


@dataclass(frozen=True)
class DueCrl:
    """The newest CRL of a CA that can sign the next one here, in the last third of its time or after it."""

    authority: CertificateRecord
    crl: CrlRecord
    expired: bool
    days_left: int

    @property
    def days(self) -> int:
        """Days from its publication to its end."""
        return max(1, (self.crl.next_update - self.crl.this_update).days)

    def sentence(self) -> str:
        """For the operator: its end of validity, and the remedy."""
        name, until = short_name(self.authority.certificate), f"{self.crl.next_update:%Y-%m-%d %H:%M} UTC"
        if self.expired:
            return f"The CRL of {name} expired on {until}: peers refuse all that it issued. Publish the next one."
        return f"The CRL of {name} expires on {until}, in {self.days_left} days: publish the next one before."


def due_crls(snapshot: Snapshot, at: datetime, state: State | None = None) -> tuple[DueCrl, ...]:
    """The CRLs due at `at` (aware) of one State of this console, or of all; the most urgent first.

    A CRL belongs to a name (RFC 5280, 5): of a CA whose key was replaced the newest one counts.
    """
    states = [one for one in snapshot.states if one.local and state in (None, one)]
    found = []
    for one in states:
        seen = set()
        for authority in authorities_of(snapshot, one, at):
            name = authority.certificate.subject
            crl = _newest(snapshot, one, authority)
            if crl is not None and name not in seen and crl.renewal <= at:
                found.append(DueCrl(authority, crl, crl.next_update < at, (crl.next_update - at).days))
            seen.add(name)
    return tuple(sorted(found, key=lambda due: due.crl.next_update))


def renew_crls(store: PkiStore, state: State | None = None, opened: Issuer | None = None) -> tuple[CrlRecord, ...]:
    """Publish the due CRLs that need no prompt: with the opened CA `opened`, or a key whose passphrase is kept.

    It never prompts, and never opens a key in a token: a refused PIN may lock it. CRLs that cannot be renewed remain
    due. Raises StoreError.
    """
    renewed = []
    for due in due_crls(store.snapshot(), datetime.now(UTC), state):
        if opened is not None and opened.certificate == due.authority.certificate:
            renewed.append(signed_crl(store, due.authority, opened, due.days))
        elif _opens_unasked(store, due.authority):
            with suppress(UserError):  # key file missing, or another passphrase: it remains due
                renewed.append(publish_crl(store, due.authority, days=due.days))
    return tuple(renewed)


def _newest(snapshot: Snapshot, state: State, authority: CertificateRecord) -> CrlRecord | None:
    name = authority.certificate.subject
    same = {one.id for one in snapshot.certificates if one.state == state.id and one.certificate.subject == name}
    return max((crl for crl in snapshot.newest_crls if crl.issuer in same), key=lambda crl: crl.age, default=None)


def _opens_unasked(store: PkiStore, authority: CertificateRecord) -> bool:
    key = store.snapshot().key_by_id[authority.key] if authority.key is not None else None
    if key is None or not isinstance(key.place, FileKey):
        return False
    return not key_secret(store.directory, key).source.must_be_asked()
