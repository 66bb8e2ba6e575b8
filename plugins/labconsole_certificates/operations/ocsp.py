"""OCSP: answer requests for a CA of this console, and ask the responder of another one (RFC 6960)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, ClassVar

from cryptography.x509.ocsp import OCSPCertStatus
from pydantic import Field

from labconsole.errors import UserError
from labconsole.operation import OperationContext, Result
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509.names import short_name
from labconsole.trial import Parameters
from labconsole_certificates.operations.fields import CertificateChoice, UnlockParameters
from labconsole_certificates.operations.pki_operation import PkiOperation, PkiReport, key_secrets
from labconsole_certificates.operations.references import certificate_named
from labconsole_certificates.revocation.ocsp_check import ask
from labconsole_certificates.revocation.ocsp_responder import serving

_LOOK_S = 0.2


class ServeOcspParameters(UnlockParameters):
    """An OCSP responder that answers for a CA until it is cancelled."""

    authority: CertificateChoice
    port: Annotated[
        int,
        Field(
            title="Port",
            description="On loopback (127.0.0.1); 0: any free one",
            ge=0,
            le=65_535,
            json_schema_extra={"kind": "port"},
        ),
    ] = 0


class ServeOcsp(PkiOperation[ServeOcspParameters]):
    """Answers OCSP requests until it is cancelled."""

    name: ClassVar[str] = "certificates.serve-ocsp"
    title: ClassVar[str] = "Serve OCSP"
    description: ClassVar[str] = (
        "Answers on this machine, by HTTP, whether certificates of the CA are revoked (OCSP), until it is cancelled. "
        "What is revoked meanwhile is reported at once."
    )
    parameters: ClassVar[type[Parameters]] = ServeOcspParameters
    runs_until_cancelled: ClassVar[bool] = True

    def needs(self, parameters: ServeOcspParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        authority = certificate_named(snapshot, parameters.authority)
        return key_secrets(directory, snapshot, authority, unlock=parameters.unlock())

    def work(
        self, parameters: ServeOcspParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        authority = certificate_named(store.snapshot(), parameters.authority)
        name = short_name(authority.certificate)
        with serving(store, authority, port=parameters.port, prompt=prompt) as running:
            context.say(f"The OCSP responder of {name} answers at {running.url} until it is cancelled.")
            while not context.stop_requested:
                time.sleep(_LOOK_S)
        text = f"The OCSP responder has stopped; requests that it answered: {running.answered}."
        return Result((text,), {"authority": name, "url": running.url, "answered": running.answered})


class AskOcspParameters(Parameters):
    """A certificate, and the OCSP responder of its CA."""

    certificate: CertificateChoice
    url: Annotated[
        str,
        Field(
            title="Address",
            description="URL of the OCSP responder, as in http://127.0.0.1:2560/",
            json_schema_extra={"positional": True},
        ),
    ]


class AskOcsp(PkiReport[AskOcspParameters]):
    """Asks an OCSP responder about a certificate."""

    name: ClassVar[str] = "certificates.ask-ocsp"
    title: ClassVar[str] = "Ask an OCSP responder"
    description: ClassVar[str] = "Asks an OCSP responder whether a certificate is revoked, and checks its answer."
    parameters: ClassVar[type[Parameters]] = AskOcspParameters

    def read(self, parameters: AskOcspParameters, reader: PkiReader) -> Result:
        snapshot = reader.snapshot()
        record = certificate_named(snapshot, parameters.certificate)
        name, issuers = short_name(record.certificate), snapshot.issuers_of(record)
        if not issuers:
            raise UserError(f"The issuer of {name} is not known: import its certificate first.")
        answer = ask(parameters.url, record.certificate, issuers[0].certificate)
        data = {"certificate": name, "sha256": record.sha256, "status": answer.status.name.lower()}
        return Result((answer.sentence,), data, passed=answer.status is OCSPCertStatus.GOOD)
