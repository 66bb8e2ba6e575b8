"""Actions of the exchange between States: sign a trust bundle, and prove the connection both ways."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

from labconsole.errors import UserError
from labconsole.operation import OperationContext
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.trial import Parameters
from labconsole_certificates.actions.exchange_parameters import MakeBundleParameters, ProveParameters
from labconsole_certificates.exchange.parties import client_certificate, server_certificate
from labconsole_certificates.exchange.proving import prove, told
from labconsole_certificates.operations.exporting import must_be_new_file, write_export
from labconsole_certificates.operations.pki_operation import PkiOperation, key_secrets
from labconsole_certificates.operations.references import local_state_named
from labconsole_certificates.trust.looking import look_into
from labconsole_certificates.trust.making import expiring_crls, make_bundle, signing_root


class MakeBundle(PkiOperation[MakeBundleParameters]):
    """Signs a State's trust bundle."""

    name: ClassVar[str] = "certificates.make-bundle"
    title: ClassVar[str] = "Export a trust bundle"
    description: ClassVar[str] = (
        "Writes one signed file with the State's roots, intermediates, CRLs and link certificates. Other States take "
        "it in, and the next ones, to keep their trust up to date."
    )
    parameters: ClassVar[type[Parameters]] = MakeBundleParameters

    def needs(self, parameters: MakeBundleParameters, directory: Path, snapshot: Snapshot) -> tuple[SecretRequest, ...]:
        must_be_new_file(parameters.file)
        state = local_state_named(snapshot, parameters.state)
        return key_secrets(directory, snapshot, signing_root(snapshot, state, datetime.now(UTC))[0])

    def work(self, parameters: MakeBundleParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> str:
        data = make_bundle(store, parameters.state, days=parameters.valid_days, prompt=prompt)
        write_export(parameters.file, data)
        said = f"{parameters.file} is the trust bundle of {parameters.state}: hand it to all States that trust it."
        return f"{said} {expiring_crls(look_into(data).content)}".rstrip()


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
