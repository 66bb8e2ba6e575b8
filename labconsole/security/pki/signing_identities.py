"""Named identities as signers of files: CMS by their keys, and what is known of the signer of a received file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from labconsole.errors import UserError
from labconsole.security.certificate_status import Status, StatusKind, status_of_received
from labconsole.security.pki.identities import NamedIdentities
from labconsole.security.pki.keys import key_secret, opened_key
from labconsole.security.pki.records import CertificateRecord, KeyRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509 import cms
from labconsole.security.x509.certificate_profiles import signature_problem
from labconsole.security.x509.fingerprints import fingerprint, short_fingerprint
from labconsole.security.x509.names import short_name

_GOOD = frozenset({StatusKind.VALID, StatusKind.EXPIRING})


@dataclass(frozen=True)
class SigningIdentity:
    """A named identity whose key signs files: its certificate is valid, and allows signatures."""

    name: str
    state: State
    record: CertificateRecord
    chain: tuple[x509.Certificate, ...]
    """The intermediates that go with the certificate."""
    key: KeyRecord
    directory: Path

    @property
    def secret(self) -> SecretRequest:
        """The passphrase or PIN of its key. Raises UserError: there is no such token."""
        return key_secret(self.directory, self.key)

    def sign(self, content: bytes, what: str, prompt: Prompt | None = None) -> bytes:
        """DER of CMS SignedData over `content`; the audit list notes `what` was signed. Raises UserError."""
        with opened_key(self.directory, self.key, prompt) as key:
            signed = cms.sign(content, self.record.certificate, key, chain=self.chain)
        with PkiStore.open(self.directory) as store, store.change() as change:
            change.note(f"signed {what}", self.name, self.record.sha256)
        return signed


def signing_identity(name: str, directory: Path | None = None) -> SigningIdentity:
    """The identity `name` of the database in `directory` (the user's own where none is named), to sign files with.

    Raises UserError: there is none, its certificate is of no use or not for signatures, or its key is elsewhere.
    """
    identities = NamedIdentities(directory)
    identity, snapshot = identities.usable(name), identities.snapshot
    record = snapshot.certificate_by_id[identity.certificate]
    if record.key is None:
        raise UserError(f"The key of the identity {name} is not on this console: choose another identity.")
    if problem := signature_problem(record.certificate):
        raise UserError(f"The certificate of the identity {name} {problem}: choose one for message signing.")
    chain = tuple(one.certificate for one in snapshot.presented_chain(record, datetime.now(UTC)))
    state, key = snapshot.state_by_id[identity.state], snapshot.key_by_id[record.key]
    return SigningIdentity(name, state, record, chain, key, identities.directory)


@dataclass(frozen=True)
class Signer:
    """The signer of a received file, as a State of this console judges it."""

    name: str
    """Of its certificate; safe to show."""
    fingerprint: str
    state: State | None
    """The State whose CA certified it, by its name on this console; None where that is not known."""
    status: Status
    signed: datetime | None
    """Signing time by the signer."""

    @property
    def trusted(self) -> bool:
        """Whether its certificate is valid, not revoked, and leads to a trusted root."""
        return self.status.kind in _GOOD

    @property
    def title(self) -> str:
        """Whose signature it is, for sentences."""
        return f"{self.name} of {self.state.name}" if self.state is not None else f"{self.name} of an unknown State"

    @property
    def sentence(self) -> str:
        """Who signed, whether that is trusted here, the certificate's short fingerprint, and the cause."""
        verdict = "trusted here" if self.trusted else f"not trusted here ({self.status.kind.value.replace('-', ' ')})"
        return f"Signed by {self.title}, {verdict}: {short_fingerprint(self.fingerprint)}. {self.status.cause}"


def signer_of(message: cms.SignedMessage, snapshot: Snapshot, observer: int | None = None) -> Signer:
    """The signer of a message whose signature is verified, judged now by State `observer`, or by any local State."""
    certificate = message.signer
    status, state = status_of_received(certificate, message.certificates, snapshot, datetime.now(UTC), observer)
    problem = signature_problem(certificate)
    if problem and status.kind in _GOOD:
        status = Status(StatusKind.UNTRUSTED, f"Its certificate {problem}.")
    return Signer(short_name(certificate), fingerprint(certificate), state, status, message.signing_time)
