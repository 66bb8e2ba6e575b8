"""States with a console and a CA each, as the tests of trust need them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from labconsole.security.pki.records import CertificateRecord, State, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.fingerprints import groups
from labconsole_certificates.operations.authorities import add_state, create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.trust.making import make_bundle
from labconsole_certificates.trust.taking_in import TakenIn, take_in


@dataclass(frozen=True)
class Console:
    """The console of one State, with its root."""

    store: PkiStore
    state: State
    root: CertificateRecord

    def bundle(self, days: int = 30) -> bytes:
        """Its next bundle."""
        return make_bundle(self.store, self.state.name, days=days)

    def take_in(self, data: bytes, confirmed: str = "") -> TakenIn:
        """Take a bundle in."""
        return take_in(self.store, self.state.name, data, confirmed)

    def meets(self, other: Console) -> TakenIn:
        """Take the other's bundle in, with its fingerprint as read over the telephone."""
        return self.take_in(other.bundle(), groups(other.root.sha256))

    def trusts(self) -> set[str]:
        """SHA-256 (hex) of the roots of others that it trusts."""
        found = self.store.snapshot().trusted_by(self.state.id, TrustKind.ROOT)
        return {each.sha256 for each in found} - {self.root.sha256}


NewConsole = Callable[[str], Console]


@pytest.fixture
def console(tmp_path: Path) -> Iterator[NewConsole]:
    """Makes consoles: each in a directory of its own."""
    with ExitStack() as opened:

        def make(name: str) -> Console:
            store = opened.enter_context(PkiStore.open(tmp_path / f"console-{len(list(tmp_path.iterdir()))}"))
            state = add_state(store, name, f"{name.lower().replace(' ', '-')}.example")
            return Console(store, state, create_root(store, state, NewKey()))

        yield make
