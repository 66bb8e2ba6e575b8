"""The built-in identities of the State "Lab": a CA, State A, State B and a broker, created on first use.

State A and State B get further identities for messages, with keys of other types or in the built-in token, when a run
first needs them.

Key files are written first and their rows by one change under a lock: two processes create one set, and one killed
in the middle leaves nothing that is used. A set that is no longer usable (expired, revoked, a key or the secret
missing) is replaced by a new one, which gets the names; the old certificates are hidden, and their files stay, since a
run may still use them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from labconsole.errors import UserError
from labconsole.paths import pki_dir
from labconsole.security.identities import IdentityFiles, LoadedIdentity, TokenIdentity, load_identity, validity_problem
from labconsole.security.pki.identities import NamedIdentities, files_of
from labconsole.security.pki.keys import MadeKey, keys_directory, make_key, opened_key, own_passphrase
from labconsole.security.pki.own_certificates import add_with_key, creating_alone, state_called
from labconsole.security.pki.records import CertificateRecord, FileKey, IdentityRecord, TokenKey
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.private_files import read_private
from labconsole.security.token.configuration import LAB
from labconsole.security.token.errors import TokenError
from labconsole.security.token.mechanisms import KeyKind
from labconsole.security.token.named_tokens import find_configuration
from labconsole.security.token.remote_private_key import opened_new_token_key, opened_token_key
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import Issuer, issue, issue_lab_root, lab_name
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validity import Validity
from labconsole.store.errors import MissingDatabaseError

if TYPE_CHECKING:
    from labconsole.security.pki.change import Change

STATE = "Lab"
"""State of the certificate database that they belong to."""
STATE_A = "state-a"
STATE_B = "state-b"
BROKER = "broker"

_AUTHORITY = "lab-ca"
_PROFILES = {
    STATE_A: CertificateProfile.STATE,
    STATE_B: CertificateProfile.STATE,
    BROKER: CertificateProfile.TLS_SERVER,
}
LAB_KEY_TYPE = KeyType.RSA_2048
"""As in the source's tool; the paper itself names no algorithm."""
_DOMAIN = "lab.test"  # reserved for tests by RFC 6761
LAB_SERVER = "localhost"
"""The name that the certificate of BROKER has for any client."""
THIS_MACHINE = (
    x509.DNSName(LAB_SERVER),
    x509.IPAddress(ip_address("127.0.0.1")),
    x509.IPAddress(ip_address("::1")),
)
"""Names of a server that only clients of this machine reach."""
_IDENTITY_DAYS = 365
_LONGEST_RUN = timedelta(days=1)
_LOCK = ".lab.lock"


@dataclass(frozen=True)
class LabIdentities:
    """A complete set. `notes` tell the operator what was created, why, and where the passphrase is stored."""

    by_name: Mapping[str, IdentityFiles]
    authority_file: Path
    """PEM file with the lab CA's certificate."""
    notes: tuple[str, ...] = ()

    def files(self, name: str) -> IdentityFiles:
        """The files of identity `name` (STATE_A, STATE_B, BROKER), for the process that loads them.

        Raises:
            UserError: there is no such lab identity.
        """
        if name not in self.by_name:
            raise UserError(f"There is no lab identity {name}: choose one of {', '.join(self.by_name)}.")
        return self.by_name[name]

    def identity(self, name: str) -> LoadedIdentity:
        """Load identity `name`. Raises UserError."""
        return load_identity(self.files(name), name)


def lab_identities(directory: Path | None = None) -> LabIdentities:
    """The lab identities in the certificate database of `directory` (default: the user's own).

    They are created unless a usable set exists (about 0.5 s). Never prompts.

    Raises:
        UserError: they cannot be created, or another process that creates them does not finish.
    """
    directory = directory or pki_dir()
    with creating_alone(directory, _LOCK, "lab identities"):
        return _found_or_created(directory)


def lab_message_identity(holder: str, type: KeyType, directory: Path | None = None) -> IdentityFiles:
    """The lab identity of STATE_A or STATE_B for messages, with a key of this type, under the same name and CA.

    It is created unless a usable one exists. Never prompts.

    Raises:
        UserError: as `lab_identities`.
    """
    directory = directory or pki_dir()

    def is_usable(snapshot: Snapshot, identity: IdentityRecord) -> bool:
        record = snapshot.certificate_by_id[identity.certificate]
        return not _problem_of([record], [files_of(identity, snapshot, directory)])

    def new_key(name: str) -> MadeKey:
        return make_key(directory, type, *own_passphrase(directory))

    name = f"{holder}-{type.value}"
    with _creating_for_messages(directory, holder):
        return files_of(*_found_or_created_for_messages(directory, holder, name, is_usable, new_key), directory)


def lab_token_identity(holder: str, type: KeyType, directory: Path | None = None) -> TokenIdentity:
    """The lab identity of STATE_A or STATE_B whose key of this type signs messages in the token `lab`.

    It has the same name and CA, and is created unless a usable one exists, with the token where there is none. Never
    prompts. Takes half a second: whether the token has the key is tried.

    Raises:
        UserError: as `lab_identities`; SoftHSM2 is not there, or the token refuses. ValueError: tokens have no keys of
            this type.
    """
    directory, kind = directory or pki_dir(), KeyKind(type.value)
    pin = find_configuration(LAB).pin_request(LAB).resolve()

    def is_usable(snapshot: Snapshot, identity: IdentityRecord) -> bool:
        record = snapshot.certificate_by_id[identity.certificate]
        place = snapshot.key_by_id[record.key].place if record.key is not None else None
        if not isinstance(place, TokenKey) or _problem_of([record], []):
            return False
        with suppress(TokenError), opened_token_key(place.token, place.label, pin) as key:
            return key.public_key() == record.certificate.public_key()
        return False

    def new_key(name: str) -> MadeKey:
        label = f"{name} {token_hex(4)}"
        with opened_new_token_key(LAB, label, kind, pin) as private:
            return MadeKey(TokenKey(LAB, label), private)

    name = f"{holder}-{type.value}-token"
    with _creating_for_messages(directory, holder):
        _found_or_created_for_messages(directory, holder, name, is_usable, new_key)
        found = NamedIdentities(directory).token_identity(name)
    assert found is not None
    return found


@contextmanager
def _creating_for_messages(directory: Path, holder: str) -> Iterator[None]:
    """The lab identities exist, and no other process creates one in the block. Raises UserError."""
    lab_identities(directory)
    with creating_alone(directory, _LOCK, f"message identity of {holder}"):
        yield


def _found_or_created_for_messages(
    directory: Path,
    holder: str,
    name: str,
    is_usable: Callable[[Snapshot, IdentityRecord], bool],
    new_key: Callable[[str], MadeKey],
) -> tuple[IdentityRecord, Snapshot]:
    """The message identity `name` in `directory`, of the current CA, and the database with it.

    The caller has the lock. Raises UserError, OSError.
    """
    from labconsole.security.pki.store import PkiStore

    snapshot = _snapshot(directory)
    (holders,) = (one for one in _named(snapshot) if one.name == holder)
    *_, root = snapshot.chain_of(snapshot.certificate_by_id[holders.certificate])
    of_lab = [one for one in snapshot.identities if (one.state, one.name) == (holders.state, name)]
    for identity in of_lab:
        record = snapshot.certificate_by_id[identity.certificate]
        if root in snapshot.chain_of(record) and is_usable(snapshot, identity):
            return identity, snapshot
    key = new_key(name)
    assert root.key is not None
    with opened_key(directory, snapshot.key_by_id[root.key]) as authority, PkiStore.open(directory) as store:
        in_file = isinstance(key.place, FileKey)
        encrypts = in_file and isinstance(key.private, RSAPrivateKey | EllipticCurvePrivateKey)
        profile = CertificateProfile.STATE if encrypts else CertificateProfile.MESSAGE_SIGNING
        issuer, validity = Issuer(root.certificate, authority), Validity.for_days(_IDENTITY_DAYS)
        names = (x509.DNSName(f"{holder}.{_DOMAIN}"),)
        certificate = issue(issuer, key.private.public_key(), lab_name(holder), names, profile, validity)
        with store.change() as change:
            state = change.snapshot().state_by_id[holders.state]
            record = add_with_key(change, state, f"{name} {token_hex(4)}", key, certificate, profile)
            change.name_identity(name, record.id)
            trusted = {row.certificate for row in snapshot.trust if row.withdrawn is None}
            for old in {identity.certificate for identity in of_lab} - trusted:
                change.remove(old)
        made = store.snapshot()
    return next(one for one in made.identities if one.certificate == record.id), made


def _found_or_created(directory: Path) -> LabIdentities:
    """The set in `directory`, created again if it is not usable. The caller has the lock. Raises UserError, OSError."""
    from labconsole.security.pki.store import PkiStore

    why = "The lab identities were created."
    snapshot = _snapshot(directory)
    if len(_named(snapshot)) == len(_PROFILES):
        problem = _problem(snapshot, directory)
        if problem is None:
            return _set_of(snapshot, directory)
        why = f"The lab identities were re-created, since {problem}."
    source, passphrase = own_passphrase(directory)
    keys = {name: make_key(directory, LAB_KEY_TYPE, source, passphrase) for name in (_AUTHORITY, *_PROFILES)}
    with PkiStore.open(directory) as store:
        with store.change() as change:
            _make(change, keys)
        made = _set_of(store.snapshot(), directory)
    place = source.relative_to(keys_directory(directory)).describe()
    return replace(made, notes=(why, f"Their passphrase is {place}."))


def _snapshot(directory: Path) -> Snapshot:
    # Imported late, with SQLAlchemy: a run with files or without TLS opens no certificate database.
    from labconsole.security.pki.reader import PkiReader

    try:
        with PkiReader.open(directory) as reader:
            return reader.snapshot()
    except MissingDatabaseError:
        return Snapshot()


def _named(snapshot: Snapshot) -> list[IdentityRecord]:
    """The lab identities in `snapshot`."""
    of_lab = {state.id for state in snapshot.states if state.name == STATE}
    return [identity for identity in snapshot.identities if identity.state in of_lab and identity.name in _PROFILES]


def _certificates(snapshot: Snapshot) -> dict[CertificateRecord, None]:
    """The certificates of the lab identities and of their CA, each once."""
    records = [snapshot.certificate_by_id[identity.certificate] for identity in _named(snapshot)]
    return dict.fromkeys(one for record in records for one in (record, *snapshot.chain_of(record)))


def _set_of(snapshot: Snapshot, directory: Path) -> LabIdentities:
    """The set in `snapshot`. Raises UserError: it is not complete."""
    files = {identity.name: files_of(identity, snapshot, directory) for identity in _named(snapshot)}
    trust = files[BROKER].trust
    if trust is None:
        raise UserError("the State Lab trusts no root")
    return LabIdentities(files, trust)


def _problem(snapshot: Snapshot, directory: Path) -> str | None:
    """Why the set in `snapshot` is not usable (completes "since ..."), or None."""
    try:
        return _problem_of(_certificates(snapshot), _set_of(snapshot, directory).by_name.values())
    except UserError as error:
        return _no_longer_usable(error)


def _problem_of(records: Iterable[CertificateRecord], files: Collection[IdentityFiles]) -> str | None:
    """Why certificates or key files are not usable (completes "since ..."), or None."""
    for record in records:
        problem = "was revoked" if record.revoked is not None else _not_valid_throughout(record.certificate)
        if problem is not None:
            return f"the certificate of {short_name(record.certificate)} {problem}"
    try:
        for source in {one.secret_source for one in files}:
            source.resolve("the lab identities")
        for one in files:
            read_private(one.key, "key file")
    except UserError as error:
        return _no_longer_usable(error)
    return None


def _no_longer_usable(error: UserError) -> str:
    return f"the old ones do not serve any more ({str(error).rstrip('.')})"


def _not_valid_throughout(certificate: x509.Certificate) -> str | None:
    now = datetime.now(UTC)
    return validity_problem(certificate, now) or validity_problem(certificate, now + _LONGEST_RUN)


def _make(change: Change, keys: Mapping[str, MadeKey]) -> None:
    """Add a set with these keys, which replaces the one before. Raises StoreError, BadInput."""
    before = change.snapshot()
    state = state_called(change, STATE)
    tag = token_hex(4)
    key = keys[_AUTHORITY].private
    root = issue_lab_root(key, f"Lab CA {tag}")
    add_with_key(change, state, f"{_AUTHORITY} {tag}", keys[_AUTHORITY], root, CertificateProfile.ROOT)
    for name, profile in _PROFILES.items():
        names = THIS_MACHINE if name == BROKER else (x509.DNSName(f"{name}.{_DOMAIN}"),)
        public_key, validity = keys[name].private.public_key(), Validity.for_days(_IDENTITY_DAYS)
        certificate = issue(Issuer(root, key), public_key, lab_name(name), names, profile, validity)
        record = add_with_key(change, state, f"{name} {tag}", keys[name], certificate, profile)
        change.name_identity(name, record.id)
    used = {row.certificate for row in before.trust if row.withdrawn is None}
    used |= {identity.certificate for identity in change.identities()}
    for old in _certificates(before):
        if old.removed is None and old.id not in used:
            change.remove(old.id)
