"""The No-CSR method of the source: the server makes key and certificate for the client, in one PKCS#12."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labconsole.security.pki.store import PkiStore

from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.secrets import Prompt, Secret
from labconsole.security.x509.key_types import KeyType
from labconsole.security.x509.profiles import CertificateProfile
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.requests import END_DAYS

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
    subject: str,
    names: Sequence[str] = (),
    days: int = END_DAYS,
    authority: CertificateRecord | None = None,
    prompt: Prompt | None = None,
) -> MadeForClient:
    """Make a key pair and a certificate for `client`, with chain in a PKCS#12 under `password`.

    Raises TrialError as `requests.approve`, and for a key type that PKCS#12 files cannot hold; nothing changed.
    """
    raise NotImplementedError


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

    Raises TrialError: wrong password, no key, key and certificate do not belong together; nothing changed.
    """
    raise NotImplementedError
