"""The tables of the revocation tab: certificates issued by CAs of this console, and known CRLs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from PySide6.QtCore import QCoreApplication

from labconsole.security.pki.records import CertificateRecord, CrlRecord, Origin
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole.security.x509.names import short_name
from labconsole_certificates.describing.oid_names import REASONS
from labconsole_certificates.panel.labels import day, moment, profile_text
from labconsole_ui.tables.record_table import DataTable, Field, RecordModel

_translate = QCoreApplication.translate


@dataclass(frozen=True)
class IssuedRow:
    """A certificate that a CA of this console has issued."""

    record: CertificateRecord
    name: str
    owner: str
    issuer: CertificateRecord

    @property
    def certificate_id(self) -> int:
        """The record of the row."""
        return self.record.id


@dataclass(frozen=True)
class CrlRow:
    """The newest CRL of a CA, or none yet. `own`: this console can publish the next one."""

    authority: CertificateRecord
    name: str
    owner: str
    own: bool
    crl: CrlRecord | None
    revoked: int

    @property
    def certificate_id(self) -> int:
        """The record of the row."""
        return self.authority.id


ISSUER_COLUMN = 4
"""Index of the issuing CA among the columns of certificates."""
Row = TypeVar("Row", IssuedRow, CrlRow)


@dataclass(frozen=True)
class RevocationRows:
    """Both lists."""

    issued: tuple[IssuedRow, ...]
    crls: tuple[CrlRow, ...]


def rows_of(snapshot: Snapshot) -> RevocationRows:
    """Both lists, newest first; takes time, as it goes through all certificates."""
    owners = {state.id: state.name for state in snapshot.states}
    local = {state.id for state in snapshot.states if state.local}
    seen = [record for record in snapshot.certificates if record.removed is None and record.origin is not Origin.LINK]
    authorities = [record for record in seen if record.profile in AUTHORITIES]
    own = {record.id for record in authorities if record.key is not None and record.state in local}
    issued = []
    for record in reversed(seen):
        issuer = next((found for found in snapshot.issuers_of(record) if found.id in own), None)
        if issuer is not None and issuer.id != record.id:
            issued.append(IssuedRow(record, short_name(record.certificate), owners.get(record.state or 0, ""), issuer))
    newest = snapshot.newest_crl_of
    crls = [
        CrlRow(
            record,
            short_name(record.certificate),
            owners.get(record.state or 0, ""),
            record.id in own,
            newest.get(record.id),
            len(newest[record.id].crl) if record.id in newest else 0,
        )
        for record in reversed(authorities)
    ]
    return RevocationRows(tuple(issued), tuple(sorted(crls, key=lambda row: not row.own)))


def issued_fields() -> list[Field[IssuedRow]]:
    """The columns of certificates."""
    return [
        Field(
            _translate("Revocation", "Certificate"),
            lambda row: row.name,
            icon=lambda row: ("revoked", "bad") if row.record.revoked else ("certificate", "muted"),
            tooltip=_valid_until,
            strong=lambda row: True,
        ),
        Field(_translate("Revocation", "For"), lambda row: profile_text(row.record)),
        Field(_translate("Revocation", "Of"), lambda row: row.owner),
        Field(
            _translate("Revocation", "Revoked"),
            lambda row: "" if row.record.revoked is None else REASONS[row.record.revoked.reason],
            tooltip=_revoked_text,
            sort=lambda row: row.record.revoked.at if row.record.revoked else None,
            tone=lambda row: "bad" if row.record.revoked else None,
        ),
        Field(_translate("Revocation", "Issued by"), lambda row: short_name(row.issuer.certificate)),
    ]


def crl_fields(now: datetime) -> list[Field[CrlRow]]:
    """The columns of CRLs, coloured by their status at `now`."""

    def tone(row: CrlRow) -> str | None:
        if row.crl is None:
            return "muted"
        return "bad" if row.crl.next_update < now else None

    return [
        Field(
            _translate("Revocation", "CA"),
            lambda row: row.name,
            icon=lambda row: ("authority", "link" if row.own else "muted"),
            strong=lambda row: row.own,
        ),
        Field(_translate("Revocation", "State"), lambda row: row.owner),
        Field(
            _translate("Revocation", "CRL"),
            lambda row: "–" if row.crl is None else str(row.crl.number),
            sort=lambda row: None if row.crl is None else row.crl.number,
            right=True,
        ),
        Field(
            _translate("Revocation", "Revoked"),
            lambda row: "–" if row.crl is None else str(row.revoked),
            sort=lambda row: row.revoked,
            right=True,
        ),
        Field(
            _translate("Revocation", "Next by"),
            lambda row: _translate("Revocation", "none known") if row.crl is None else day(row.crl.next_update),
            tooltip=_crl_times,
            sort=lambda row: None if row.crl is None else row.crl.next_update,
            tone=tone,
        ),
    ]


def _valid_until(row: IssuedRow) -> str:
    until = day(row.record.certificate.not_valid_after_utc)
    return _translate("Revocation", "{name}, until {day}").format(name=row.name, day=until)


def _crl_times(row: CrlRow) -> str:
    if row.crl is None:
        return ""
    said = _translate("Revocation", "Published {published}, next by {next}")
    return said.format(published=moment(row.crl.this_update), next=moment(row.crl.next_update))


def _revoked_text(row: IssuedRow) -> str:
    revoked = row.record.revoked
    return "" if revoked is None else f"{day(revoked.at)}, {REASONS[revoked.reason]}"


def show_records(table: DataTable, model: RecordModel[Row], records: Sequence[Row]) -> None:
    """Show them, with the same row chosen as before."""
    chosen = {model.record(index.row()).certificate_id for index in table.selectionModel().selectedRows()}
    model.set_records(records)
    for place, record in enumerate(model.records()):
        if record.certificate_id in chosen:
            table.selectRow(place)
    table.fit_columns()
