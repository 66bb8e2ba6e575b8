"""The No-CSR method of the source: the server makes key and certificate for the client, in one PKCS#12."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from labconsole.security.pki.records import CertificateRecord, Item, Origin, State
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, Secret
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.issuing import issue
from labconsole.security.x509.key_types import KeyType, generate
from labconsole.security.x509.names import short_name
from labconsole.security.x509.pkcs12_files import write_pkcs12
from labconsole.security.x509.profiles import AUTHORITIES, CertificateProfile
from labconsole.security.x509.validity import Validity
from labconsole_certificates.operations.authorities import complete_pkcs12, must_belong_together
from labconsole_certificates.operations.certificates_from_outside import add_chain, profile_of
from labconsole_certificates.operations.issuers import must_be_accepted, opened_issuer
from labconsole_certificates.operations.new_keys import NewKey, kept_key
from labconsole_certificates.operations.references import authority_of, must_be_local, must_be_of
from labconsole_certificates.operations.requests import END_DAYS
from labconsole_certificates.operations.subjects import alternative_names, must_be_within, subject_of

WARNING = (
    "Without a CSR the private key is made by another State than the one that uses it, and leaves it in a file: the "
    "source prefers the CSR method, where a private key never leaves the country of origin."
)


@dataclass(frozen=True)
class MadeForClient:
    """The certificate, and what is handed to the client: the issuer keeps no copy of the private key."""

    certificate: CertificateRecord
    pkcs12: bytes


def make_for_client(
    store: PkiStore,
    issuer: State,
    client: State,
    key_type: KeyType,
    profile: CertificateProfile,
    password: Secret,
    *,
    subject: str = "",
    names: Sequence[str] = (),
    days: int = END_DAYS,
    authority: CertificateRecord | None = None,
    prompt: Prompt | None = None,
) -> MadeForClient:
    """Make a key pair and a certificate for `client`, with chain in a PKCS#12 under `password`.

    Raises UserError as `requests.approve`, and for a key type that PKCS#12 files cannot hold; nothing changed.
    """
    must_be_local(issuer)
    name, alternatives = subject_of(client, profile, subject), alternative_names(names)
    must_be_within(client, alternatives)
    validity = Validity.for_days(days)
    snapshot = store.snapshot()
    found = must_be_of(snapshot, authority or authority_of(snapshot, issuer, "", datetime.now(UTC)), issuer)
    with opened_issuer(store.directory, snapshot, found, prompt) as opened:
        private = generate(key_type)
        certificate = issue(opened, private.public_key(), name, alternatives, profile, validity)
        must_be_accepted(certificate, opened)
        chain = (opened.certificate, *opened.chain)
    data = write_pkcs12(private, certificate, chain, short_name(certificate), password)
    with store.change() as change:
        record = change.add_certificate(certificate, state=client.id, profile=profile, origin=Origin.ISSUED)
        change.hand_over(issuer.id, client.id, Item.PKCS12, record.sha256)
    return MadeForClient(record, data)


def take_in_pkcs12(
    store: PkiStore,
    client: State,
    data: bytes,
    password: Secret,
    *,
    sender: State | None = None,
    keep: NewKey | None = None,
    prompt: Prompt | None = None,
) -> CertificateRecord:
    """As client: take key, certificate and chain from the PKCS#12; the key is encrypted anew as `keep` says.

    Raises UserError: wrong password, no key, key and certificate do not belong together, or it is a CA, which the
    client would trust as its own while its maker has the key; nothing changed.
    """
    must_be_local(client)
    certificate, chain, private = complete_pkcs12(data, password)
    must_belong_together(certificate, private)
    profile = profile_of(certificate)
    if profile in AUTHORITIES:
        raise BadInput(
            f"{short_name(certificate)} is a CA, and no State lets another one make its CA: ask for an end certificate."
        )
    kept = kept_key(store.directory, private, keep, short_name(certificate), prompt)
    with store.change() as change:
        kept.record(change, client)
        add_chain(change, chain, None if sender is None else sender.id)
        record = change.add_certificate(certificate, state=client.id, profile=profile, origin=Origin.IMPORTED)
        if sender is not None:
            change.hand_over(sender.id, client.id, Item.PKCS12, record.sha256)
    return record
