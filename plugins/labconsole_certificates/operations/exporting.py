"""What leaves the console as a file: certificates, chains, CSRs, CRLs, PKCS#12. Private keys only in PKCS#12."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from labconsole.security.pki.reader import Snapshot
from labconsole.security.pki.store import PkiStore

from labconsole.security.pki.records import CertificateRecord, CrlRecord, RequestRecord, State
from labconsole.security.secrets import Prompt, Secret


class Form(StrEnum):
    """How a certificate is written."""

    PEM = "pem"
    DER = "der"
    CHAIN = "chain"
    """PEM: the certificate, its intermediates, and the root."""


def certificate_bytes(snapshot: Snapshot, certificate: CertificateRecord, form: Form = Form.PEM) -> bytes:
    """The certificate as it is handed over. For CHAIN its issuers as far as they are known here."""
    raise NotImplementedError


def request_bytes(request: RequestRecord, form: Form = Form.PEM) -> bytes:
    """The CSR as PEM or DER."""
    raise NotImplementedError


def crl_bytes(crl: CrlRecord, form: Form = Form.PEM) -> bytes:
    """The CRL as PEM or DER."""
    raise NotImplementedError


def pkcs12_bytes(
    store: PkiStore, certificate: CertificateRecord, password: Secret, prompt: Prompt | None = None
) -> bytes:
    """Certificate, chain and private key under `password`; noted in the audit list.

    Raises TrialError: the key is not here, lies in a token, or is of a type that PKCS#12 files cannot hold.
    """
    raise NotImplementedError


def handed_over(
    store: PkiStore,
    thing: CertificateRecord | RequestRecord | CrlRecord,
    sender: State,
    receiver: State,
) -> None:
    """Note that `sender` gave the thing to `receiver` (exchange assistant, audit list)."""
    raise NotImplementedError


def write_export(path: Path, data: bytes, *, private: bool = False) -> None:
    """Write a new file; `private`: mode 0600. Raises TrialError: it is there already, or cannot be written."""
    raise NotImplementedError
