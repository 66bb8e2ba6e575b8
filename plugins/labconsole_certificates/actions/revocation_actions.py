"""Actions on CRLs and OCSP."""

from __future__ import annotations

import time
from pathlib import Path
from typing import ClassVar

from labconsole.operation import OperationContext
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.trial import Parameters
from labconsole_certificates.actions.revocation_parameters import PublishCrlParameters, ServeOcspParameters
from labconsole_certificates.operations.pki_operation import PkiOperation, key_secrets
from labconsole_certificates.operations.references import certificate_named
from labconsole_certificates.operations.revocation import publish_crl
from labconsole_certificates.revocation.ocsp_responder import serving

_LOOK_S = 0.2


class PublishCrl(PkiOperation[PublishCrlParameters]):
    """Signs a new CRL."""

    name: ClassVar[str] = "certificates.publish-crl"
    title: ClassVar[str] = "Publish a CRL"
    description: ClassVar[str] = (
        "Signs a certificate revocation list (CRL) of all that the CA has issued and revoked. Peers learn of a "
        "revocation when they have taken it in: hand it over, or put it into the next trust bundle."
    )
    parameters: ClassVar[type[Parameters]] = PublishCrlParameters

    def needs(self, parameters: PublishCrlParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        return key_secrets(directory, snapshot, certificate_named(snapshot, parameters.authority))

    def work(self, parameters: PublishCrlParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> str:
        authority = certificate_named(store.snapshot(), parameters.authority)
        crl = publish_crl(store, authority, days=parameters.valid_days, prompt=prompt)
        return (
            f"CRL {crl.number} is signed: {len(crl.crl)} revoked. It holds until {crl.next_update:%Y-%m-%d %H:%M} UTC: "
            "publish the next one before."
        )


class ServeOcsp(PkiOperation[ServeOcspParameters]):
    """Answers OCSP requests until it is cancelled."""

    name: ClassVar[str] = "certificates.serve-ocsp"
    title: ClassVar[str] = "Serve OCSP"
    description: ClassVar[str] = (
        "Answers on this machine, by HTTP, whether certificates of the CA are revoked (OCSP), until it is cancelled. "
        "What is revoked meanwhile is told at once."
    )
    parameters: ClassVar[type[Parameters]] = ServeOcspParameters

    def needs(self, parameters: ServeOcspParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        return key_secrets(directory, snapshot, certificate_named(snapshot, parameters.authority))

    def work(self, parameters: ServeOcspParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> str:
        authority = certificate_named(store.snapshot(), parameters.authority)
        with serving(store, authority, port=parameters.port, prompt=prompt) as running:
            context.say(f"The OCSP responder answers at {running.url} until it is cancelled.")
            while not context.stop_requested:
                time.sleep(_LOOK_S)
            return f"The OCSP responder has ended; requests that it answered: {running.answered}."
