"""Databases of 40 States: the certificates that each issued to all, and whom each trusts."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509

from labconsole.security.pki.records import Origin, TokenKey, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import Issuer, issue, issue_root
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.names import name_from_text
from labconsole.security.x509.validity import Validity
from tests.helpers.authorities import named

STATES = 40


def certify_each_other(directory: Path) -> None:
    """Each State's root, and what it issued to all; these with one key, since only their number matters."""
    key, profile = generate(KeyType.P_256), CertificateProfile.TLS_CLIENT
    with PkiStore.open(directory) as store, store.change() as change:
        states = [change.add_state(f"State {number:02}", "", local=number < 2) for number in range(STATES)]
        for state in states:
            root_key = generate(KeyType.P_256)
            if state.local:
                change.add_key(state.id, state.name, root_key.public_key(), TokenKey("office", state.name))
            root = issue_root(root_key, named(f"CN=Root of {state.name}"), Validity.for_days(900))
            change.add_certificate(root, origin=Origin.IMPORTED, state=state.id, profile=CertificateProfile.ROOT)
            for other in states:
                names = [x509.DNSName(f"client{other.id}.example")]
                subject = named(f"CN={other.name} at {state.name}")
                leaf = issue(Issuer(root, root_key), key.public_key(), subject, names, profile, Validity.for_days(300))
                change.add_certificate(leaf, origin=Origin.IMPORTED, state=other.id, profile=profile)


def trust_a_third(directory: Path) -> None:
    """A root each; every State trusts a third of the others."""
    keys = [generate(KeyType.P_256) for _ in range(STATES)]
    with PkiStore.open(directory) as store, store.change() as change:
        states = [change.add_state(f"State {number + 1:02}") for number in range(STATES)]
        for key, state in zip(keys, states, strict=True):
            change.add_key(state.id, state.name, key.public_key(), TokenKey("office", state.name))
        roots = [
            change.add_certificate(
                issue_root(key, name_from_text(f"CN=Root of {state.name}"), Validity.for_days(3650)),
                origin=Origin.IMPORTED,
                state=state.id,
                profile=CertificateProfile.ROOT,
            )
            for key, state in zip(keys, states, strict=True)
        ]
        for row, state in enumerate(states):
            for column, root in enumerate(roots):
                if row != column and (row + column) % 3 == 1:
                    change.trust(state.id, root.id, TrustKind.ROOT, "test")
