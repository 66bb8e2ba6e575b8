"""The table of requests, and the details of one: its contents, its problems, and its actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from labconsole.security.pki.domains import notice
from labconsole.security.pki.records import CertificateRecord, RequestRecord, RequestStatus
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.certificate_profiles import TEXTS
from labconsole.security.x509.csrs import CsrJudgement
from labconsole.security.x509.names import short_name
from labconsole_certificates.describing.description import Description
from labconsole_certificates.describing.pki_objects import describe
from labconsole_certificates.operations.export import Form, exported
from labconsole_certificates.operations.received_csrs import judged
from labconsole_certificates.panel.description_view import DescriptionView
from labconsole_certificates.panel.export_bar import ExportBar, ExportItem
from labconsole_certificates.panel.labels import REQUEST_STYLES, day, moment
from labconsole_ui.tables.record_table import Field
from labconsole_ui.theme.theme import FontRole, Theme
from labconsole_ui.widgets.labels import IconLabel, plain_label

_translate = QCoreApplication.translate


@dataclass(frozen=True)
class RequestRow:
    """A request with the names of its States."""

    record: RequestRecord
    requester: str
    issuer: str
    subject: str


def rows_of(snapshot: Snapshot, subjects: Mapping[str, str]) -> list[RequestRow]:
    """All requests, the newest first. `subjects` are the names of inspected ones, by fingerprint."""
    states = snapshot.state_by_id
    return [
        RequestRow(
            request, states[request.requester].name, states[request.issuer].name, subjects.get(request.sha256, "")
        )
        for request in sorted(snapshot.requests, key=lambda request: request.id, reverse=True)
    ]


def subjects_of(snapshot: Snapshot, known: Mapping[str, str]) -> dict[str, str]:
    """Names of the requests that are not `known` yet; takes time, for each is parsed."""
    return {request.sha256: short_name(request.csr) for request in snapshot.requests if request.sha256 not in known}


def status_text(status: RequestStatus) -> str:
    """A request's status in a word or two."""
    return {
        RequestStatus.MADE: _translate("Requests", "created, not sent"),
        RequestStatus.RECEIVED: _translate("Requests", "to be decided"),
        RequestStatus.APPROVED: _translate("Requests", "approved"),
        RequestStatus.REFUSED: _translate("Requests", "refused"),
    }[status]


def fields() -> list[Field[RequestRow]]:
    """The columns of the table."""
    return [
        Field(
            _translate("Requests", "No."),
            lambda row: str(row.record.id),
            sort=lambda row: row.record.id,
            right=True,
        ),
        Field(
            _translate("Requests", "Status"),
            lambda row: status_text(row.record.status),
            icon=lambda row: REQUEST_STYLES[row.record.status],
            tooltip=lambda row: row.record.reason or status_text(row.record.status),
        ),
        Field(_translate("Requests", "From"), lambda row: row.requester, strong=lambda row: True),
        Field(_translate("Requests", "To CA of"), lambda row: row.issuer),
        Field(_translate("Requests", "For"), lambda row: row.subject),
        Field(_translate("Requests", "Profile"), lambda row: TEXTS[row.record.profile].title),
        Field(
            _translate("Requests", "Since"),
            lambda row: day(row.record.made),
            sort=lambda row: row.record.made,
            tooltip=lambda row: moment(row.record.made),
        ),
    ]


@dataclass(frozen=True)
class RequestDetails:
    """A request with its details, which take time to find out."""

    row: RequestRow
    description: Description
    judgement: CsrJudgement
    notice: str
    """A warning of names that are accepted because the requester claims no domain; or empty."""
    local_issuer: bool
    certificate: CertificateRecord | None
    export_item: ExportItem | None
    """The next export for the other State: the CSR, or certificate and chain."""


def request_details(row: RequestRow, snapshot: Snapshot) -> RequestDetails:
    """Inspect a request; takes some milliseconds."""
    record = row.record
    states = snapshot.state_by_id
    requester = states[record.requester]
    judgement = judged(record.csr, requester)
    issued = None if record.certificate is None else snapshot.certificate_by_id[record.certificate]
    return RequestDetails(
        row,
        describe(record.csr),
        judgement,
        notice(snapshot, requester, judgement.names),
        states[record.issuer].local,
        issued,
        _export_item(row, snapshot, issued),
    )


def _export_item(row: RequestRow, snapshot: Snapshot, issued: CertificateRecord | None) -> ExportItem | None:
    name = f"{row.requester}-for-{row.issuer}"
    if issued is not None:
        forms = {
            "pem": exported(snapshot, issued, Form.CHAIN),
            "der": exported(snapshot, issued, Form.DER),
        }
        return ExportItem(f"{name}-certificate", f"certificate and chain for {row.requester}", forms)
    if row.record.status is RequestStatus.MADE:
        forms = {"pem": exported(snapshot, row.record), "der": exported(snapshot, row.record, Form.DER)}
        return ExportItem(f"{name}-request", f"request of {row.requester}", forms)
    return None


class RequestPane(QFrame):
    """Shows one request. `approve_wanted` and `refuse_wanted` carry its record, `receive_wanted` one created here for a
    State of this console as well; `exported` and `failed` report its export."""

    approve_wanted = Signal(object)
    refuse_wanted = Signal(object)
    receive_wanted = Signal(object)
    exported = Signal(object, str)
    failed = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("card", True)
        self._details: RequestDetails | None = None
        self._icon = IconLabel(theme, "info", 20, "muted")
        self.title = plain_label("", self)
        self.title.setFont(theme.font(FontRole.HEADING))
        self.title.setWordWrap(True)
        self.verdict = plain_label("", self)
        self.verdict.setWordWrap(True)
        self.verdict.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.description = DescriptionView(theme, self)
        self.approve_button = self._button(self.tr("&Approve …"), self.approve_wanted.emit, primary=True)
        self.refuse_button = self._button(self.tr("&Refuse …"), self.refuse_wanted.emit)
        self.receive_button = self._button("", self.receive_wanted.emit, primary=True)
        self.export_bar = ExportBar(theme, self)
        self.export_bar.exported.connect(self._exported)
        self.export_bar.failed.connect(self.failed)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self.title, 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for widget in (self.approve_button, self.refuse_button, self.receive_button, self.export_bar):
            buttons.addWidget(widget)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 12, 10)
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self.verdict)
        column.addWidget(self.description, 1)
        column.addLayout(buttons)
        self.show_details(None)

    @property
    def details(self) -> RequestDetails | None:
        """The request that is shown."""
        return self._details

    def show_details(self, details: RequestDetails | None, nothing: str = "") -> None:
        """Show a request; without one, `nothing` as the reason."""
        self._details = details
        for widget in (self._icon, self.verdict, self.description):
            widget.setVisible(details is not None)
        status = None if details is None else details.row.record.status
        open_here = details is not None and status is RequestStatus.RECEIVED and details.local_issuer
        self.approve_button.setVisible(open_here)
        self.approve_button.setEnabled(details is not None and not details.judgement.problems)
        self.refuse_button.setVisible(open_here)
        self.receive_button.setVisible(details is not None and status is RequestStatus.MADE and details.local_issuer)
        self.export_bar.show_item(None if details is None else details.export_item)
        if details is None:
            self.title.setText(nothing or self.tr("Choose a request to see all that is in it."))
            return
        row = details.row
        self.title.setText(
            self.tr("Request {number} of {requester} to the CA of {issuer}: {status}").format(
                number=row.record.id, requester=row.requester, issuer=row.issuer, status=status_text(row.record.status)
            )
        )
        self.receive_button.setText(self.tr("&Give to {issuer}").format(issuer=row.issuer))
        self._judge(details)
        self.description.show_description(details.description)

    def _judge(self, details: RequestDetails) -> None:
        if details.row.record.reason:
            icon, tone = "cancelled", "bad"
            text = self.tr("Refused: {reason}").format(reason=details.row.record.reason)
        elif details.judgement.problems:
            icon, tone, text = "error", "bad", "\n".join(details.judgement.problems)
        elif details.notice or details.judgement.warnings:
            icon, tone = "warning", "warning"
            text = self.tr("Its signature proves that the sender has the private key. {notice}").format(
                notice=" ".join(filter(None, (*details.judgement.warnings, details.notice)))
            )
        else:
            icon, tone = "good", "good"
            text = self.tr("Its signature proves that the sender has the private key. Nothing speaks against it.")
        self._icon.show_icon(icon, tone)
        self.verdict.setProperty("tone", tone)
        self.verdict.style().unpolish(self.verdict)
        self.verdict.style().polish(self.verdict)
        self.verdict.setText(text)

    def _exported(self, how: str) -> None:
        if self._details is not None:
            self.exported.emit(self._details, how)

    def _button(self, text: str, wanted: Callable[[RequestRecord], object], *, primary: bool = False) -> QPushButton:
        button = QPushButton(text, self)
        button.setProperty("primary", primary)
        button.clicked.connect(lambda _checked: self._want(wanted))
        return button

    def _want(self, wanted: Callable[[RequestRecord], object]) -> None:
        if self._details is not None:
            wanted(self._details.row.record)
