"""State A and State B of this console with a root each, and State C elsewhere: what tests of operations begin with."""

from __future__ import annotations

from dataclasses import dataclass

from labconsole.security.pki.records import CertificateRecord, RequestRecord, State
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_certificates.operations import own_csrs, received_csrs
from labconsole_certificates.operations.export import exported
from labconsole_certificates.operations.new_keys import NewKey


@dataclass(frozen=True)
class ThreeStates:
    """State A and State B, both of this console, and State C of another one."""

    store: PkiStore
    a: State
    b: State
    c: State
    root_a: CertificateRecord
    root_b: CertificateRecord

    def asks(
        self, client: State, server: State, *names: str, profile: CertificateProfile = CertificateProfile.TLS_CLIENT
    ) -> RequestRecord:
        """A CSR of `client` that `server` has imported."""
        made = own_csrs.make_request(self.store, client, server, NewKey(), profile, names=names)
        return received_csrs.import_request(self.store, client, server, exported(self.store.snapshot(), made))

    def certified(self, client: State, server: State, *names: str) -> CertificateRecord:
        """A certificate of `client` by the CA of `server`."""
        return received_csrs.approve(self.store, self.asks(client, server, *names))

    def rows(self) -> tuple[int, ...]:
        """How many rows there are of what can be added, for tests that nothing has changed."""
        now = self.store.snapshot()
        return tuple(map(len, (now.states, now.keys, now.certificates, now.requests, now.crls, now.trust, now.audit)))
