"""The certificate database of a drill: two States that trust each other's root, created for one run and deleted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from labconsole.security.lab_identities import THIS_MACHINE
from labconsole.security.pki.change import Change
from labconsole.security.pki.keys import MadeKey, make_key, opened_key, own_passphrase
from labconsole.security.pki.records import CertificateRecord, Origin, State, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.crl_issuing import Revoked, issue_crl
from labconsole.security.x509.issuing import Issuer, issue, issue_lab_root, lab_name
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.validity import Validity

SENDER, SIGNER, RECEIVER, BROKER = "drill-sender", "drill-signer", "drill-receiver", "drill-broker"
"""Names of the identities: of the sending State, its messages, the receiving State, and that State's broker."""

_SENDING, _RECEIVING = "Drill State A", "Drill State B"
_STATES = {SENDER: _SENDING, SIGNER: _SENDING, RECEIVER: _RECEIVING, BROKER: _RECEIVING}
_PROFILES = {
    SENDER: CertificateProfile.STATE,
    SIGNER: CertificateProfile.MESSAGE_SIGNING,
    RECEIVER: CertificateProfile.STATE,
    BROKER: CertificateProfile.TLS_SERVER,
}
_DAYS = 60
"""Long enough for no warning of the preflight; the database is deleted after the run."""
_HOW = "by the drill"


@dataclass(frozen=True)
class _Root:
    """A root of a State with its key."""

    state: State
    record: CertificateRecord
    issuer: Issuer


def create_pki(directory: Path) -> None:
    """Create the database with all identities in `directory` (about 1 s). Raises UserError."""
    own_passphrase(directory, keyring=False)
    root_keys = {state: make_key(directory, KeyType.RSA_2048) for state in (_SENDING, _RECEIVING)}
    keys = {name: make_key(directory, KeyType.RSA_2048) for name in _STATES}
    with PkiStore.open(directory) as store, store.change() as change:
        roots = {}
        for name, key in root_keys.items():
            state = change.add_state(name)
            roots[name] = _add_root(change, state, key, f"{name} Root CA")
        for name, state_name in _STATES.items():
            _name_new(change, roots[state_name], name, keys[name])
        for truster, trusted in ((_SENDING, _RECEIVING), (_RECEIVING, _SENDING)):
            change.trust(roots[truster].state.id, roots[trusted].record.id, TrustKind.ROOT, _HOW)


class DrillPki:
    """Changes the database as its operators would; each method is one change, which the run's roles follow."""

    def __init__(self, store: PkiStore) -> None:
        """Opens the keys of the roots. Raises UserError."""
        self._store = store
        snapshot = store.snapshot()
        self._roots: dict[str, _Root] = {}
        for state in snapshot.states:
            (record,) = snapshot.roots_of(state.id)
            assert record.key is not None
            with opened_key(store.directory, snapshot.key_by_id[record.key]) as key:
                self._roots[state.name] = _Root(state, record, Issuer(record.certificate, key))
        self._crls = 0

    def certificate(self, name: str) -> CertificateRecord:
        """The certificate that has an identity's name."""
        return self._store.certificate(self._store.identity(name).certificate)

    def rename(self, name: str, key: MadeKey) -> CertificateRecord:
        """Issue a certificate for a new key and give it the identity's name; returns the certificate of before."""
        before = self.certificate(name)
        with self._store.change() as change:
            _name_new(change, self._roots[_STATES[name]], name, key)
        return before

    def revoke(self, record: CertificateRecord, reason: x509.ReasonFlags) -> None:
        """Revoke a certificate, and publish the CRL of its CA."""
        root = next(root for root in self._roots.values() if root.state.id == record.state)
        self._crls += 1
        revoked = Revoked(record.certificate.serial_number, datetime.now(UTC), reason)
        crl = issue_crl(root.issuer, [revoked], self._crls, Validity.for_days(_DAYS))
        with self._store.change() as change:
            change.revoke(record.id, reason)
            change.add_crl(crl, root.record.id)

    def add_root(self, key: MadeKey) -> CertificateRecord:
        """Another root of the sending State, which issues from now on, trusted by both; returns the one of before."""
        before = self._roots[_SENDING]
        with self._store.change() as change:
            root = _add_root(change, before.state, key, f"{_SENDING} Root CA 2")
            change.trust(self._roots[_RECEIVING].state.id, root.record.id, TrustKind.ROOT, _HOW)
        self._roots[_SENDING] = root
        return before.record

    def distrust(self, root: CertificateRecord) -> None:
        """No State trusts `root` from now on."""
        with self._store.change() as change:
            for trust in change.trust_records():
                if trust.certificate == root.id and trust.withdrawn is None:
                    change.withdraw_trust(trust.id)
            change.remove(root.id)


def _add_root(change: Change, state: State, key: MadeKey, name: str) -> _Root:
    key.record(change, state)
    certificate = issue_lab_root(key.private, name)
    record = change.add_certificate(
        certificate, origin=Origin.SELF_SIGNED, state=state.id, profile=CertificateProfile.ROOT
    )
    return _Root(state, record, Issuer(certificate, key.private))


def _name_new(change: Change, root: _Root, name: str, key: MadeKey) -> None:
    key.record(change, root.state)
    profile = _PROFILES[name]
    names = THIS_MACHINE if name == BROKER else (x509.DNSName(f"{name}.lab.test"),)
    validity = Validity.for_days(_DAYS)
    certificate = issue(root.issuer, key.private.public_key(), lab_name(name), names, profile, validity)
    record = change.add_certificate(certificate, origin=Origin.ISSUED, state=root.state.id, profile=profile)
    change.name_identity(name, record.id)
