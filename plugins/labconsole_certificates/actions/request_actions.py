"""Actions of the CSR method: ask for a certificate, issue one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from labconsole.operation import OperationContext
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509.fingerprints import groups
from labconsole.security.x509.names import short_name
from labconsole.trial import Parameters
from labconsole_certificates.actions.request_parameters import ApproveRequestParameters, MakeRequestParameters
from labconsole_certificates.operations.new_keys import secrets_of
from labconsole_certificates.operations.pki_operation import PkiOperation, key_secrets
from labconsole_certificates.operations.references import (
    authority_of,
    local_state_named,
    must_be_local,
    request_numbered,
    state_named,
)
from labconsole_certificates.operations.requests import approve, make_request


class MakeRequest(PkiOperation[MakeRequestParameters]):
    """Makes a key pair and a CSR."""

    name: ClassVar[str] = "certificates.make-request"
    title: ClassVar[str] = "Make a key and a CSR"
    description: ClassVar[str] = (
        "Makes a key pair, which never leaves this console, and a certificate signing request (CSR) for it, to be sent "
        "to the State whose CA shall certify it."
    )
    parameters: ClassVar[type[Parameters]] = MakeRequestParameters

    def needs(
        self, parameters: MakeRequestParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        local_state_named(snapshot, parameters.state)
        state_named(snapshot, parameters.issuer)
        return secrets_of(parameters.new_key())

    def work(
        self, parameters: MakeRequestParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> str:
        snapshot = store.snapshot()
        request = make_request(
            store,
            state_named(snapshot, parameters.state),
            state_named(snapshot, parameters.issuer),
            parameters.new_key(),
            parameters.profile,
            subject=parameters.subject,
            names=parameters.names,
            prompt=prompt,
        )
        return f"Request {request.id} is made: hand its CSR to {parameters.issuer}."


class ApproveRequest(PkiOperation[ApproveRequestParameters]):
    """Issues the certificate that a CSR asks for."""

    name: ClassVar[str] = "certificates.approve-request"
    title: ClassVar[str] = "Approve and issue"
    description: ClassVar[str] = (
        "Issues a certificate for the key of the CSR. Its extensions come from the profile, whatever the CSR asks for."
    )
    parameters: ClassVar[type[Parameters]] = ApproveRequestParameters

    def needs(
        self, parameters: ApproveRequestParameters, directory: Path, snapshot: Snapshot
    ) -> tuple[SecretRequest, ...]:
        return key_secrets(directory, snapshot, _authority(parameters, snapshot))

    def work(
        self, parameters: ApproveRequestParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> str:
        snapshot = store.snapshot()
        record = approve(
            store,
            request_numbered(snapshot, parameters.request),
            authority=_authority(parameters, snapshot),
            profile=parameters.profile,
            days=parameters.valid_days,
            subject=parameters.subject,
            names=parameters.names,
            crl_url=parameters.crl_url,
            ocsp_url=parameters.ocsp_url,
            prompt=prompt,
        )
        name = short_name(record.certificate)
        return f"The certificate of {name} is issued: hand it back with its chain. {groups(record.sha256)}"


def _authority(parameters: ApproveRequestParameters, snapshot: Snapshot) -> CertificateRecord:
    request = request_numbered(snapshot, parameters.request)
    issuer = must_be_local(snapshot.state_by_id[request.issuer])
    return authority_of(snapshot, issuer, parameters.authority, datetime.now(UTC))
