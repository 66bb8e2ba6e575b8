"""States with a console and a CA each, as the tests of trust need them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from labconsole.security.pki.records import CertificateRecord, State, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.fingerprints import grouped
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.trust.bundle_creation import make_bundle
from labconsole_certificates.trust.bundle_import import ImportedBundle, import_bundle


@dataclass(frozen=True)
class Console:
    """The console of one State, with its root."""

    store: PkiStore
    state: State
    root: CertificateRecord

    def bundle(self, days: int = 30) -> bytes:
        """Its next bundle."""
        return make_bundle(self.store, self.state.name, days=days)

    def import_bundle(self, data: bytes, confirmed: str = "") -> ImportedBundle:
        """Take a bundle in."""
        return import_bundle(self.store, self.state.name, data, confirmed)

    def meets(self, other: Console) -> ImportedBundle:
        """Take the other's bundle in, with its fingerprint as read over the telephone."""
        return self.import_bundle(other.bundle(), grouped(other.root.sha256))

    def trusts(self) -> set[str]:
        """SHA-256 (hex) of the roots of others that it trusts."""
        found = self.store.snapshot().trusted_by(self.state.id, TrustKind.ROOT)
        return {each.sha256 for each in found} - {self.root.sha256}


NewConsole = Callable[[str], Console]


@pytest.fixture(scope="session")
def made_consoles(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory of a State's console, made once for each name, to be copied."""
    directory = tmp_path_factory.mktemp("consoles")

    @cache
    def made(name: str) -> Path:
        domain = f"{name.lower().replace(' ', '-')}.example"
        with PkiStore.open(directory / domain) as store:
            create_root(store, add_state(store, name, domain), NewKey())
        return directory / domain

    return made


@pytest.fixture
def console(made_consoles: Callable[[str], Path], tmp_path: Path) -> Iterator[NewConsole]:
    """Makes consoles: each in a directory of its own."""
    with ExitStack() as opened:

        def make(name: str) -> Console:
            made = made_consoles(name)
            store = opened.enter_context(PkiStore.open(shutil.copytree(made, tmp_path / made.name)))
            snapshot = store.snapshot()
            [state] = snapshot.states
            [root] = snapshot.roots_of(state.id)
            return Console(store, state, root)

        yield make
