"""The tables of the certificate database as records, for a reader, a store, or the middle of a change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Join, ScalarSelect, Table, bindparam, func, select

from labconsole.security.pki import schema
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
from labconsole.store.rows import Prepared, Rows

R = TypeVar("R")
S = TypeVar("S", CertificateRecord, RequestRecord, CrlRecord)
_AUDIT_SHOWN = 1000


def _with_its_key(table: Table) -> Join:
    return table.outerjoin(schema.key, table.c.spki_sha256 == schema.key.c.spki_sha256)


def _peers(*conditions: ColumnElement[bool]) -> ScalarSelect[Any]:
    """The ids of the peers of a rotation, as JSON."""
    peer = schema.rotation_peer.c
    of_rotation = select(peer.peer).where(peer.rotation == schema.rotation.c.id, *conditions).order_by(peer.peer)
    found = of_rotation.correlate(schema.rotation).subquery()
    return select(func.json_group_array(found.c.peer)).scalar_subquery()


STATES = Rows(State, schema.state)
KEYS = Rows(
    KeyRecord,
    schema.key,
    place=(schema.key.c.file, schema.key.c.source, schema.key.c.token, schema.key.c.token_label),
)
CERTIFICATES = Rows(
    CertificateRecord,
    schema.certificate,
    _with_its_key(schema.certificate),
    state=func.coalesce(schema.certificate.c.state, schema.key.c.state),
    key=schema.key.c.id,
    revoked=(schema.certificate.c.revoked, schema.certificate.c.reason),
)
REQUESTS = Rows(RequestRecord, schema.request, _with_its_key(schema.request), key=schema.key.c.id)
CRLS = Rows(CrlRecord, schema.crl)
TRUST = Rows(TrustRecord, schema.trust)
BUNDLES = Rows(BundleRecord, schema.bundle)
HANDOVERS = Rows(HandoverRecord, schema.handover)
PROOFS = Rows(ProofRecord, schema.proof)
ROTATIONS = Rows(
    RotationRecord,
    schema.rotation,
    peers=_peers(),
    confirmed=_peers(schema.rotation_peer.c.confirmed.is_not(None)),
)
IDENTITIES = Rows(IdentityRecord, schema.identity)
AUDIT = Rows(AuditRecord, schema.audit)
_NEWER = AUDIT.select.where(schema.audit.c.id > bindparam("after"))
_NEWEST = Prepared(_NEWER.order_by(schema.audit.c.id.desc()).limit(bindparam("most")))


class Tables(ABC):
    """The rows as records, oldest first. Every method raises StoreError."""

    directory: Path
    """Of the database and its keys."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Connection]:
        """A transaction, or part of one, that sees one moment."""

    def states(self) -> tuple[State, ...]:
        """All States."""
        return self._all(STATES)

    def state(self, name: str) -> State:
        """The State called `name`. Raises StoreError: there is none."""
        return self._one(STATES, f"There is no State {name}: choose one of those that are there, or add it.", name=name)

    def keys(self) -> tuple[KeyRecord, ...]:
        """All key pairs."""
        return self._all(KEYS)

    def key(self, number: int) -> KeyRecord:
        """The key pair with this id. Raises StoreError: there is none."""
        return self._one(KEYS, f"There is no key {number}.", id=number)

    def certificates(self, removed: bool = False) -> tuple[CertificateRecord, ...]:
        """All certificates; with `removed` those that were removed too."""
        return self._all(CERTIFICATES) if removed else self._all(CERTIFICATES, removed=None)

    def certificate(self, which: str | int) -> CertificateRecord:
        """The certificate with this SHA-256 (hex) or id, removed or not. Raises StoreError: there is none."""
        otherwise = f"There is no certificate {which}: choose one of those that are there."
        return self._one(CERTIFICATES, otherwise, **{"id" if isinstance(which, int) else "sha256": which})

    def requests(self) -> tuple[RequestRecord, ...]:
        """All certificate signing requests."""
        return self._all(REQUESTS)

    def request(self, number: int) -> RequestRecord:
        """The request with this id. Raises StoreError: there is none."""
        otherwise = f"There is no request {number}: choose one of those that are there."
        return self._one(REQUESTS, otherwise, id=number)

    def crls(self) -> tuple[CrlRecord, ...]:
        """All CRLs."""
        return self._all(CRLS)

    def trust_records(self) -> tuple[TrustRecord, ...]:
        """Which State trusts what, and what was withdrawn."""
        return self._all(TRUST)

    def bundles(self) -> tuple[BundleRecord, ...]:
        """All trust bundles that were made or imported."""
        return self._all(BUNDLES)

    def handovers(self) -> tuple[HandoverRecord, ...]:
        """What went from one State to another."""
        return self._all(HANDOVERS)

    def proofs(self) -> tuple[ProofRecord, ...]:
        """Handshakes that passed."""
        return self._all(PROOFS)

    def rotations(self) -> tuple[RotationRecord, ...]:
        """All rotations, those that ended too."""
        return self._all(ROTATIONS)

    def rotation(self, number: int) -> RotationRecord:
        """The rotation with this id. Raises StoreError: there is none."""
        otherwise = f"There is no rotation {number}: choose one of those that are there."
        return self._one(ROTATIONS, otherwise, id=number)

    def identities(self) -> tuple[IdentityRecord, ...]:
        """All identities, by name."""
        return self._all(IDENTITIES)

    def identity(self, name: str) -> IdentityRecord:
        """The identity called `name`. Raises StoreError: there is none."""
        return identity_named(name, self.identities())

    def audit(self, limit: int = _AUDIT_SHOWN, *, after: int = 0) -> tuple[AuditRecord, ...]:
        """The newest `limit` rows of the audit list, newest first; only those after the id `after`."""
        with self._rows() as connection:
            return tuple(AUDIT.records(_NEWEST(connection, {"after": after, "most": limit}).fetchall()))

    def _snapshot(self, before: Snapshot) -> Snapshot:
        """All rows, within one transaction. What is as in the snapshot `before` is taken from there, parsed."""
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

    def _all(self, rows: Rows[R], **equal: Any) -> tuple[R, ...]:
        with self._rows() as connection:
            return tuple(rows.find(connection, **equal))

    def _one(self, rows: Rows[R], otherwise: str, **equal: Any) -> R:
        found = self._all(rows, **equal)
        if not found:
            raise StoreError(otherwise)
        return found[0]

    @contextmanager
    def _rows(self) -> Iterator[Connection]:
        with self._transaction() as connection:
            try:
                yield connection
            except ValueError as error:
                raise StoreError(
                    f"The certificate database in {self.directory} holds what it cannot hold ({error}): it was changed "
                    "by another program. Keep it, and continue with an earlier copy."
                ) from error


def _kept(before: tuple[S, ...], now: tuple[S, ...]) -> tuple[S, ...]:
    """The rows `now`, as the objects that they were `before` where nothing changed."""
    known = {record.id: record for record in before}
    return tuple(known[record.id] if known.get(record.id) == record else record for record in now)
