"""Certificates of other States, from a file: known from then on, and trusted by nobody for that."""

from __future__ import annotations

from labconsole.security.pki.records import CertificateRecord, Item, State
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509 import gate
from labconsole.security.x509.bad_input import BadInput
from labconsole.security.x509.names import short_name
from labconsole.security.x509.profiles import AUTHORITIES
from labconsole_certificates.operations.certificates_from_outside import add_chain


def take_in_certificates(
    store: PkiStore, data: bytes, state: State | None = None, sender: State | None = None, receiver: State | None = None
) -> tuple[CertificateRecord, ...]:
    """Take in certificates (PEM, DER, several) of `state`, in the file's order.

    `sender` and `receiver`: who gave them to whom, noted for the exchange.
    Raises BadInput: they are none, or the first is known as another State's; nothing changed.
    """
    certificates = gate.read_certificates(data)
    with store.change() as change:
        records = add_chain(change, certificates, None if state is None else state.id)[::-1]
        if state is not None and records[0].state != state.id:
            owner = next(one.name for one in change.states() if one.id == records[0].state)
            raise BadInput(
                f"{short_name(certificates[0])} is known as a certificate of {owner}, not of {state.name}: ask both "
                "whose it is."
            )
        if sender is not None and receiver is not None:
            for record in records:
                item = Item.ROOT if record.profile in AUTHORITIES else Item.CERTIFICATE
                change.hand_over(sender.id, receiver.id, item, record.sha256)
    return tuple(records)
