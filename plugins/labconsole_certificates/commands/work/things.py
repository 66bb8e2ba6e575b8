"""What a person means by `FILE`, `FINGERPRINT`, `request:NUMBER` or `crl:NUMBER`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from labconsole.errors import UserError
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord, CrlRecord, RequestRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509 import cms, gate
from labconsole.security.x509.describing.things import Describable
from labconsole_certificates.commands.work.shared import password
from labconsole_certificates.operations.exporting import Exportable
from labconsole_certificates.operations.references import certificate_named, request_numbered


def things_meant(what: str, arguments: argparse.Namespace) -> tuple[Describable, ...]:
    """Everything in a file, or the one thing of the database. Raises UserError: there is no such."""
    if os.path.isfile(what):  # noqa: PTH113 - Path.is_file raises OSError for a name that is too long
        return _in_file(Path(what), arguments)
    with PkiReader.open() as reader:
        thing = recorded(reader.snapshot(), what)
    return (parsed(thing),)


def recorded(snapshot: Snapshot, what: str) -> Exportable:
    """The row of the database that `what` means. Raises UserError: there is none."""
    kind, colon, number = what.partition(":")
    if colon and number.isdecimal() and kind == "request":
        return request_numbered(snapshot, int(number))
    if colon and number.isdecimal() and kind == "crl":
        for crl in snapshot.crls:
            if crl.id == int(number):
                return crl
        raise UserError(f"There is no CRL {number}: `labconsole pki crls` lists them.")
    return certificate_named(snapshot, what)


def parsed(thing: Exportable) -> Describable:
    """The certificate, CSR or CRL of a row."""
    match thing:
        case CertificateRecord():
            return thing.certificate
        case RequestRecord():
            return thing.csr
        case CrlRecord():
            return thing.crl


def _in_file(path: Path, arguments: argparse.Namespace) -> tuple[Describable, ...]:
    data = gate.read_file(path)
    kind = gate.kind_of(data)
    if kind is gate.ContentKind.CMS:
        return (cms.read(data),)
    secret = password(arguments, f"the file {path}") if kind.has_password else None
    return gate.read(data, secret, f"The file {path.name}")
