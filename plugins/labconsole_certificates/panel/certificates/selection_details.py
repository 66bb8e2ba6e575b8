"""The details of a selection for the pane: read and described in the background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from cryptography import x509

from labconsole.security.certificate_status import StatusKind
from labconsole.security.pki.records import CertificateRecord, FileKey, Origin, State, TokenKey
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole.security.x509.fingerprints import grouped
from labconsole.security.x509.names import short_name
from labconsole_certificates.describing.comparison import Comparison, compare
from labconsole_certificates.describing.description import Description, Row, Section
from labconsole_certificates.describing.oid_names import REASONS
from labconsole_certificates.describing.pki_objects import describe
from labconsole_certificates.operations.export_formats import as_der, as_pem, chain_as_pem
from labconsole_certificates.panel.certificates.tree_nodes import Node
from labconsole_certificates.panel.export_bar import ExportItem
from labconsole_certificates.panel.labels import moment
from labconsole_certificates.panel.tab import DatabaseReading

_ORIGINS = {
    Origin.SELF_SIGNED: "Created here, signed by itself",
    Origin.ISSUED: "Issued here",
    Origin.LINK: "Created here, a link certificate of a rotation",
    Origin.IMPORTED: "Imported",
    Origin.BUNDLE: "Came with a trust bundle",
}
_LISTED = 40
"""Number of certificates that are named of a larger selection."""
_GOOD = (StatusKind.VALID, StatusKind.EXPIRING)


@dataclass(frozen=True)
class SelectionDetails:
    """The content of the pane: a description or a comparison, and the objects that can be exported."""

    keys: tuple[str, ...]
    """Keys of the selected nodes; empty for files."""
    title: str
    body: Description | Comparison | None
    export_item: ExportItem | None = None
    record: CertificateRecord | None = None
    """The certificate, if it is about one."""
    state: State | None = None
    """The State, if it is about one."""


def selection_details(
    nodes: Sequence[Node], pinned: x509.Certificate | None, reading: DatabaseReading
) -> Callable[[], SelectionDetails] | None:
    """The work that reads the details of these lines, compared with `pinned` if given; None: nothing to show."""
    records = tuple(node.record for node in nodes if node.record is not None)
    if len(nodes) == 1 and nodes[0].state is not None and not records:
        return partial(state_shown, nodes[0].state, reading)
    if len(records) == 2:
        return partial(two_shown, records[0].certificate, records[1].certificate, records)
    if len(records) == 1:
        if pinned is not None and pinned != records[0].certificate:
            return partial(two_shown, pinned, records[0].certificate, records)
        return partial(certificate_shown, records[0], reading)
    return partial(several_shown, records) if records else None


def certificate_shown(record: CertificateRecord, reading: DatabaseReading) -> SelectionDetails:
    """The details of one certificate: its state in this console first, then its contents."""
    description = describe(record.certificate)
    here = Section("In this console", tuple(_here(record, reading)))
    body = Description(description.title, (here, *description.sections))
    chain = (record, *reading.snapshot.chain_of(record))
    forms = {"pem": as_pem(record.certificate), "der": as_der(record.certificate)}
    if len(chain) > 1:
        forms["chain.pem"] = chain_as_pem([link.certificate for link in chain])
    name = short_name(record.certificate)
    return SelectionDetails(
        (f"certificate:{record.id}",), name, body, ExportItem(name, "certificate", forms), record=record
    )


def several_shown(records: tuple[CertificateRecord, ...]) -> SelectionDetails:
    """Several certificates: their names, and all of them as one PEM."""
    rows = [Row(short_name(one.certificate), grouped(one.sha256[:16]), fixed_width=True) for one in records[:_LISTED]]
    if len(records) > _LISTED:
        rows.append(Row("and more", str(len(records) - _LISTED)))
    title = f"{len(records)} certificates"
    forms = {"pem": chain_as_pem([record.certificate for record in records])}
    body = Description(title, (Section("Selected", tuple(rows)),))
    return SelectionDetails(_keys(records), title, body, ExportItem("certificates", title, forms))


def two_shown(
    left: x509.Certificate, right: x509.Certificate, records: tuple[CertificateRecord, ...]
) -> SelectionDetails:
    """Two certificates side by side; `records` are those of them that are selected."""
    return SelectionDetails(
        _keys(records),
        f"{short_name(left)} and {short_name(right)}",
        compare(left, right),
        ExportItem("certificates", "two certificates", {"pem": chain_as_pem([left, right])}),
    )


def state_shown(state: State, reading: DatabaseReading) -> SelectionDetails:
    """The details of a State."""
    snapshot = reading.snapshot
    own = [record for record in snapshot.certificates if record.state == state.id and record.removed is None]
    authorities = [record for record in own if record.profile in AUTHORITIES]
    rows = [
        Row("Name", state.name),
        Row(
            "Domain",
            ", ".join(state.domain.split()) or "None claimed: its certificates may have any name",
            warning=not state.domain,
        ),
        Row("Keys", "With this console" if state.local else "With another console: it sends requests and bundles"),
        Row("Known since", moment(state.made)),
    ]
    sections = [Section("State", tuple(rows))]
    if authorities:
        sections.append(Section("Its authorities", tuple(_line(record, reading) for record in authorities)))
    ends = [record for record in own if record not in authorities]
    if ends:
        sections.append(Section("Certificates for it", tuple(_line(record, reading) for record in ends)))
    return SelectionDetails((f"state:{state.id}",), state.name, Description(state.name, tuple(sections)), state=state)


def _line(record: CertificateRecord, reading: DatabaseReading) -> Row:
    status = reading.statuses.get(record.id)
    until = f"until {moment(record.certificate.not_valid_after_utc)}"
    said = until if status is None else f"{status.kind.value.replace('-', ' ')}, {until}"
    return Row(short_name(record.certificate), said, warning=status is not None and status.kind not in _GOOD)


def _here(record: CertificateRecord, reading: DatabaseReading) -> list[Row]:
    snapshot = reading.snapshot
    status = reading.statuses.get(record.id)
    rows = []
    if status is not None:
        rows.append(Row("Status", status.cause, warning=status.kind is not StatusKind.VALID))
    state = snapshot.state_by_id.get(record.state) if record.state is not None else None
    rows.append(Row("State", state.name if state is not None else "Not known"))
    rows.append(Row("Private key", _key_place(record, snapshot)))
    identities = [identity.name for identity in snapshot.identities if identity.certificate == record.id]
    if identities:
        rows.append(Row("Name in trials", ", ".join(identities)))
    trusting = _trusting(record, snapshot)
    if trusting:
        rows.append(Row("Trusted by", trusting))
    rows.append(Row("Came here", f"{_ORIGINS[record.origin]}, {moment(record.made)}"))
    if record.revoked is not None:
        said = f"{moment(record.revoked.at)}, {REASONS[record.revoked.reason]}"
        rows.append(Row("Revoked", said, warning=True))
    if record.removed is not None:
        rows.append(Row("Removed", f"{moment(record.removed)}: it is hidden, and can be restored"))
    return rows


def _key_place(record: CertificateRecord, snapshot: Snapshot) -> str:
    key = snapshot.key_by_id.get(record.key) if record.key is not None else None
    if key is None:
        return "Not here"
    match key.place:
        case FileKey(file=file):
            return f"Here, in the encrypted file {file}"
        case TokenKey(token=token, label=label):
            return f"In the token {token}, called {label}: it never leaves it"


def _trusting(record: CertificateRecord, snapshot: Snapshot) -> str:
    rows = [row for row in snapshot.trust if row.certificate == record.id and row.withdrawn is None]
    return ", ".join(f"{snapshot.state_by_id[row.state].name} ({row.confirmed})" for row in rows)


def _keys(records: tuple[CertificateRecord, ...]) -> tuple[str, ...]:
    return tuple(f"certificate:{record.id}" for record in records)
