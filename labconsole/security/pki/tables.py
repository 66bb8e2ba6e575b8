"""What can be asked of the certificate database, by a reader, a store, or in the middle of a change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from labconsole.security.pki import rows
from labconsole.security.pki.records import (
    AuditRecord,
    BundleRecord,
    CertificateRecord,
    CrlRecord,
    HandoverRecord,
    IdentityRecord,
    KeyRecord,
    ProofRecord,
    RequestRecord,
    RotationRecord,
    State,
    TrustRecord,
)
from labconsole.security.pki.snapshot import Snapshot, identity_named
from labconsole.store.errors import StoreError

R = TypeVar("R")
S = TypeVar("S", CertificateRecord, RequestRecord, CrlRecord)
_AUDIT_SHOWN = 1000


class Tables(ABC):
    """The rows as records, oldest first. Every method raises StoreError."""

    directory: Path
    """Of the database and its keys."""

    @abstractmethod
    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows that a SELECT gives."""

    def states(self) -> tuple[State, ...]:
        """All States."""
        return self._all(rows.STATE, rows.state_of)

    def state(self, name: str) -> State:
        """The State called `name`. Raises StoreError: there is none."""
        found = self._all(f"{rows.STATE} WHERE name = ?", rows.state_of, (name,))
        return _the(found, f"There is no State {name}: choose one of those that are there, or add it.")

    def keys(self) -> tuple[KeyRecord, ...]:
        """All key pairs."""
        return self._all(rows.KEY, rows.key_of)

    def key(self, number: int) -> KeyRecord:
        """The key pair with this id. Raises StoreError: there is none."""
        return _the(self._all(f"{rows.KEY} WHERE id = ?", rows.key_of, (number,)), f"There is no key {number}.")

    def certificates(self, removed: bool = False) -> tuple[CertificateRecord, ...]:
        """All certificates; with `removed` those that were removed too."""
        return self._all(rows.CERTIFICATE + ("" if removed else " WHERE removed IS NULL"), rows.certificate_of)

    def certificate(self, which: str | int) -> CertificateRecord:
        """The certificate with this SHA-256 (hex) or id, removed or not. Raises StoreError: there is none."""
        column = "certificate.id" if isinstance(which, int) else "sha256"
        found = self._all(f"{rows.CERTIFICATE} WHERE {column} = ?", rows.certificate_of, (which,))
        return _the(found, f"There is no certificate {which}: choose one of those that are there.")

    def requests(self) -> tuple[RequestRecord, ...]:
        """All certificate signing requests."""
        return self._all(rows.REQUEST, rows.request_of)

    def request(self, number: int) -> RequestRecord:
        """The request with this id. Raises StoreError: there is none."""
        found = self._all(f"{rows.REQUEST} WHERE request.id = ?", rows.request_of, (number,))
        return _the(found, f"There is no request {number}: choose one of those that are there.")

    def crls(self) -> tuple[CrlRecord, ...]:
        """All CRLs."""
        return self._all(rows.CRL, rows.crl_of)

    def trust_records(self) -> tuple[TrustRecord, ...]:
        """Who trusts what, and what was withdrawn."""
        return self._all(rows.TRUST, rows.trust_of)

    def bundles(self) -> tuple[BundleRecord, ...]:
        """All trust bundles that were made or taken in."""
        return self._all(rows.BUNDLE, rows.bundle_of)

    def handovers(self) -> tuple[HandoverRecord, ...]:
        """What went from one State to another."""
        return self._all(rows.HANDOVER, rows.handover_of)

    def proofs(self) -> tuple[ProofRecord, ...]:
        """Handshakes that passed."""
        return self._all(rows.PROOF, rows.proof_of)

    def rotations(self) -> tuple[RotationRecord, ...]:
        """All rotations, those that ended too."""
        return self._all(rows.ROTATION, rows.rotation_of)

    def rotation(self, number: int) -> RotationRecord:
        """The rotation with this id. Raises StoreError: there is none."""
        found = self._all(f"{rows.ROTATION} WHERE id = ?", rows.rotation_of, (number,))
        return _the(found, f"There is no rotation {number}: choose one of those that are there.")

    def identities(self) -> tuple[IdentityRecord, ...]:
        """All identities."""
        return self._all(rows.IDENTITY, rows.identity_of, order="name")

    def identity(self, name: str) -> IdentityRecord:
        """The identity called `name`. Raises StoreError: there is none."""
        return identity_named(name, self.identities())

    def audit(self, limit: int = _AUDIT_SHOWN, *, after: int = 0) -> tuple[AuditRecord, ...]:
        """The newest `limit` rows of the audit list, newest first; only those after the id `after`."""
        return self._all(f"{rows.AUDIT} WHERE id > ?", rows.audit_of, (after,), order=f"id DESC LIMIT {limit:d}")

    def _snapshot(self, before: Snapshot) -> Snapshot:
        """All rows; the caller holds them still. What is as in the snapshot `before` is taken from there, parsed."""
        newest = before.audit[0].id if before.audit else 0
        return Snapshot(
            self.states(),
            self.keys(),
            _kept(before.certificates, self.certificates(removed=True)),
            _kept(before.requests, self.requests()),
            _kept(before.crls, self.crls()),
            self.trust_records(),
            self.bundles(),
            self.handovers(),
            self.proofs(),
            self.rotations(),
            self.identities(),
            (*self.audit(after=newest), *before.audit)[:_AUDIT_SHOWN],
        )

    def _all(
        self, statement: str, record: Callable[[Sequence[Any]], R], values: Sequence[Any] = (), order: str = "1"
    ) -> tuple[R, ...]:
        found = self._rows(f"{statement} ORDER BY {order}", values)
        try:
            return tuple(record(row) for row in found)
        except ValueError as error:
            raise StoreError(
                f"The certificate database in {self.directory} holds what it cannot hold ({error}): it was changed by "
                "another program. Keep it, and continue with an earlier copy."
            ) from error


def _kept(before: tuple[S, ...], now: tuple[S, ...]) -> tuple[S, ...]:
    """The rows `now`, as the objects that they were `before` where nothing changed."""
    known = {record.id: record for record in before}
    return tuple(known[record.id] if known.get(record.id) == record else record for record in now)


def _the(found: tuple[R, ...], otherwise: str) -> R:
    if not found:
        raise StoreError(otherwise)
    return found[0]
