"""State A and State B on one console, each with a root, and State C elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime

from labconsole.security.pki.records import CertificateRecord, RotationRecord, State
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.own_csrs import make_request
from labconsole_certificates.operations.received_csrs import approve
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.rotation.plan import RotationPlan, plan_of


class Lab:
    """What the tests begin with: B's root has certified a client of A and B's broker."""

    def __init__(self, store: PkiStore) -> None:
        """Look it up in `store`, where `fill` has made it."""
        self.store = store
        self.a, self.b = (store.state(name) for name in ("State A", "State B"))
        self.root_a, self.root_b, self.client, self.broker = store.certificates()

    @classmethod
    def fill(cls, store: PkiStore) -> None:
        """Make States, roots and certificates: a quarter of a second, for the passphrases of four keys."""
        states = [add_state(store, f"State {name}", f"{name.lower()}.example") for name in "AB"]
        for state in states:
            create_root(store, state, NewKey())
        for state, profile, name in zip(
            states,
            (CertificateProfile.TLS_CLIENT, CertificateProfile.TLS_SERVER),
            ("client.a.example", "broker.b.example"),
            strict=True,
        ):
            approve(store, make_request(store, state, states[1], NewKey(), profile, names=(name,)))

    def issued(self, state: State, profile: CertificateProfile, *names: str) -> CertificateRecord:
        """A certificate by B's CA, by a CSR."""
        request = make_request(self.store, state, self.b, NewKey(), profile, names=names)
        return approve(self.store, request)

    def plan(self, rotation: RotationRecord, at: datetime | None = None) -> RotationPlan:
        """Its plan, as the database has it now."""
        snapshot = self.store.snapshot()
        return plan_of(snapshot, self.store.rotation(rotation.id), at or datetime.now(UTC))
