"""Actions of the exchange between States: sign a trust bundle, and prove the connection both ways."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from labconsole.errors import UserError
from labconsole.operation import OperationContext
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.trial import Parameters
from labconsole_certificates.actions.exchange_parameters import ProveParameters
from labconsole_certificates.exchange.parties import client_certificate, server_certificate
from labconsole_certificates.exchange.proving import prove, told
from labconsole_certificates.operations.pki_operation import PkiOperation, key_secrets
from labconsole_certificates.operations.references import local_state_named


class Prove(PkiOperation[ProveParameters]):
    """Lets two States connect to each other."""

    name: ClassVar[str] = "certificates.prove"
    title: ClassVar[str] = "Prove by a handshake"
    description: ClassVar[str] = (
        "Each of the two States connects to the other one by mutual TLS over a socket of this machine, with the "
        "certificates that it has and the trust that it has."
    )
    parameters: ClassVar[type[Parameters]] = ProveParameters

    def needs(self, parameters: ProveParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        a, b = (local_state_named(snapshot, name) for name in (parameters.state_a, parameters.state_b))
        ends = (
            *(client_certificate(snapshot, a, b), server_certificate(snapshot, b, a)),
            *(client_certificate(snapshot, b, a), server_certificate(snapshot, a, b)),
        )
        requests = key_secrets(directory, snapshot, *(end for end in ends if end is not None))
        return tuple({request.key: request for request in requests}.values())

    def work(self, parameters: ProveParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> str:
        a, b = parameters.state_a, parameters.state_b
        proof = prove(store, a, b, prompt)
        sentences = f"{told(a, b, proof.there)} {told(b, a, proof.back)}"
        if not proof.ok:
            raise UserError(sentences)
        return sentences
