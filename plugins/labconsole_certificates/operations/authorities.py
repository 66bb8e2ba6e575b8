"""A State and its own CA: root, intermediate, made here or imported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from cryptography import x509

from labconsole.errors import UserError
from labconsole.security.pki.domains import domains_from_text
from labconsole.security.pki.records import CertificateRecord, Origin, State
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, Secret
from labconsole.security.x509 import gate
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.extensions import is_ca
from labconsole.security.x509.issuing import issue, make_root
from labconsole.security.x509.names import short_name
from labconsole.security.x509.profiles import CertificateProfile
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.certificates_from_outside import add_chain, profile_of
from labconsole_certificates.operations.issuers import must_be_accepted, opened_issuer
from labconsole_certificates.operations.new_keys import NewKey, kept_key, made_key
from labconsole_certificates.operations.references import must_be_local
from labconsole_certificates.operations.subjects import constraints, subject_of

ROOT_DAYS = 3650
INTERMEDIATE_DAYS = 1825

_LONGEST_NAME = 40
"""Characters: with what stands behind it in subjects at most 64 (RFC 5280, A.1)."""


def add_state(store: PkiStore, name: str, domain: str = "", *, local: bool = True) -> State:
    """Add a State; `domain`: one or more, in any script. Raises UserError: the name is taken or empty, no domain."""
    name = " ".join(name.split())
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UserError(f"A State needs a name of 1 to {_LONGEST_NAME} characters that can be shown: choose another.")
    domains = domains_from_text(domain)
    with store.change() as change:
        return change.add_state(name, domains, local=local)


def claim_domain(store: PkiStore, state: State, domain: str) -> State:
    """Let `state` have these domains, which the operator has confirmed. Raises UserError: one is not a domain."""
    domains = domains_from_text(domain)
    with store.change() as change:
        return change.claim_domain(state.id, domains)


def known_or_added(store: PkiStore, name: str) -> State:
    """The State called `name`; where there is none, another console's is added. Raises UserError: the name is bad."""
    return next((state for state in store.states() if state.name == name), None) or add_state(store, name, local=False)


def create_root(
    store: PkiStore,
    state: State,
    new: NewKey,
    *,
    subject: str = "",
    days: int = ROOT_DAYS,
    path_length: int | None = None,
    name_constraints: Sequence[str] = (),
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """Make a key pair and a self-signed CA certificate (RFC 5280, 4.2.1.9); the State trusts it from then on.

    `subject` is RFC 4514 text (empty: `CN=<State> Root CA,O=<State>`); `name_constraints` are names, as in
    `caas.gov.sg`, within which alone the CA may issue (RFC 5280, 4.2.1.10).
    Raises UserError: a value is faulty, no passphrase, the token refuses; nothing changed.
    """
    must_be_local(state)
    name, validity = subject_of(state, CertificateProfile.ROOT, subject), Validity.for_days(days)
    limits = constraints(name_constraints)
    with made_key(store.directory, new, f"{state.name} Root CA", prompt) as key:
        root = make_root(key.private, name, validity, path_length=path_length, name_constraints=limits)
        with store.change() as change:
            key.record(change, state)
            return change.add_certificate(
                root, state=state.id, profile=CertificateProfile.ROOT, origin=Origin.SELF_SIGNED
            )


def create_intermediate(
    store: PkiStore,
    issuer: CertificateRecord,
    state: State,
    new: NewKey,
    *,
    subject: str = "",
    days: int = INTERMEDIATE_DAYS,
    path_length: int | None = 0,
    name_constraints: Sequence[str] = (),
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """Make a key pair of `state` and a CA certificate for it under `issuer`, whose key lies here.

    `state` is mostly the issuer's own; an own CA for another State is limited by `name_constraints`.
    Raises UserError as `create_root`, and when the issuer may have no CA below it or is valid less long.
    """
    must_be_local(state)
    profile = CertificateProfile.INTERMEDIATE
    name, validity = subject_of(state, profile, subject), Validity.for_days(days)
    limits = constraints(name_constraints)
    with (
        opened_issuer(store.directory, store.snapshot(), issuer, prompt) as opened,
        made_key(store.directory, new, f"{state.name} Intermediate CA", prompt) as key,
    ):
        made = issue(
            opened,
            key.private.public_key(),
            name,
            (),
            profile,
            validity,
            name_constraints=limits,
            path_length=path_length,
        )
        must_be_accepted(made, opened)
        with store.change() as change:
            key.record(change, state)
            return change.add_certificate(made, state=state.id, profile=profile, origin=Origin.ISSUED)


def import_authority(
    store: PkiStore,
    state: State,
    certificates: bytes,
    key: bytes,
    *,
    password: Secret | None = None,
    keep: NewKey | None = None,
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """Take in a CA made elsewhere: its certificate (first of `certificates`, PEM or DER, then its chain) and private
    key (PEM, DER, PKCS#8), or both in one PKCS#12 given as `certificates` with an empty `key`.

    `keep` says how the key file is protected here (its type and token do not count).
    Raises UserError: wrong password, key and certificate do not belong together, no CA certificate, not valid any
    more; nothing changed.
    """
    must_be_local(state)
    if key:
        certificate, *issuers = gate.read_certificates(certificates, "The certificate file")
        chain = tuple(issuers)
        private = gate.read_private_key(key, password, "The key file")
    else:
        certificate, chain, private = complete_pkcs12(certificates, password)
    must_belong_together(certificate, private)
    _must_be_a_ca(certificate)
    kept = kept_key(store.directory, private, keep, short_name(certificate), prompt)
    with store.change() as change:
        kept.record(change, state)
        add_chain(change, chain)
        return change.add_certificate(
            certificate, state=state.id, profile=profile_of(certificate), origin=Origin.IMPORTED
        )


def complete_pkcs12(
    data: bytes, password: Secret | None
) -> tuple[x509.Certificate, tuple[x509.Certificate, ...], gate.PrivateKey]:
    """Certificate, chain and key of a PKCS#12. Raises BadInput: wrong password, or it has not both."""
    content = gate.read_pkcs12(data, password)
    if content.key is None or content.certificate is None:
        raise BadInput("The PKCS#12 file holds no private key with its certificate: ask for one that does.")
    return content.certificate, content.chain, content.key


def must_belong_together(certificate: x509.Certificate, key: gate.PrivateKey) -> None:
    """Raises BadInput: the private key is not the certificate's."""
    if certificate.public_key() != key.public_key():
        raise BadInput(
            f"The private key is not that of the certificate {short_name(certificate)}: choose the two that belong "
            "together."
        )


def _must_be_a_ca(certificate: x509.Certificate) -> None:
    name, now = short_name(certificate), datetime.now(UTC)
    if not is_ca(certificate):
        raise BadInput(f"{name} is no CA certificate (basicConstraints): choose that of the CA.")
    if now > certificate.not_valid_after_utc:
        raise BadInput(f"The CA {name} expired on {certificate.not_valid_after_utc:%Y-%m-%d}: create a new one.")
