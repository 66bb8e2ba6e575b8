"""CSRs of this console's own States: create key pair and CSR, and import the certificate that was issued for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from cryptography import x509

from labconsole.errors import BadInput
from labconsole.model.operation import HomePath, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.output.export_file import must_be_new_files
from labconsole.security.pki import keys
from labconsole.security.pki.keys import MadeKey
from labconsole.security.pki.records import (
    CertificateRecord,
    Item,
    KeyRecord,
    Origin,
    RequestRecord,
    RequestStatus,
    State,
)
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509 import parsing
from labconsole.security.x509.certificate_profiles import AUTHORITIES, TEXTS, CertificateProfile
from labconsole.security.x509.csrs import create_csr
from labconsole.security.x509.issuing import check_names
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.names import name_as_text, short_name
from labconsole.security.x509.signatures import issued_by
from labconsole_certificates.operations.certificate_import import add_chain, profile_of
from labconsole_certificates.operations.export import Form, exported, write_export
from labconsole_certificates.operations.issuing import alternative_names, must_be_within, subject_of
from labconsole_certificates.operations.new_keys import NewKey, made_key, secrets_of
from labconsole_certificates.operations.parameter_fields import (
    Encoded,
    EndProfile,
    Names,
    NewKeyParameters,
    Subject,
    new_file,
)
from labconsole_certificates.operations.pki_operation import PkiOperation, with_fingerprint
from labconsole_certificates.operations.received_csrs import UNDECIDED
from labconsole_certificates.operations.record_lookup import local_state_named, must_be_local, state_named


def make_request(
    store: PkiStore,
    requester: State,
    issuer: State,
    new: NewKey | KeyRecord,
    profile: CertificateProfile,
    *,
    subject: str = "",
    names: Sequence[str] = (),
    prompt: Prompt | None = None,
) -> RequestRecord:
    """As client: create a CSR for the CA of `issuer`, with a new key pair (or `new`, an existing key).

    `subject` is RFC 4514 text, `names` are subject alternative names: `bücher.example`, `IP:192.0.2.1`, `URI:...`,
    `email:...`. Raises UserError: a value is faulty, no passphrase; nothing changed.
    """
    must_be_local(requester)
    name, alternatives = subject_of(requester, profile, subject), alternative_names(names)
    check_names(profile, alternatives)
    must_be_within(requester, alternatives)
    with _key(store.directory, new, f"{requester.name} {TEXTS[profile].title}", prompt) as (private, ready):
        csr = create_csr(private, name, alternatives, profile)
        with store.change() as change:
            if ready is not None:
                ready.record(change, requester)
            return change.add_request(
                csr, requester=requester.id, issuer=issuer.id, profile=profile, status=RequestStatus.MADE
            )


def import_certificate(store: PkiStore, data: bytes, sender: State | None = None) -> CertificateRecord:
    """As client: import the certificate (first of `data`, PEM, DER or a chain) that was issued for an own request.

    Its issuers in `data` are imported too (but not trusted by that); the request becomes approved.
    Raises UserError: no request here belongs to it, or a CA of the State that was asked is known here, and did not
    issue it; nothing changed.
    """
    certificate, *chain = parsing.read_certificates(data)
    snapshot = store.snapshot()
    request = _request_for(snapshot, certificate, chain)
    issuer = snapshot.state_by_id[request.issuer]
    with store.change() as change:
        add_chain(change, chain, issuer.id)
        profile = profile_of(certificate) or request.profile
        record = change.add_certificate(certificate, state=request.requester, profile=profile, origin=Origin.IMPORTED)
        if request.status in UNDECIDED:
            change.approve_request(request.id, record.id)
        change.hand_over((sender or issuer).id, request.requester, Item.CERTIFICATE, record.sha256)
    return record


def _request_for(snapshot: Snapshot, certificate: x509.Certificate, chain: Sequence[x509.Certificate]) -> RequestRecord:
    """The own request that `certificate` answers. Raises BadInput: there is none, or it was refused."""
    key = certificate.public_key()
    ours = [request for request in reversed(snapshot.requests) if request.csr.public_key() == key]
    if not ours:
        raise BadInput(
            f"No request here has the key of {short_name(certificate)}: take it in as a certificate of its State "
            "instead."
        )
    waiting = []
    for request in ours:
        record = snapshot.certificate_by_id.get(request.certificate or 0)
        if record is not None and record.certificate == certificate:
            return request
        if request.status in UNDECIDED:
            waiting.append(request)
    if not waiting:
        raise BadInput(
            f"Request {ours[0].id} has another certificate already: create a new request for {short_name(certificate)}."
        )
    for request in waiting:
        if _can_be_of(snapshot, request.issuer, certificate, chain):
            return request
    asked = snapshot.state_by_id[waiting[0].issuer].name
    raise BadInput(
        f"{short_name(certificate)} has the key of request {waiting[0].id}, and was not issued by a CA of {asked} that "
        f"is known here: take the newest trust bundle of {asked} in first, and if that does not help, ask {asked}."
    )


def _can_be_of(
    snapshot: Snapshot, state: int, certificate: x509.Certificate, chain: Sequence[x509.Certificate]
) -> bool:
    """Whether a known CA of `state` issued it, over `chain` or not; True while none is known."""
    newly = [one.certificate for one in snapshot.certificates if one.state == state and one.profile in AUTHORITIES]
    if not newly:
        return True
    remaining = list(chain)
    while newly:
        if any(issued_by(certificate, authority) for authority in newly):
            return True
        newly = [one for one in remaining if any(issued_by(one, authority) for authority in newly)]
        remaining = [one for one in remaining if one not in newly]
    return False


@contextmanager
def _key(
    directory: Path, new: NewKey | KeyRecord, label: str, prompt: Prompt | None
) -> Iterator[tuple[PrivateKey, MadeKey | None]]:
    """The private key that signs the CSR, and the same key if it is new."""
    if isinstance(new, KeyRecord):
        with keys.opened_key(directory, new, prompt) as private:
            yield private, None
    else:
        with made_key(directory, new, label, prompt) as ready:
            yield ready.private, ready


class CreateRequestParameters(NewKeyParameters):
    """A key pair and a CSR to create."""

    issuer: str = parameter(
        "For the CA of",
        "State whose CA is asked to certify",
        min_length=1,
        option="--issuing-state",
        aliases=["--to"],
        metavar="STATE",
    )
    profile: EndProfile = CertificateProfile.TLS_CLIENT
    subject: Subject = ""
    names: Names = ()
    file: HomePath | None = new_file("the CSR")
    form: Encoded = "pem"


class CreateRequest(PkiOperation[CreateRequestParameters]):
    """Creates a key pair and a CSR."""

    name: ClassVar[str] = "certificates.make-request"
    title: ClassVar[str] = "Create a key and a CSR"
    description: ClassVar[str] = (
        "Creates a key pair, which never leaves this console, and a certificate signing request (CSR) for it, to be "
        "sent to the State whose CA is to certify it."
    )
    parameters: ClassVar[type[Parameters]] = CreateRequestParameters

    def needs(
        self, parameters: CreateRequestParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        local_state_named(snapshot, parameters.state)
        state_named(snapshot, parameters.issuer)
        if parameters.file is not None:
            must_be_new_files(parameters.file)
        return secrets_of(parameters.new_key())

    def work(
        self, parameters: CreateRequestParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        snapshot, file = store.snapshot(), parameters.file
        request = make_request(
            store,
            state_named(snapshot, parameters.state),
            state_named(snapshot, parameters.issuer),
            parameters.new_key(),
            parameters.profile,
            subject=parameters.subject,
            names=parameters.names,
            prompt=prompt,
        )
        subject = name_as_text(request.csr.subject)
        if file is None:
            said = f"Send its CSR to {parameters.issuer}."
        else:
            write_export(file, exported(snapshot, request, Form(parameters.form)))
            said = f"{file} contains its CSR, for {parameters.issuer}."
        data = {"request": request.id, "subject": subject, "from": parameters.state, "to": parameters.issuer}
        return Result((f"Request {request.id} was created: {subject}", said), data)


class ImportCertificateParameters(Parameters):
    """A certificate that was issued for a CSR of this console."""

    file: HomePath = parameter("Certificate", "File with the certificate, and its chain (PEM, DER)", positional=True)
    sender: str = parameter(
        "From",
        "State that sent it; empty: the one that was asked",
        default="",
        option="--from",
        metavar="STATE",
        empty="The State that was asked",
    )


class ImportCertificate(PkiOperation[ImportCertificateParameters]):
    """Imports the certificate that was issued for a CSR created here."""

    name: ClassVar[str] = "certificates.take-certificate"
    title: ClassVar[str] = "Import an issued certificate"
    description: ClassVar[str] = (
        "Imports the certificate that another State issued for a CSR of this console, with its chain. The key is here "
        "already."
    )
    parameters: ClassVar[type[Parameters]] = ImportCertificateParameters

    def work(
        self, parameters: ImportCertificateParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        sender = state_named(store.snapshot(), parameters.sender) if parameters.sender else None
        record = import_certificate(store, parsing.read_file(parameters.file, "certificate file"), sender)
        return with_fingerprint(f"The certificate of {short_name(record.certificate)} was imported.", record)
