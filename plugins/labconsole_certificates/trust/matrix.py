"""The State x State matrix: which State trusts whose root, until when, and why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from labconsole.model.operation import Result, TextTable
from labconsole.model.trial import Parameters
from labconsole.security.certificate_status import NOTICES
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import BundleRecord, CertificateRecord, State, TrustKind
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.parameter_fields import NoParameters
from labconsole_certificates.operations.pki_operation import PkiReport

_NOTICE = timedelta(days=max(NOTICES))


class CellStatus(StrEnum):
    """A State's trust in another one's root."""

    OWN = "own"
    TRUSTED = "trusted"
    EXPIRING = "expiring"
    """Trusted, but the root expires within 90 days."""
    STALE = "stale"
    """Trusted, but its bundle or CRL is out of date."""
    NOT_YET_VALID = "not yet valid"
    EXPIRED = "expired"
    REVOKED = "revoked"
    UNTRUSTED = "untrusted"
    UNKNOWN = "unknown"
    """A remote State without a bundle that lists its trust."""


HOLDS = frozenset({CellStatus.TRUSTED, CellStatus.EXPIRING, CellStatus.STALE})
"""Statuses in which the other State's certificates are accepted, apart from expired CRLs."""


@dataclass(frozen=True)
class Cell:
    """The trust of `truster` in `trusted`. `certificate` is the id of the root (or pin)."""

    truster: int
    trusted: int
    status: CellStatus
    until: datetime | None
    """End of validity of the root that is trusted longest."""
    last_crl: datetime | None
    """When the newest CRL of that root was issued."""
    certificate: int | None
    cause: str
    """The cause in one sentence."""


@dataclass(frozen=True)
class Matrix:
    """All cells, by (truster, trusted): ids of States."""

    states: tuple[State, ...]
    cells: dict[tuple[int, int], Cell]


def matrix(snapshot: Snapshot, at: datetime) -> Matrix:
    """The trust between all States at `at` (aware, UTC), as far as this console knows it."""
    cells = {(cell.truster, cell.trusted): cell for cell in _MatrixBuilder(snapshot, at).cells()}
    return Matrix(snapshot.states, cells)


def trusted_by(snapshot: Snapshot, state: int) -> frozenset[str]:
    """SHA-256 (hex) of what `state` trusts: of a local State by its trust rows, else by its newest bundle."""
    if snapshot.state_by_id[state].local:
        return frozenset(each.sha256 for kind in TrustKind for each in snapshot.trusted_by(state, kind))
    bundle = newest_of(snapshot.bundles, state)
    return frozenset() if bundle is None else frozenset(bundle.trusted)


def newest_of(bundles: Sequence[BundleRecord], subject: int) -> BundleRecord | None:
    """The newest bundle of `subject` among them, by any importer."""
    return max((each for each in bundles if each.subject == subject), key=lambda each: each.sequence, default=None)


class _MatrixBuilder:
    """Derives the cells from a snapshot at one time."""

    def __init__(self, snapshot: Snapshot, at: datetime) -> None:
        self._snapshot = snapshot
        self._at = at
        self._trusted = {state.id: trusted_by(snapshot, state.id) for state in snapshot.states}
        self._told_by = {state.id: newest_of(snapshot.bundles, state.id) for state in snapshot.states}
        self._taken = {(each.importer, each.subject): each for each in _by_sequence(snapshot.bundles)}
        self._of_state: dict[int, list[CertificateRecord]] = {state.id: [] for state in snapshot.states}
        for record in snapshot.certificates:
            if record.state is not None and record.removed is None:
                self._of_state[record.state].append(record)

    def cells(self) -> Iterator[Cell]:
        """One cell for each pair, row by row."""
        for truster in self._snapshot.states:
            for trusted in self._snapshot.states:
                yield self._own(truster) if truster == trusted else self._cell(truster, trusted)

    def _own(self, state: State) -> Cell:
        roots = self._snapshot.roots_of(state.id)
        if not roots:
            return self._without(state, state, CellStatus.OWN, f"{state.name} has no root yet.")
        newest = roots[0]
        until = newest.certificate.not_valid_after_utc
        return self._with(
            state,
            state,
            CellStatus.OWN,
            newest,
            f"{state.name}'s own root {_named(newest)}, valid until {until:%Y-%m-%d}.",
        )

    def _cell(self, truster: State, trusted: State) -> Cell:
        told_by = self._told_by[truster.id]
        if not truster.local and told_by is None:
            cause = f"No bundle of {truster.name} is known here, so the States that it trusts are not known."
            return self._without(truster, trusted, CellStatus.UNKNOWN, cause)
        anchors = [each for each in self._of_state[trusted.id] if each.sha256 in self._trusted[truster.id]]
        if not anchors:
            return self._without(truster, trusted, CellStatus.UNTRUSTED, self._why_not(truster, trusted))
        judged = [(*self._judge(each), each) for each in anchors]
        status, cause, record = max(
            judged, key=lambda each: (each[0] in HOLDS, each[2].certificate.not_valid_after_utc)
        )
        if status in HOLDS:
            stale = self._why_stale(truster, trusted, record)
            if stale:
                status, cause = CellStatus.STALE, stale
        return self._with(truster, trusted, status, record, cause)

    def _judge(self, record: CertificateRecord) -> tuple[CellStatus, str]:
        name, certificate = _named(record), record.certificate
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if record.revoked is not None:
            return CellStatus.REVOKED, f"{name} was revoked on {record.revoked.at:%Y-%m-%d}."
        if self._at < begins:
            return CellStatus.NOT_YET_VALID, f"{name} is not valid before {begins:%Y-%m-%d %H:%M} UTC."
        if self._at > ends:
            return CellStatus.EXPIRED, f"{name} expired on {ends:%Y-%m-%d}."
        if ends - self._at <= _NOTICE:
            return CellStatus.EXPIRING, f"{name} runs out on {ends:%Y-%m-%d}, in {(ends - self._at).days} days."
        return CellStatus.TRUSTED, f"{name} is trusted and valid until {ends:%Y-%m-%d}."

    def _why_not(self, truster: State, trusted: State) -> str:
        if not truster.local:
            told_by = self._told_by[truster.id]
            number = told_by.sequence if told_by is not None else 0
            return f"Bundle {number} of {truster.name} lists no root of {trusted.name} among those that it trusts."
        theirs = {each.id for each in self._of_state[trusted.id]}
        withdrawn = [
            each.withdrawn
            for each in self._snapshot.trust
            if each.state == truster.id and each.certificate in theirs and each.withdrawn is not None
        ]
        if withdrawn:
            return f"{truster.name} withdrew its trust in {trusted.name} on {max(withdrawn):%Y-%m-%d}."
        return f"{truster.name} trusts no root of {trusted.name}: let it import the trust bundle of {trusted.name}."

    def _why_stale(self, truster: State, trusted: State, record: CertificateRecord) -> str:
        source, whose = (
            (self._taken.get((truster.id, trusted.id)), trusted)
            if truster.local
            else (self._told_by[truster.id], truster)
        )
        if source is not None and source.next_update < self._at:
            return (
                f"Bundle {source.sequence} of {whose.name} should have been followed by a newer one by "
                f"{source.next_update:%Y-%m-%d}: ask {whose.name} for it."
            )
        crl = self._snapshot.newest_crl_of.get(record.id)
        if crl is not None and crl.next_update < self._at:
            return (
                f"The CRL of {_named(record)} should have been followed by a newer one by {crl.next_update:%Y-%m-%d}, "
                f"and until then its certificates are refused: ask {trusted.name} for it."
            )
        return ""

    def _with(self, truster: State, trusted: State, status: CellStatus, record: CertificateRecord, cause: str) -> Cell:
        crl = self._snapshot.newest_crl_of.get(record.id)
        until = record.certificate.not_valid_after_utc
        issued = None if crl is None else crl.this_update
        return Cell(truster.id, trusted.id, status, until, issued, record.id, cause)

    def _without(self, truster: State, trusted: State, status: CellStatus, cause: str) -> Cell:
        return Cell(truster.id, trusted.id, status, None, None, None, cause)


def _by_sequence(bundles: Sequence[BundleRecord]) -> list[BundleRecord]:
    return sorted(bundles, key=lambda each: each.sequence)


def _named(record: CertificateRecord) -> str:
    return short_name(record.certificate)


class ShowMatrix(PkiReport[NoParameters]):
    """Shows who trusts whom."""

    name: ClassVar[str] = "certificates.matrix"
    title: ClassVar[str] = "Trust matrix"
    description: ClassVar[str] = "Shows which State trusts which, with the cause where it does not, or will soon not."
    parameters: ClassVar[type[Parameters]] = NoParameters

    def read(self, parameters: NoParameters, reader: PkiReader) -> Result:
        found = matrix(reader.snapshot(), datetime.now(UTC))
        rows, causes, cells = [], [], []
        for truster in found.states:
            of_truster = [(trusted.name, found.cells[truster.id, trusted.id]) for trusted in found.states]
            rows.append((truster.name, *(str(cell.status) for _name, cell in of_truster)))
            for name, cell in of_truster:
                if cell.status not in (CellStatus.OWN, CellStatus.TRUSTED):
                    causes.append(cell.cause)
                until = cell.until and cell.until.isoformat()
                about = {"status": str(cell.status), "valid_until": until, "cause": cell.cause}
                cells.append({"state": truster.name, "trusted": name, **about})
        headings = ("trusts", *(state.name for state in found.states))
        return Result((TextTable(headings, tuple(rows)), *causes), {"cells": cells})
