"""What a request asks of the signing engine: which algorithm, what is to be signed, what the certificate says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.messages import sign_request, sign_response
from labconsole_keypool.messages.certificate_fields import CertificateFields, fields_of, plain_fields
from labconsole_keypool.messages.sign_request import SignRequest
from labconsole_keypool.messages.sign_request_error import SignRequestError
from labconsole_keypool.messages.signature_algorithms import SignatureAlgorithm, default_for
from labconsole_keypool.messages.wire import Job, JobKind


@dataclass(frozen=True, slots=True)
class Work:
    """One request, whatever its form: `to_be_signed` is hashed and signed with one key of `kind`."""

    kind: KeyKind
    algorithm: SignatureAlgorithm
    to_be_signed: tuple[bytes, ...]
    fields: CertificateFields
    request: SignRequest | None = None

    def answer(self, signatures: Sequence[bytes], chain: Sequence[x509.Certificate]) -> bytes:
        """The certificate (DER), or the SignResponse (XML); `chain` begins with the certificate."""
        if self.request is None:
            return chain[0].public_bytes(Encoding.DER)
        return sign_response.build(self.request, signatures, chain)


class RefusedError(Exception):
    """A sign request that cannot be served; `answer` is the SignResponse that says why."""

    def __init__(self, answer: bytes) -> None:
        super().__init__()
        self.answer = answer


def work_of(job: Job) -> Work:
    """What `job` asks for; of RSA keys, the scenario's size. Raises RefusedError."""
    if job.kind is JobKind.DIGEST:
        return Work(job.key_kind, default_for(job.key_kind), (job.body,), plain_fields(job.request))
    request: SignRequest | None = None
    try:
        request = sign_request.parse(job.body)
        fields = fields_of(request)
    except SignRequestError as error:
        raise RefusedError(sign_response.refused(str(error), request=request)) from error
    kind = job.key_kind if request.algorithm.serves(job.key_kind) else request.key_kind
    return Work(kind, request.algorithm, tuple(task.to_be_signed for task in request.tasks), fields, request)
