"""Writes the answers to sign requests: the signatures with their certificate chain, or the reason of a refusal."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from xml.sax.saxutils import escape, quoteattr

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole_keypool.messages.safe_xml import NAMESPACES
from labconsole_keypool.messages.sign_request import Form, SignRequest, SignTask

_NO_PROFILE = "http://id.elegnamnden.se/csig/1.0/dss-ext/profile"
"""In answers to requests that name no profile, or cannot be read: an answer must have one (OASIS DSS 1.0, 2.7)."""

_SUCCESS = "urn:oasis:names:tc:dss:1.0:resultmajor:Success"


class Fault(StrEnum):
    """The cause of a refusal (OASIS DSS 1.0, 2.6: ResultMajor)."""

    REQUESTER = "urn:oasis:names:tc:dss:1.0:resultmajor:RequesterError"
    RESPONDER = "urn:oasis:names:tc:dss:1.0:resultmajor:ResponderError"


def build(request: SignRequest, signatures: Sequence[bytes], chain: Sequence[x509.Certificate]) -> bytes:
    """The SignResponse to `request`, in its form: one signature a task, in the order of the tasks.

    A csig response lacks SignerAssertionInfo, since no signer was authenticated.

    Args:
        request: The request to answer.
        signatures: As `SignatureAlgorithm.sign` gives them.
        chain: The signer's certificate first, then each one's issuer.

    Raises:
        ValueError: there are not as many signatures as tasks.
    """
    certificates = "".join(
        f"<eid2:X509Certificate>{_base64(certificate.public_bytes(Encoding.DER))}</eid2:X509Certificate>"
        for certificate in chain
    )
    outputs = f"<eid2:SignatureCertificateChain>{certificates}</eid2:SignatureCertificateChain>"
    tasks = "".join(
        _signed(task, signature, request.algorithm.uri)
        for task, signature in zip(request.tasks, signatures, strict=True)
    )
    return _response(
        request,
        f"<dss:ResultMajor>{_SUCCESS}</dss:ResultMajor>",
        f"<dss:OptionalOutputs>{_in_form(request, outputs)}</dss:OptionalOutputs>"
        f"<dss:SignatureObject><dss:Other><eid2:SignTasks>{tasks}</eid2:SignTasks></dss:Other></dss:SignatureObject>",
    )


def refused(reason: str, *, request: SignRequest | None = None, fault: Fault = Fault.REQUESTER) -> bytes:
    """The SignResponse of a refusal; `request` is None where it could not be read."""
    message = f'<dss:ResultMessage xml:lang="en">{escape(reason)}</dss:ResultMessage>'
    return _response(request, f"<dss:ResultMajor>{fault}</dss:ResultMajor>{message}")


def _response(request: SignRequest | None, result: str, rest: str = "") -> bytes:
    answered = "" if request is None else f" RequestID={quoteattr(request.request_id)}"
    profile = f" Profile={quoteattr((request.profile if request else '') or _NO_PROFILE)}"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<dss:SignResponse xmlns:dss="{NAMESPACES["dss"]}" xmlns:eid2="{NAMESPACES["csig"]}"{answered}{profile}>'
        f"<dss:Result>{result}</dss:Result>{rest}</dss:SignResponse>\n"
    ).encode()


def _in_form(request: SignRequest, outputs: str) -> str:
    if request.form is Form.SOURCE:
        return outputs
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return (
        f'<eid2:SignResponseExtension Version="1.0"><eid2:ResponseTime>{time}</eid2:ResponseTime>'
        f"<eid2:Request>{_base64(request.received)}</eid2:Request>{outputs}</eid2:SignResponseExtension>"
    )


def _signed(task: SignTask, signature: bytes, algorithm: str) -> str:
    named = f" SignTaskId={quoteattr(task.id)}" if task.id is not None else ""
    return (
        f'<eid2:SignTaskData{named} SigType="{task.signature_type}" AdESType="None">'
        f"<eid2:ToBeSignedBytes>{_base64(task.to_be_signed)}</eid2:ToBeSignedBytes>"
        f"<eid2:Base64Signature Type={quoteattr(algorithm)}>{_base64(signature)}</eid2:Base64Signature>"
        "</eid2:SignTaskData>"
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
