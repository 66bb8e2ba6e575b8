"""OCSP responses (RFC 6960, RFC 9654 for nonces): whether a certificate is good, revoked, or unknown here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.x509.crl_issuing import Revoked
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.issuing import Issuer
from labconsole.security.x509.key_types import signing_hash
from labconsole.security.x509.validity import Validity

_NO_REQUEST = (ValueError, TypeError, UnsupportedAlgorithm, NotImplementedError, x509.DuplicateExtension)
"""Exceptions of the library for malformed requests; the last one: several certificates in one (RFC 5019)."""
_LONGEST_NONCE = 128  # octets (RFC 9654, 2.1)


class NotRevoked(StrEnum):
    """The status of a serial number that the issuer did not revoke (RFC 6960, 2.2)."""

    GOOD = "good"
    """The issuer issued a certificate with it."""
    UNKNOWN = "unknown"
    """The issuer never did."""


_STATUS = {NotRevoked.GOOD: ocsp.OCSPCertStatus.GOOD, NotRevoked.UNKNOWN: ocsp.OCSPCertStatus.UNKNOWN}

StatusOf = Callable[[int], NotRevoked | Revoked]
"""Returns the status of the issuer's certificate with a serial number."""


def answer(
    request_der: bytes, issuer: x509.Certificate, responder: Issuer, status_of: StatusOf, validity: Validity
) -> bytes:
    """The DER of the OCSP response; for malformed requests, and for several certificates, "malformedRequest".

    Args:
        issuer: the CA whose certificates are answered for; those of others are "unknown".
        responder: the signer: that CA itself, or an OCSP responder that it certified.
        validity: the answer's thisUpdate and nextUpdate.

    Raises:
        TokenError: the responder's key is in a token that refuses.
    """
    try:
        request = ocsp.load_der_ocsp_request(request_der)
        nonce = _nonce(request)
        ours = _asks_for(request, issuer)
    except _NO_REQUEST:
        refusal = ocsp.OCSPResponseBuilder.build_unsuccessful(ocsp.OCSPResponseStatus.MALFORMED_REQUEST)
        return refusal.public_bytes(Encoding.DER)
    status = status_of(request.serial_number) if ours else NotRevoked.UNKNOWN
    builder = (
        ocsp.OCSPResponseBuilder()
        .add_response_by_hash(
            request.issuer_name_hash,
            request.issuer_key_hash,
            request.serial_number,
            request.hash_algorithm,
            ocsp.OCSPCertStatus.REVOKED if isinstance(status, Revoked) else _STATUS[status],
            validity.not_before,
            validity.not_after,
            status.at if isinstance(status, Revoked) else None,
            _reason(status) if isinstance(status, Revoked) else None,
        )
        .responder_id(ocsp.OCSPResponderEncoding.HASH, responder.certificate)
    )
    if responder.certificate != issuer:
        builder = builder.certificates([responder.certificate])
    if nonce is not None:
        builder = builder.add_extension(nonce, critical=False)
    return builder.sign(responder.key, signing_hash(responder.key)).public_bytes(Encoding.DER)


def _nonce(request: ocsp.OCSPRequest) -> x509.OCSPNonce | None:
    """The nonce that the response must repeat, if any. Raises ValueError: it is not 1 to 128 octets long."""
    nonce = extension_of(request.extensions, x509.OCSPNonce)
    if nonce is not None and not 1 <= len(nonce.nonce) <= _LONGEST_NONCE:
        raise ValueError("a nonce that is too long or empty")
    return nonce


def _asks_for(request: ocsp.OCSPRequest, issuer: x509.Certificate) -> bool:
    """Whether a request is about a certificate of `issuer`, identified by the hashes of its name and key.

    Raises:
        ValueError: the hashes are malformed, or the serial number is negative.
        UnsupportedAlgorithm: unknown hashes.
    """
    asked = (request.issuer_name_hash, request.issuer_key_hash)
    if request.serial_number < 0 or {len(part) for part in asked} != {request.hash_algorithm.digest_size}:
        raise ValueError("a certificate ID that cannot be")
    own = ocsp.OCSPRequestBuilder().add_certificate(issuer, issuer, request.hash_algorithm).build()
    return asked == (own.issuer_name_hash, own.issuer_key_hash)


def _reason(revoked: Revoked) -> x509.ReasonFlags | None:
    return None if revoked.reason is x509.ReasonFlags.unspecified else revoked.reason


class StatusBook:
    """The status of certificates that `authority`'s key signed, by serial number; follows changes of the database."""

    def __init__(self, reader: PkiReader, authority: CertificateRecord) -> None:
        self._reader = reader
        self._authority = authority
        self._seen: Snapshot | None = None
        self._statuses: Mapping[int, NotRevoked | Revoked] = {}

    def status_of(self, serial: int) -> NotRevoked | Revoked:
        """Whether the certificate with this serial number is good, revoked, or unknown. Raises StoreError."""
        snapshot = self._reader.snapshot()  # cached while the database is unchanged
        if snapshot is not self._seen:
            self._statuses, self._seen = self._read(snapshot), snapshot
        return self._statuses.get(serial, NotRevoked.UNKNOWN)

    def _read(self, snapshot: Snapshot) -> Mapping[int, NotRevoked | Revoked]:
        key = self._authority.certificate.public_key()
        return {
            record.certificate.serial_number: NotRevoked.GOOD
            if record.revoked is None
            else Revoked(record.certificate.serial_number, record.revoked.at, record.revoked.reason)
            for record in snapshot.certificates
            if any(issuer.certificate.public_key() == key for issuer in snapshot.issuers_of(record))
        }
