"""Opens the dialog that names a certificate with its key for AMQP trials."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication

from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import AUTHORITIES
from labconsole.security.x509.names import short_name
from labconsole_certificates.panel.form_editors import one_of
from labconsole_certificates.panel.labels import day, profile_text
from labconsole_certificates.panel.tab import TabServices
from labconsole_ui.operations.operation_dialog import OperationDialog

_translate = QCoreApplication.translate


def open_naming(
    services: TabServices, snapshot: Snapshot, states: Sequence[State], chosen: CertificateRecord | None = None
) -> OperationDialog:
    """Open `certificates.name`, with a choice of the end certificates of these States whose key is stored here.

    `chosen` is proposed; without it the newest.
    """
    names = {state.id: state.name for state in states}
    offered = [
        (record.sha256, _described(record, names[record.state]))
        for record in reversed(snapshot.certificates)
        if record.key is not None
        and record.removed is None
        and record.profile not in AUTHORITIES
        and record.state in names
    ]
    proposed = next(iter(offered), ("", ""))[0] if chosen is None else chosen.sha256
    return services.open_action("certificates.name", {"certificate": proposed}, {"certificate": one_of(offered)})


def _described(record: CertificateRecord, state: str) -> str:
    return _translate("Naming", "{state}: {name}, {profile}, until {day}").format(
        state=state,
        name=short_name(record.certificate),
        profile=profile_text(record),
        day=day(record.certificate.not_valid_after_utc),
    )
