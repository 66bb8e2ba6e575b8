"""CSRs received by a CA of this console: imports them, and approves or refuses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar

from cryptography import x509

from labconsole.errors import BadInput, UserError
from labconsole.model.operation import HomePath, OperationContext, Result, TextTable
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.output.export_file import must_be_new_files
from labconsole.security.pki.domains import notice, refusal
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord, Item, Origin, RequestRecord, RequestStatus, State
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509 import parsing
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.csrs import CsrJudgement, judge_csr
from labconsole.security.x509.issuing import issue
from labconsole.security.x509.key_types import PublicKey
from labconsole.security.x509.names import brief_name, name_from_text, short_name
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.export import Form, exported, note_handover, write_export
from labconsole_certificates.operations.issuing import (
    alternative_names,
    must_be_accepted,
    must_be_within,
    opened_issuer,
)
from labconsole_certificates.operations.parameter_fields import (
    AuthorityChoice,
    Days,
    NoParameters,
    RequestedProfile,
    UnlockParameters,
    new_file,
)
from labconsole_certificates.operations.pki_operation import PkiOperation, PkiReport, key_secrets, with_fingerprint
from labconsole_certificates.operations.record_lookup import (
    authority_of,
    local_state_named,
    must_be_local,
    must_be_of,
    request_numbered,
    state_named,
)
from labconsole_certificates.operations.states import found_or_added

END_DAYS = 365

UNDECIDED = (RequestStatus.MADE, RequestStatus.RECEIVED)
_POSITIONAL: dict[str, Any] = {"positional": True}


def judged(csr: x509.CertificateSigningRequest, requester: State) -> CsrJudgement:
    """The problems of a CSR (`judge_csr`), including names outside the domain of `requester`."""
    judgement = judge_csr(csr)
    refused = refusal(requester, judgement.names)
    return replace(judgement, problems=(*judgement.problems, refused)) if refused else judgement


def import_request(
    store: PkiStore, requester: State | str, issuer: State, data: bytes, profile: CertificateProfile | None = None
) -> RequestRecord:
    """As server: import a CSR (PEM or DER) of `requester` for the CA of the local State `issuer`.

    `requester` may be a name: a State of another console is added if none is called so.
    `profile`: its purpose, if known; else by its extended key usage, else TLS client. A CSR created by this console for
    another of its States becomes received.
    Raises BadInput: not a CSR, or its signature does not prove that the requester has the key; nothing changed.
    """
    must_be_local(issuer)
    csr = parsing.read_csr(data)
    judgement = judge_csr(csr)
    if not judgement.proof_of_possession:
        sender = requester if isinstance(requester, str) else requester.name
        raise BadInput(
            f"The CSR of {short_name(csr)} is not signed with the key in it, so possession of that key is not proved: "
            f"ask {sender} for a new one."
        )
    chosen = profile or judgement.profile or CertificateProfile.TLS_CLIENT
    with store.change() as change:
        known = found_or_added(change, requester) if isinstance(requester, str) else requester
        request = change.add_request(
            csr, requester=known.id, issuer=issuer.id, profile=chosen, status=RequestStatus.RECEIVED
        )
        change.hand_over(known.id, issuer.id, Item.CSR, request.sha256)
    return request


def approve(
    store: PkiStore,
    request: RequestRecord,
    *,
    authority: CertificateRecord | None = None,
    profile: CertificateProfile | None = None,
    days: int = END_DAYS,
    subject: str = "",
    names: Sequence[str] = (),
    crl_url: str = "",
    ocsp_url: str = "",
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """Issue the certificate for a CSR; all extensions but the names come from the profile.

    Subject and names default to those of the CSR.

    `authority`: CA certificate of the issuing State; None: the first that can issue.
    Raises UserError: decided already, asks for CA rights or has other problems (`judge_csr`), a name is outside the
    CA's name constraints, the CA is expired, revoked or ends earlier, its key is not here, or the key in the CSR was
    compromised; nothing changed.
    """
    _must_be_undecided(request)
    snapshot = store.snapshot()
    state = must_be_local(snapshot.state_by_id[request.issuer])
    judgement = judge_csr(request.csr)
    public_key = request.csr.public_key()
    if judgement.problems or not isinstance(public_key, PublicKey):
        raise UserError(f"Request {request.id} was not approved. {' '.join(judgement.problems)}")
    _must_not_be_compromised(snapshot, request)
    chosen, validity = profile or request.profile, Validity.for_days(days)
    who = name_from_text(subject) if subject.strip() else request.csr.subject
    alternatives = alternative_names(names) if names else judgement.names
    must_be_within(snapshot.state_by_id[request.requester], alternatives)
    found = must_be_of(snapshot, authority or authority_of(snapshot, state, "", datetime.now(UTC)), state)
    with opened_issuer(store.directory, snapshot, found, prompt) as issuer:
        certificate = issue(issuer, public_key, who, alternatives, chosen, validity, crl_url=crl_url, ocsp_url=ocsp_url)
        must_be_accepted(certificate, issuer)
    with store.change() as change:
        record = change.add_certificate(certificate, state=request.requester, profile=chosen, origin=Origin.ISSUED)
        change.approve_request(request.id, record.id)
    return record


def refuse(store: PkiStore, request: RequestRecord, reason: str) -> None:
    """Refuse the request. Raises UserError: decided already, or no reason is given."""
    with store.change() as change:
        change.refuse_request(request.id, reason)


def _must_not_be_compromised(snapshot: Snapshot, request: RequestRecord) -> None:
    """Raises UserError: a certificate for the key of the CSR was revoked since others may have that key."""
    key = request.csr.public_key()
    for record in snapshot.certificates:
        revoked = record.revoked is not None and record.revoked.reason is x509.ReasonFlags.key_compromise
        if revoked and record.certificate.public_key() == key:
            raise UserError(
                f"Request {request.id} was not approved: {short_name(record.certificate)} has the same key, and was "
                "revoked because that key was compromised. Ask for a CSR with a new key."
            )


def _must_be_undecided(request: RequestRecord) -> None:
    if request.status not in UNDECIDED:
        raise UserError(f"Request {request.id} is {request.status} already: ask for a new one.")


class ListRequests(PkiReport[NoParameters]):
    """Lists the CSRs."""

    name: ClassVar[str] = "certificates.requests"
    title: ClassVar[str] = "Requests"
    description: ClassVar[str] = "Lists the CSRs that were created and received, and what became of them."
    parameters: ClassVar[type[Parameters]] = NoParameters

    def read(self, parameters: NoParameters, reader: PkiReader) -> Result:
        snapshot = reader.snapshot()
        found = [_data(snapshot, request) for request in snapshot.requests]
        headings = ("Request", "Subject", "Profile", "From", "To", "Status", "Reason")
        rows = tuple(tuple(map(str, one.values())) for one in found)
        return Result((TextTable(headings, rows),), {"requests": found})


class ImportRequestParameters(Parameters):
    """A CSR from another State."""

    file: HomePath = parameter("CSR", "File with the CSR (PEM, DER)", **_POSITIONAL)
    sender: str = parameter("From", "State that sent it", min_length=1, option="--from", metavar="STATE")
    receiver: str = parameter(
        "To", "State of this console whose CA is asked", min_length=1, option="--to", metavar="STATE"
    )
    profile: RequestedProfile = None
    add_state: bool = parameter(
        "Add the State", "As one of another console, if none is called as the sender", default=False
    )


class ImportRequest(PkiOperation[ImportRequestParameters]):
    """Imports another State's CSR."""

    name: ClassVar[str] = "certificates.take-csr"
    title: ClassVar[str] = "Import a CSR"
    description: ClassVar[str] = (
        "Imports the CSR of another State, if its signature proves that the sender has the key. Nothing is issued yet."
    )
    parameters: ClassVar[type[Parameters]] = ImportRequestParameters

    def work(
        self, parameters: ImportRequestParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        snapshot, sender = store.snapshot(), parameters.sender
        request = import_request(
            store,
            sender if parameters.add_state else state_named(snapshot, sender),
            local_state_named(snapshot, parameters.receiver),
            parsing.read_file(parameters.file, "CSR"),
            parameters.profile,
        )
        snapshot = store.snapshot()
        text = f"Request {request.id} is {request.status}: {brief_name(request.csr.subject)}, {request.profile}"
        return Result((text,), _data(snapshot, request), _warnings(snapshot, request))


RequestNumber = Annotated[
    int,
    parameter(
        "Request",
        "Its number in the list of requests (`labconsole pki requests`)",
        ge=1,
        **_POSITIONAL,
        metavar="NUMBER",
    ),
]


class ApproveRequestParameters(UnlockParameters):
    """A certificate to issue for a CSR."""

    request: RequestNumber
    authority: AuthorityChoice = ""
    profile: RequestedProfile = None
    valid_days: Days = END_DAYS
    subject: str = parameter(
        "Subject",
        "Another subject than the CSR's (RFC 4514); empty: the CSR's",
        default="",
        empty="As in the CSR",
        metavar="DN",
    )
    names: tuple[str, ...] = parameter(
        "Names",
        "Other names than the CSR's; none: the CSR's",
        default=(),
        empty="As in the CSR",
        option="--name",
        metavar="NAME",
    )
    crl_url: str = parameter(
        "CRL at",
        "URL that the certificate names for its CRL; empty: none",
        default="",
        empty="No address in the certificate",
        metavar="URL",
    )
    ocsp_url: str = parameter(
        "OCSP at",
        "URL that the certificate names for OCSP; empty: none",
        default="",
        empty="No address in the certificate",
        metavar="URL",
    )
    file: HomePath | None = new_file("certificate and chain, which count as sent then")

    def issuing_certificate(self, snapshot: Snapshot) -> CertificateRecord:
        """The CA certificate that issues. Raises UserError."""
        issuer = must_be_local(snapshot.state_by_id[request_numbered(snapshot, self.request).issuer])
        return authority_of(snapshot, issuer, self.authority, datetime.now(UTC))


class ApproveRequest(PkiOperation[ApproveRequestParameters]):
    """Issues the certificate that a CSR asks for."""

    name: ClassVar[str] = "certificates.approve-request"
    title: ClassVar[str] = "Approve and issue"
    description: ClassVar[str] = (
        "Issues a certificate for the key of the CSR. Its extensions come from the profile, whatever the CSR asks for."
    )
    parameters: ClassVar[type[Parameters]] = ApproveRequestParameters

    def needs(
        self, parameters: ApproveRequestParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        if parameters.file is not None:
            must_be_new_files(parameters.file)
        issuing = parameters.issuing_certificate(snapshot)
        return key_secrets(directory, snapshot, issuing, unlock=parameters.unlock())

    def work(
        self, parameters: ApproveRequestParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        snapshot, file = store.snapshot(), parameters.file
        request = request_numbered(snapshot, parameters.request)
        requester, issuer = snapshot.state_by_id[request.requester], snapshot.state_by_id[request.issuer]
        warnings = _warnings(snapshot, request)
        record = approve(
            store,
            request,
            authority=parameters.issuing_certificate(snapshot),
            profile=parameters.profile,
            days=parameters.valid_days,
            subject=parameters.subject,
            names=parameters.names,
            crl_url=parameters.crl_url,
            ocsp_url=parameters.ocsp_url,
            prompt=prompt,
        )
        issued = with_fingerprint(f"The certificate of {short_name(record.certificate)} was issued.", record)
        if file is None:
            said = f"Send it back to {requester.name}, with its chain."
        else:
            write_export(file, exported(store.snapshot(), record, Form.CHAIN))
            note_handover(store, record, issuer, requester)
            said = f"{file} contains the certificate and its chain, for {requester.name}."
        return Result((*issued.parts, said), {**issued.data, "request": request.id}, warnings)


class RefuseRequestParameters(Parameters):
    """A CSR to refuse."""

    request: RequestNumber
    reason: str = parameter(
        "Reason",
        "Why, for the State that asked",
        min_length=1,
        empty="As in: the host name is not yours",
        **_POSITIONAL,
    )


class RefuseRequest(PkiOperation[RefuseRequestParameters]):
    """Refuses a CSR."""

    name: ClassVar[str] = "certificates.refuse"
    title: ClassVar[str] = "Refuse a request"
    description: ClassVar[str] = "Refuses what a CSR asks for, with the reason. The decision is final."
    parameters: ClassVar[type[Parameters]] = RefuseRequestParameters

    def work(
        self, parameters: RefuseRequestParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        number = parameters.request
        refuse(store, request_numbered(store.snapshot(), number), parameters.reason)
        snapshot = store.snapshot()
        return Result((f"Request {number} was refused.",), _data(snapshot, request_numbered(snapshot, number)))


def _data(snapshot: Snapshot, request: RequestRecord) -> dict[str, Any]:
    """The JSON object of a request."""
    return {
        "request": request.id,
        "subject": brief_name(request.csr.subject),
        "profile": str(request.profile),
        "from": snapshot.state_by_id[request.requester].name,
        "to": snapshot.state_by_id[request.issuer].name,
        "status": str(request.status),
        "reason": request.reason,
    }


def _warnings(snapshot: Snapshot, request: RequestRecord) -> tuple[str, ...]:
    """The problems of a request, and names that are accepted since its State claims no domain."""
    requester = snapshot.state_by_id[request.requester]
    judgement = judged(request.csr, requester)
    unlimited = notice(snapshot, requester, judgement.names)
    return (*judgement.problems, *judgement.warnings, *([unlimited] if unlimited else ()))
