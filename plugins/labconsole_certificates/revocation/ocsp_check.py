"""Asks an OCSP responder about a certificate, and accepts only an answer that its CA has signed (RFC 6960, 3.2)."""

from __future__ import annotations

import http.client
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, mldsa, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, HashAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID

from labconsole.errors import BadInput, UserError
from labconsole.model.operation import Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.identities import validity_problem
from labconsole.security.pki.reader import PkiReader
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.names import short_name
from labconsole.security.x509.signatures import issued_by
from labconsole_certificates.operations.parameter_fields import CertificateChoice
from labconsole_certificates.operations.pki_operation import PkiReport
from labconsole_certificates.operations.record_lookup import certificate_named

_NONCE_OCTETS = 32  # RFC 9654, 2.1
_LONGEST_RESPONSE = 65_536
_RECEIVE_TIMEOUT_S = 5.0
_SKEW = timedelta(minutes=5)


@dataclass(frozen=True)
class OcspAnswer:
    """A responder's answer, with verified signature. `until`: when there will be a newer one, if it says so."""

    status: ocsp.OCSPCertStatus
    revoked_at: datetime | None
    reason: x509.ReasonFlags | None
    at: datetime
    until: datetime | None
    signer: str
    sentence: str


def ask(url: str, certificate: x509.Certificate, issuer: x509.Certificate) -> OcspAnswer:
    """Whether `certificate` of `issuer` is revoked, by the responder at `url` (http).

    Raises:
        UserError: no process answers there, or the URL is malformed.
        BadInput: the answer is malformed, about another certificate, out of date, not to this question, or not signed
            by `issuer` or a responder that it has certified.
    """
    nonce = secrets.token_bytes(_NONCE_OCTETS)
    builder = ocsp.OCSPRequestBuilder().add_certificate(certificate, issuer, SHA256())
    question = builder.add_extension(x509.OCSPNonce(nonce), critical=False).build()
    response = _read(_fetched(url, question.public_bytes(Encoding.DER)))
    if (response.serial_number, response.issuer_key_hash) != (question.serial_number, question.issuer_key_hash):
        raise BadInput("The OCSP responder answered about another certificate: trust nothing of it.")
    if extension_of(response.extensions, x509.OCSPNonce) != x509.OCSPNonce(nonce):
        raise BadInput("The OCSP answer does not repeat the question's nonce, and may be an old one: trust it not.")
    signer = _signer(response, issuer)
    now = datetime.now(UTC)
    until = response.next_update_utc
    if response.this_update_utc > now + _SKEW or (until is not None and until < now - _SKEW):
        raise BadInput("The OCSP answer is not of now: check the clocks of this computer and of the responder.")
    return OcspAnswer(
        response.certificate_status,
        response.revocation_time_utc,
        response.revocation_reason,
        response.this_update_utc,
        until,
        short_name(signer),
        _sentence(response, short_name(certificate), short_name(signer)),
    )


def _fetched(url: str, request: bytes) -> bytes:
    if urlsplit(url).scheme != "http":
        raise UserError(f"{url} is not the address of an OCSP responder: give one that begins with http://.")
    asked = Request(url, request, {"Content-Type": "application/ocsp-request"})
    try:
        with build_opener(ProxyHandler({})).open(asked, timeout=_RECEIVE_TIMEOUT_S) as answered:
            data: bytes = answered.read(_LONGEST_RESPONSE + 1)
    except (URLError, OSError, http.client.HTTPException, ValueError) as error:
        raise UserError(f"No OCSP responder answers at {url} ({error}): is it started?") from error
    if len(data) > _LONGEST_RESPONSE:
        raise BadInput(f"What {url} answers is too long for an OCSP answer: is that the address of a responder?")
    return data


def _read(data: bytes) -> ocsp.OCSPResponse:
    try:
        response = ocsp.load_der_ocsp_response(data)
        if response.response_status is ocsp.OCSPResponseStatus.SUCCESSFUL:
            response.certificate_status, response.extensions  # noqa: B018 - they are parsed on access
            return response
    except ValueError as error:
        raise BadInput("The response is not an OCSP response: is that the address of a responder?") from error
    raise BadInput(f"The OCSP responder does not answer that question ({response.response_status.name.lower()}).")


def _signer(response: ocsp.OCSPResponse, issuer: x509.Certificate) -> x509.Certificate:
    """The certificate whose key signed: the CA's own, or a responder's certified by it (RFC 6960, 4.2.2.2)."""
    for candidate in (issuer, *response.certificates):
        certified = candidate == issuer or (
            issued_by(candidate, issuer)
            and _is_responder(candidate)
            and not validity_problem(candidate, datetime.now(UTC))
        )
        if certified and _signed(response, candidate.public_key()):
            return candidate
    raise BadInput(f"The OCSP answer is not signed by {short_name(issuer)}, nor by a responder of it: trust it not.")


def _is_responder(certificate: x509.Certificate) -> bool:
    return ExtendedKeyUsageOID.OCSP_SIGNING in (extension_of(certificate.extensions, x509.ExtendedKeyUsage) or ())


def _signed(response: ocsp.OCSPResponse, key: object) -> bool:
    signature, data = response.signature, response.tbs_response_bytes
    try:
        match key:
            case rsa.RSAPublicKey():
                key.verify(signature, data, padding.PKCS1v15(), _hash_of(response))
            case ec.EllipticCurvePublicKey():
                key.verify(signature, data, ec.ECDSA(_hash_of(response)))
            case ed25519.Ed25519PublicKey() | ed448.Ed448PublicKey():
                key.verify(signature, data)
            case mldsa.MLDSA44PublicKey() | mldsa.MLDSA65PublicKey() | mldsa.MLDSA87PublicKey():
                key.verify(signature, data)
            case _:
                return False
    except (InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _hash_of(response: ocsp.OCSPResponse) -> HashAlgorithm:
    algorithm = response.signature_hash_algorithm
    if algorithm is None:
        raise InvalidSignature
    return algorithm


def _sentence(response: ocsp.OCSPResponse, name: str, signer: str) -> str:
    match response.certificate_status:
        case ocsp.OCSPCertStatus.GOOD:
            return f"{name} is not revoked, says {signer}."
        case ocsp.OCSPCertStatus.REVOKED:
            reason = f" ({response.revocation_reason.value})" if response.revocation_reason else ""
            return f"{name} was revoked on {response.revocation_time_utc:%Y-%m-%d %H:%M} UTC{reason}, says {signer}."
        case _:
            return f"{signer} does not know {name}."


class AskOcspParameters(Parameters):
    """A certificate, and the OCSP responder of its CA."""

    certificate: CertificateChoice
    url: str = parameter("Address", "URL of the OCSP responder, as in http://127.0.0.1:2560/", positional=True)


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
        return Result((answer.sentence,), data, passed=answer.status is ocsp.OCSPCertStatus.GOOD)
