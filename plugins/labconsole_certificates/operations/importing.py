"""A file of any kind from outside: what is in it is recognised, and taken in where no more need be known."""

from __future__ import annotations

from labconsole.security.pki.store import PkiStore

from labconsole.security.pki.records import CertificateRecord, State


def take_in_certificates(
    store: PkiStore, data: bytes, state: State | None = None, sender: State | None = None, receiver: State | None = None
) -> tuple[CertificateRecord, ...]:
    """Take in certificates (PEM, DER, several) of `state`: known from then on, trusted by nobody for that.

    `sender` and `receiver`: who gave them to whom, noted for the exchange. Raises BadInput; nothing changed.
    """
    raise NotImplementedError
