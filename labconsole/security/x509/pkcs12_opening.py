"""Opens PKCS#12 files (RFC 7292) in a process of its own with a time limit: their encrypted parts may demand any work.

The process is `python -m` this module; the password is sent over its standard input."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    pkcs12,
)

from labconsole.errors import BadInput
from labconsole.security.secret_value import Secret
from labconsole.security.token.errors import TokenError
from labconsole.security.token.module_process import answer, ask
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.strict_parsing import FAULTS, parsed_strictly, refused
from labconsole.security.x509.work_factor import refuse_costly_pkcs12

TIMEOUT_S = 10.0
"""Opening takes below 2 s of computing; the rest is for the start of a process on a busy machine."""


@dataclass(frozen=True)
class Pkcs12:
    """The content of a PKCS#12 file. `chain` are the further certificates, in the file's order."""

    key: PrivateKey | None
    certificate: x509.Certificate | None
    chain: tuple[x509.Certificate, ...]
    friendly_name: str


def open_in_child(data: bytes, password: Secret | None, what: str, *, timeout_s: float = TIMEOUT_S) -> Pkcs12:
    """The content of the PKCS#12 file `data` (DER), opened in a child process; `what` begins the sentence.

    Raises:
        BadInput: damaged, the password is missing or wrong, or it is not open after `timeout_s`.
    """
    question = {"data": _text(data), "password": None if password is None else password.reveal(), "what": what}
    try:
        answered = ask("labconsole.security.x509.pkcs12_opening", question, timeout_s, what)
    except TokenError as error:
        raise BadInput(
            f"{what} takes too long to open, or fails in it: ask for one that openssl has written."
        ) from error
    if "refusal" in answered:
        raise BadInput(answered["refusal"])
    key, certificate, *chain = (None if each is None else base64.b64decode(each) for each in answered["parts"])
    with refused(what, "a PKCS#12 file"):
        return Pkcs12(
            key=None if key is None else signing_key(load_der_private_key(key, None), what),
            certificate=None if certificate is None else _certificate(certificate, what),
            chain=tuple(_certificate(each, what) for each in chain if each is not None),
            friendly_name=answered["friendly_name"],
        )


def open_here(data: bytes, password: Secret | None, what: str) -> Pkcs12:
    """The same in this process, without a time limit."""
    refuse_costly_pkcs12(data, what)
    with refused(what, "a PKCS#12 file"), passphrase_matters(True, what):
        loaded = pkcs12.load_pkcs12(data, None if password is None else password.reveal().encode())
    certificates = [each for each in (loaded.cert, *loaded.additional_certs) if each is not None]
    for each in certificates:
        parsed_strictly(each.certificate, what)
    if loaded.key is None and not certificates:
        raise BadInput(f"{what} is a PKCS#12 file with nothing in it: ask for it again.")
    name = next((each.friendly_name for each in certificates if each.friendly_name), b"")
    return Pkcs12(
        key=None if loaded.key is None else signing_key(loaded.key, what),
        certificate=None if loaded.cert is None else loaded.cert.certificate,
        chain=tuple(each.certificate for each in loaded.additional_certs),
        friendly_name=name.decode(errors="replace"),
    )


@contextmanager
def passphrase_matters(matters: bool, what: str) -> Iterator[None]:
    """Raise BadInput for what does not open; says that the password may be wrong if it `matters`."""
    try:
        yield
    except FAULTS as error:
        if not matters:
            raise
        raise BadInput(f"{what} does not open: the passphrase is wrong or missing, or it is damaged.") from error


def signing_key(key: object, what: str) -> PrivateKey:
    """`key`, if it can sign certificates. Raises BadInput."""
    if not isinstance(key, PrivateKey):
        raise BadInput(
            f"{what} holds a private key of a kind that signs no certificate: use RSA, ECDSA, Ed25519 or ML-DSA."
        )
    return key


def _certificate(der: bytes, what: str) -> x509.Certificate:
    return parsed_strictly(x509.load_der_x509_certificate(der), what)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _respond(question: dict[str, Any]) -> dict[str, Any]:
    password = None if question["password"] is None else Secret(question["password"])
    try:
        opened = open_here(base64.b64decode(question["data"]), password, question["what"])
    except BadInput as refusal:
        return {"refusal": str(refusal)}
    key = opened.key and opened.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    parts = [key, *(each and each.public_bytes(Encoding.DER) for each in (opened.certificate, *opened.chain))]
    return {"parts": [each and _text(each) for each in parts], "friendly_name": opened.friendly_name}


if __name__ == "__main__":
    sys.exit(answer(_respond))
