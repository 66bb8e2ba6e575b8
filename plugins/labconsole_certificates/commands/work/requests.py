"""`labconsole pki request | requests | take-csr | approve | refuse | take-certificate`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from labconsole.cli.exit_codes import FINISHED
from labconsole.security.pki.domains import notice
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import RequestRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509 import gate
from labconsole.security.x509.names import brief_name, name_as_text
from labconsole_certificates.commands.work.shared import (
    fingerprint_told,
    new_key,
    optional_state,
    prompt,
    show,
    table,
    tell,
    warn,
    write_out,
)
from labconsole_certificates.operations import requests
from labconsole_certificates.operations.exporting import Form, exported, handed_over, must_be_new_file
from labconsole_certificates.operations.references import (
    authority_of,
    local_state_named,
    must_be_local,
    request_numbered,
    state_named,
)


def make(arguments: argparse.Namespace) -> int:
    """Make a key pair and a CSR. Raises UserError."""
    if arguments.out is not None:
        must_be_new_file(arguments.out)
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        request = requests.make_request(
            store,
            local_state_named(snapshot, arguments.state),
            state_named(snapshot, arguments.issuer),
            new_key(arguments),
            arguments.profile,
            subject=arguments.subject,
            names=arguments.names,
            prompt=prompt(arguments),
        )
        tell(f"Request {request.id} is made: {name_as_text(request.csr.subject)}")
        write_out(arguments.out, exported(snapshot, request, Form(arguments.form)), f"its CSR, for {arguments.issuer}")
    return FINISHED


def show_all(arguments: argparse.Namespace) -> int:
    """List the requests. Raises UserError."""
    with PkiReader.open() as reader:
        snapshot = reader.snapshot()
    rows = table("Request", "Subject", "Profile", "From", "To", "Status", "Reason")
    for request in snapshot.requests:
        rows.add_row(
            str(request.id),
            brief_name(request.csr.subject),
            request.profile,
            snapshot.state_by_id[request.requester].name,
            snapshot.state_by_id[request.issuer].name,
            request.status,
            request.reason,
        )
    show(rows)
    return FINISHED


def take_in(arguments: argparse.Namespace) -> int:
    """Take in a CSR. Raises UserError."""
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        request = requests.take_in_request(
            store,
            state_named(snapshot, arguments.sender),
            local_state_named(snapshot, arguments.receiver),
            gate.read_file(arguments.file, "CSR"),
            arguments.profile,
        )
        tell(f"Request {request.id} is {request.status}: {brief_name(request.csr.subject)}, {request.profile}")
        _warn_of_names(store.snapshot(), request)
    return FINISHED


def approved(arguments: argparse.Namespace) -> int:
    """Issue what a CSR asks for. Raises UserError."""
    if arguments.out is not None:
        must_be_new_file(arguments.out)
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        request = request_numbered(snapshot, arguments.request)
        issuer = must_be_local(snapshot.state_by_id[request.issuer])
        _warn_of_names(snapshot, request)
        record = requests.approve(
            store,
            request,
            authority=authority_of(snapshot, issuer, arguments.authority, datetime.now(UTC)),
            profile=arguments.profile,
            days=arguments.days,
            subject=arguments.subject,
            names=arguments.names,
            crl_url=arguments.crl_url,
            ocsp_url=arguments.ocsp_url,
            prompt=prompt(arguments),
        )
        fingerprint_told(record, "Issued:")
        if arguments.out is not None:
            write_out(arguments.out, exported(store.snapshot(), record, Form.CHAIN), "the certificate and its chain")
            handed_over(store, record, issuer, snapshot.state_by_id[request.requester])
    return FINISHED


def _warn_of_names(snapshot: Snapshot, request: RequestRecord) -> None:
    """Say what speaks against a request, and which names are accepted unlimited."""
    requester = snapshot.state_by_id[request.requester]
    judgement = requests.judged(request.csr, requester)
    for problem in (*judgement.problems, *judgement.warnings, notice(snapshot, requester, judgement.names)):
        if problem:
            warn(problem)


def refused(arguments: argparse.Namespace) -> int:
    """Refuse a CSR. Raises UserError."""
    with PkiStore.open() as store:
        requests.refuse(store, request_numbered(store.snapshot(), arguments.request), arguments.reason)
    tell(f"Request {arguments.request} is refused.")
    return FINISHED


def certificate(arguments: argparse.Namespace) -> int:
    """Take in the certificate that was issued for a CSR made here. Raises UserError."""
    with PkiStore.open() as store:
        sender = optional_state(store.snapshot(), arguments.sender)
        data = gate.read_file(arguments.file, "certificate file")
        record = requests.take_in_certificate(store, data, sender)
    fingerprint_told(record, "Taken in:")
    return FINISHED
