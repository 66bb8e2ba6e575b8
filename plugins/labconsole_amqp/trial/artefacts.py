"""Artefacts of a run for later checks: certificates, the payload's hash, one encoded message."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.model.trial import RunContext
from labconsole.security.identities import load_certificates
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.identities import RunIdentities
from labconsole_amqp.wire.envelope import Protection
from labconsole_amqp.wire.payload import Payload


def keep_artefacts(
    parameters: AmqpParameters,
    identities: RunIdentities,
    payload: Payload,
    sender: Mapping[str, Any],
    context: RunContext,
) -> None:
    """Store the artefacts; `sender` is what a sender reported when it was ready. Raises UserError."""
    sha256 = hashlib.sha256(payload.data).hexdigest()
    context.artefact("payload.sha256", "text/plain", f"{sha256}  {Path(payload.name).name}\n".encode())
    for name, path in _certificates(parameters, identities).items():
        pem = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in load_certificates(path))
        context.artefact(name, "application/x-pem-file", pem)
    if "example" in sender:
        context.artefact("message.amqp", "application/octet-stream", base64.b64decode(sender["example"]))


def _certificates(parameters: AmqpParameters, identities: RunIdentities) -> dict[str, Path]:
    """The certificate files that this run uses, as far as they are known on this side."""
    if not parameters.tls:
        return {}
    known = set(identities.local_roles)
    if parameters.protection is not Protection.NONE:
        known.add("sender")
    if parameters.protection is Protection.SIGNED_ENCRYPTED:
        known.add("receiver")
    files = {f"{role}.pem": identities.certificate(role) for role in sorted(known)}
    trust = {role: path for role in identities.local_roles if (path := identities.files(role).trust) is not None}
    if len(set(trust.values())) == 1:
        return files | {"trust.pem": trust[identities.local_roles[0]]}
    return files | {f"{role}-trust.pem": path for role, path in trust.items()}
