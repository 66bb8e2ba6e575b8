"""The CSR method, both sides: ask for a certificate, decide about what others ask, take in what was issued."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from labconsole.errors import UserError
from labconsole.security.pki import keys
from labconsole.security.pki.domains import refusal
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
from labconsole.security.secrets import Prompt
from labconsole.security.x509 import gate
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.issuing import issue
from labconsole.security.x509.issuing_rules import check_names
from labconsole.security.x509.key_types import PrivateKey, PublicKey
from labconsole.security.x509.names import name_from_text, short_name
from labconsole.security.x509.profiles import AUTHORITIES, TEXTS, CertificateProfile
from labconsole.security.x509.requests import CsrJudgement, judge_csr, make_csr
from labconsole.security.x509.signatures import issued_by
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.certificates_from_outside import add_chain, profile_of
from labconsole_certificates.operations.issuers import must_be_accepted, opened_issuer
from labconsole_certificates.operations.new_keys import NewKey, ReadyKey, made_key
from labconsole_certificates.operations.references import authority_of, must_be_local, must_be_of
from labconsole_certificates.operations.subjects import alternative_names, must_be_within, subject_of

END_DAYS = 365

_UNDECIDED = (RequestStatus.MADE, RequestStatus.RECEIVED)


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
    """As client: make a key pair (or take `new`, a key that is there) and a CSR for the CA of `issuer`.

    `subject` is RFC 4514 text, `names` are subject alternative names: `bücher.example`, `IP:192.0.2.1`, `URI:...`,
    `email:...`. Raises UserError: a value is faulty, no passphrase; nothing changed.
    """
    must_be_local(requester)
    name, alternatives = subject_of(requester, profile, subject), alternative_names(names)
    check_names(profile, alternatives)
    must_be_within(requester, alternatives)
    with _key(store.directory, new, f"{requester.name} {TEXTS[profile].title}", prompt) as (private, ready):
        csr = make_csr(private, name, alternatives, profile)
        with store.change() as change:
            if ready is not None:
                ready.record(change, requester)
            return change.add_request(
                csr, requester=requester.id, issuer=issuer.id, profile=profile, status=RequestStatus.MADE
            )


def judged(csr: x509.CertificateSigningRequest, requester: State) -> CsrJudgement:
    """What speaks against a CSR (`judge_csr`), names outside the domain of `requester` included."""
    judgement = judge_csr(csr)
    refused = refusal(requester, judgement.names)
    return replace(judgement, problems=(*judgement.problems, refused)) if refused else judgement


def take_in_request(
    store: PkiStore, requester: State, issuer: State, data: bytes, profile: CertificateProfile | None = None
) -> RequestRecord:
    """As server: take in a CSR (PEM or DER) of `requester` for the CA of the local State `issuer`.

    `profile`: what it is for, if known; else what its extended key usage says, else TLS client. A CSR made by this
    console for another State of this console becomes received.
    Raises BadInput: no CSR, or its signature does not prove that the requester has the key; nothing changed.
    """
    must_be_local(issuer)
    csr = gate.read_csr(data)
    judgement = judge_csr(csr)
    if not judgement.proof_of_possession:
        raise BadInput(
            f"The CSR of {short_name(csr)} is not signed with the key in it, so nobody has proved to hold that key: "
            f"ask {requester.name} for a new one."
        )
    chosen = profile or judgement.profile or CertificateProfile.TLS_CLIENT
    with store.change() as change:
        request = change.add_request(
            csr, requester=requester.id, issuer=issuer.id, profile=chosen, status=RequestStatus.RECEIVED
        )
        change.hand_over(requester.id, issuer.id, Item.CSR, request.sha256)
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
    """Issue what is asked for; subject and names that are not given stay as the CSR asks. All other extensions come
    from the profile alone.

    `authority`: with which CA certificate of the issuing State; None: the first that can.
    Raises UserError: decided already, asks for CA rights or has other problems (`judge_csr`), a name lies outside
    the CA's name constraints, the CA is expired, revoked or valid less long, its key is not here, or the key in the CSR
    was compromised; nothing changed.
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


def take_in_certificate(store: PkiStore, data: bytes, sender: State | None = None) -> CertificateRecord:
    """As client: take in the certificate (first of `data`, PEM, DER or a chain) that was issued for a request of ours.

    Its issuers in `data` are taken in too (that alone makes nobody trust them); the request becomes approved.
    Raises UserError: no request here belongs to it, or a CA of the State that was asked is known here, and did not
    issue it; nothing changed.
    """
    certificate, *chain = gate.read_certificates(data)
    snapshot = store.snapshot()
    request = _request_for(snapshot, certificate, chain)
    issuer = snapshot.state_by_id[request.issuer]
    with store.change() as change:
        add_chain(change, chain, issuer.id)
        profile = profile_of(certificate) or request.profile
        record = change.add_certificate(certificate, state=request.requester, profile=profile, origin=Origin.IMPORTED)
        if request.status in _UNDECIDED:
            change.approve_request(request.id, record.id)
        change.hand_over((sender or issuer).id, request.requester, Item.CERTIFICATE, record.sha256)
    return record


def _request_for(snapshot: Snapshot, certificate: x509.Certificate, chain: Sequence[x509.Certificate]) -> RequestRecord:
    """The request of ours to which `certificate` is the answer. Raises BadInput: there is none, or it was refused."""
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
        if request.status in _UNDECIDED:
            waiting.append(request)
    if not waiting:
        raise BadInput(
            f"Request {ours[0].id} has another certificate already: make a new request for {short_name(certificate)}."
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
    """Whether a CA of `state` that is known here issued it, over `chain` or not; so far as none is, nobody can tell."""
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
    if request.status not in _UNDECIDED:
        raise UserError(f"Request {request.id} is {request.status} already: ask for a new one.")


@contextmanager
def _key(
    directory: Path, new: NewKey | KeyRecord, label: str, prompt: Prompt | None
) -> Iterator[tuple[PrivateKey, ReadyKey | None]]:
    """The private key that signs the CSR, and the key that is new, if it is."""
    if isinstance(new, KeyRecord):
        with keys.opened_key(directory, new, prompt) as private:
            yield private, None
    else:
        with made_key(directory, new, label, prompt) as ready:
            yield ready.private, ready
