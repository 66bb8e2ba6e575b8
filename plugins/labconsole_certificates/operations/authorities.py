"""A State and its own CA: root, intermediate, made here or imported."""

from __future__ import annotations

from collections.abc import Sequence

from labconsole.security.pki.store import PkiStore

from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.secrets import Prompt, Secret
from labconsole_certificates.operations.new_keys import NewKey

ROOT_DAYS = 3650
INTERMEDIATE_DAYS = 1825


def add_state(store: PkiStore, name: str, domain: str = "", *, local: bool = True) -> State:
    """Add a State; `domain` may be in any script. Raises TrialError: the name is taken or empty, the domain is none."""
    raise NotImplementedError


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
    Raises TrialError: a value is faulty, no passphrase, the token refuses; nothing changed.
    """
    raise NotImplementedError


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
    Raises TrialError as `create_root`, and when the issuer may have no CA below it or is valid less long.
    """
    raise NotImplementedError


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
    Raises TrialError: wrong password, key and certificate do not belong together, no CA certificate, not valid any
    more; nothing changed.
    """
    raise NotImplementedError
