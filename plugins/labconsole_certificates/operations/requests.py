"""The CSR method, both sides: ask for a certificate, decide about what others ask, take in what was issued."""

from __future__ import annotations

from collections.abc import Sequence

from labconsole.security.pki.store import PkiStore

from labconsole.security.pki.records import CertificateRecord, KeyRecord, RequestRecord, State
from labconsole.security.secrets import Prompt
from labconsole.security.x509.profiles import CertificateProfile
from labconsole_certificates.operations.new_keys import NewKey

END_DAYS = 365


def make_request(
    store: PkiStore,
    requester: State,
    issuer: State,
    new: NewKey | KeyRecord,
    profile: CertificateProfile,
    *,
    subject: str,
    names: Sequence[str] = (),
    prompt: Prompt | None = None,
) -> RequestRecord:
    """As client: make a key pair (or take `new`, a key that is there) and a CSR for the CA of `issuer`.

    `subject` is RFC 4514 text, `names` are subject alternative names: `bücher.example`, `IP:192.0.2.1`, `URI:...`,
    `email:...`. Raises TrialError: a value is faulty, no passphrase; nothing changed.
    """
    raise NotImplementedError


def take_in_request(
    store: PkiStore, requester: State, issuer: State, data: bytes, profile: CertificateProfile | None = None
) -> RequestRecord:
    """As server: take in a CSR (PEM or DER) of `requester` for the CA of the local State `issuer`.

    `profile`: what it is for, if known; else what its extended key usage says, else TLS client. A CSR made by this
    console for another State of this console becomes received.
    Raises BadInput: no CSR, or its signature does not prove that the requester has the key; nothing changed.
    """
    raise NotImplementedError


def approve(
    store: PkiStore,
    request: RequestRecord,
    *,
    authority: CertificateRecord | None = None,
    profile: CertificateProfile | None = None,
    days: int = END_DAYS,
    subject: str | None = None,
    names: Sequence[str] | None = None,
    crl_url: str = "",
    ocsp_url: str = "",
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """Issue what is asked for; what is None stays as the CSR asks (extensions come from the profile alone).

    `authority`: with which CA certificate of the issuing State; None: the first that can.
    Raises TrialError: decided already, asks for CA rights or has other problems (`judge_csr`), a name lies outside
    the CA's name constraints, the CA is expired, revoked or valid less long, no key; nothing changed.
    """
    raise NotImplementedError


def refuse(store: PkiStore, request: RequestRecord, reason: str) -> None:
    """Refuse the request. Raises TrialError: decided already, or no reason is given."""
    raise NotImplementedError


def take_in_certificate(store: PkiStore, data: bytes, sender: State | None = None) -> CertificateRecord:
    """As client: take in the certificate (first of `data`, PEM, DER or a chain) that was issued for a request of ours.

    Its issuers in `data` are taken in too (that alone makes nobody trust them); the request becomes approved.
    Raises TrialError: no request or key here belongs to it; nothing changed.
    """
    raise NotImplementedError
