"""Reads OASIS DSS / Swedish csig sign requests, which are untrusted.

The requester is not authenticated: neither its signature nor an identity provider is checked. The signer is the one
that the request names.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache

from labconsole import paths
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.messages import safe_xml, signature_algorithms
from labconsole_keypool.messages.safe_xml import Element, SignRequestError
from labconsole_keypool.messages.signature_algorithms import ECDSA_SHA256, SignatureAlgorithm
from labconsole_keypool.messages.signer_attributes import SignerAttribute, mapped, requested

MOST_TASKS = 100
"""A request with more is refused: each task costs a signature."""

_WHAT = "sign request"


class Form(StrEnum):
    """The element of a request with the extensions to DSS."""

    SOURCE = "source"
    """Directly under OptionalInputs, as in the source's Appendix A."""
    CSIG = "csig"
    """In a SignRequestExtension, as in csig 1.0."""


class CertificateType(StrEnum):
    """The kind of certificate requested (csig 1.0, CertRequestProperties)."""

    PKC = "PKC"
    """Not qualified."""
    QC = "QC"
    """Qualified."""
    QC_SSCD = "QC/SSCD"
    """Qualified, its key in a secure signature creation device."""


class SignatureType(StrEnum):
    """The format of the signed document (csig 1.0, SigType)."""

    XML = "XML"
    PDF = "PDF"
    CMS = "CMS"
    ASIC = "ASiC"


@dataclass(frozen=True, slots=True)
class SignTask:
    """One task: `to_be_signed` is hashed and signed unchanged."""

    id: str | None
    """None where the only task has none."""
    signature_type: SignatureType
    to_be_signed: bytes


@dataclass(frozen=True, slots=True)
class SignRequest:
    """A sign request that can be served."""

    request_id: str
    profile: str
    form: Form
    requester: str
    algorithm: SignatureAlgorithm
    certificate_type: CertificateType
    attributes: tuple[SignerAttribute, ...]
    context: str | None
    """The received SAMLAuthContext element as XML, self-contained; None where the request has none."""
    tasks: tuple[SignTask, ...]
    received: bytes = field(repr=False)
    """The whole request as received."""

    @property
    def key_kind(self) -> KeyKind:
        """The kind of key that the algorithm takes; of RSA keys, the pool's smallest (`SignatureAlgorithm.serves`)."""
        return self.algorithm.key_kind


def parse(data: bytes) -> SignRequest:
    """Read a sign request. Fetches nothing, expands no entity; 0.1 ms for one of 4 kB.

    Raises:
        SignRequestError: too long, has a DOCTYPE, is not XML, lacks an element, has expired, has an unknown choice.
    """
    root = safe_xml.parse(data, _WHAT)
    if not root.is_a("dss:SignRequest"):
        raise SignRequestError("This is not a sign request: its root must be a SignRequest of OASIS DSS 1.0.")
    inputs = root.need("dss:OptionalInputs")
    extension = inputs.find("csig:SignRequestExtension")
    form = Form.SOURCE if extension is None else Form.CSIG
    asked = inputs if extension is None else _current(extension)
    properties = asked.find("csig:CertRequestProperties") if extension else asked.need("csig:CertRequestProperties")
    context = asked.need("saci:SAMLAuthContext") if extension is None else asked.find(".//saci:SAMLAuthContext")
    return SignRequest(
        request_id=root.attribute("RequestID"),
        profile=root.attribute("Profile", ""),
        form=form,
        requester=asked.need("csig:SignRequester").text(),
        algorithm=signature_algorithms.algorithm_of(asked.need("csig:RequestedSignatureAlgorithm").text()),
        certificate_type=properties.choice("CertType", CertificateType, CertificateType.PKC)
        if properties
        else CertificateType.PKC,
        attributes=tuple(mapped(context) if context else requested(asked)),
        context=context.source() if context else None,
        tasks=_tasks(root.need("dss:InputDocuments/dss:Other/csig:SignTasks")),
        received=data,
    )


def sample(
    number: int = 0,
    *,
    algorithm: SignatureAlgorithm = ECDSA_SHA256,
    tasks: int | Sequence[bytes] = 1,
    form: Form = Form.SOURCE,
    certificate_type: CertificateType = CertificateType.QC_SSCD,
) -> bytes:
    """A valid sign request of an invented signer, the same for the same arguments; another `number`, another one.

    `tasks` is their number, or the bytes to be signed in each.
    """
    digest = hashlib.sha256(number.to_bytes(8, "big")).digest()
    contents = [digest + bytes([at]) for at in range(tasks)] if isinstance(tasks, int) else tasks
    return (
        _template(form)
        .format(
            request_id=digest.hex()[:32],
            algorithm=algorithm.uri,
            certificate_type=certificate_type,
            personal_number=f"1912121{number % 100_000:05}",
            tasks="".join(
                f'<eid2:SignTaskData SignTaskId="SignTask{at}" SigType="XML" AdESType="None"><eid2:ToBeSignedBytes>'
                f"{base64.b64encode(content).decode()}</eid2:ToBeSignedBytes></eid2:SignTaskData>"
                for at, content in enumerate(contents, start=1)
            ),
        )
        .encode()
    )


@cache
def _template(form: Form) -> str:
    return paths.resource("sign-requests", f"{form}.xml").read_text(encoding="utf-8")


def _current(extension: Element) -> Element:
    """The extension, whose Conditions (SAML 2.0 core, 2.5) must be met now."""
    conditions = extension.need("saml:Conditions")
    if not _instant(conditions, "NotBefore") <= datetime.now(UTC) < _instant(conditions, "NotOnOrAfter"):
        raise SignRequestError("The sign request is out of its time (Conditions): create a new one.")
    return extension


def _instant(element: Element, name: str) -> datetime:
    given = element.attribute(name)
    try:
        instant = datetime.fromisoformat(given)
    except ValueError as error:
        raise SignRequestError(f"The sign request's {name} is not a time: write it as 2026-01-31T12:00:00Z.") from error
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _tasks(given: Element) -> tuple[SignTask, ...]:
    tasks = tuple(map(_task, given.every("csig:SignTaskData")))
    if not 1 <= len(tasks) <= MOST_TASKS:
        raise SignRequestError(
            f"The sign request has {len(tasks)} sign tasks, where 1 to {MOST_TASKS} are taken: split it."
        )
    if len(tasks) > 1 and (None in (ids := {task.id for task in tasks}) or len(ids) < len(tasks)):
        raise SignRequestError("The sign request's tasks cannot be distinguished: give each a SignTaskId of its own.")
    return tasks


def _task(given: Element) -> SignTask:
    # What is signed in an AdES holds the certificate, which is made only now; rules would change it otherwise.
    if given.attribute("AdESType", "None") != "None" or given.attribute("ProcessingRules", ""):
        raise SignRequestError(
            "The sign request asks for an AdES signature or for processing rules, and this service signs the bytes as"
            " they are: ask for AdESType None."
        )
    task_id = given.attribute("SignTaskId", "") or None
    signature_type = given.choice("SigType", SignatureType)
    return SignTask(task_id, signature_type, given.need("csig:ToBeSignedBytes").decoded())
