"""How one end of a proving handshake speaks TLS: OpenSSL checks the other end's certificates and known CRLs itself."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from OpenSSL import SSL, crypto

from labconsole.errors import BadInput
from labconsole.security.x509.issuing import check_key_pair
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validation.openssl_path import (
    NO_CRL,
    PATH_FLAGS,
    TLS_CRL_FLAGS,
    fill,
    with_clock_skew,
)

_NO_AUTO_CHAIN = 0x8
"""SSL_MODE_NO_AUTO_CHAIN of ssl.h: sends the given intermediates and no others, so that a missing one is noticed."""

_SENDS_CERTIFICATE = b"write client certificate"
"""Of the state that OpenSSL is in (ssl/ssl_stat.c) when a server has asked the client for its certificate."""


@dataclass
class TlsObservation:
    """What OpenSSL meets with in one connection: the application data of that connection."""

    error: int | None = None
    """What it has against the other end's certificates, by the codes of x509_vfy.h."""
    failing: bytes = b""
    """The certificate that it has this against, as DER: it may be one that `cryptography` does not read."""
    depth: int = 0
    """Of that certificate: 0 is the end certificate."""
    asked: bool = False
    """Whether this end, a client, was asked for its certificate."""


def tls_context(
    certificate: x509.Certificate,
    chain: Iterable[x509.Certificate],
    key: PrivateKey,
    roots: Iterable[x509.Certificate],
    crls: Iterable[x509.CertificateRevocationList],
    *,
    judged_later: bool,
) -> SSL.Context:
    """TLS 1.2 or later, for either end, with a certificate asked of the other one.

    What is trusted is judged at the time of the call. A connection's application data may be a `TlsObservation`, to be
    filled in.
    `judged_later`: OpenSSL lets every certificate pass, because pins are known only to who judges afterwards.

    Raises:
        BadInput: `key` is not that of `certificate`, or its bytes cannot be had (it lies in a token).
    """
    check_key_pair(certificate, key)
    context = SSL.Context(SSL.TLS_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_options(SSL.OP_NO_TICKET)
    context.set_mode(_NO_AUTO_CHAIN)
    context.use_certificate(certificate)
    for intermediate in chain:
        context.add_extra_chain_cert(intermediate)
    _use_key(context, key, short_name(certificate))
    lists = tuple(crls)
    flags = TLS_CRL_FLAGS if lists else PATH_FLAGS
    store = context.get_cert_store()
    if store is not None:  # as every context has one
        moment = with_clock_skew(lists, datetime.now(UTC))
        fill(store, map(crypto.X509.from_cryptography, roots), lists, flags, moment)
    context.set_info_callback(_note_state)
    context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, _pass if judged_later else _pass_without_crl)
    return context


def _use_key(context: SSL.Context, key: PrivateKey, name: str) -> None:
    try:
        der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    except UnsupportedAlgorithm as error:
        raise BadInput(
            f"The private key of {name} is in a token, and TLS cannot use it there: prove it with a key in a file."
        ) from error
    with warnings.catch_warnings():
        # pyOpenSSL takes ML-DSA keys only in its own form, which it calls deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        context.use_privatekey(crypto.load_privatekey(crypto.FILETYPE_ASN1, der))


def _pass(connection: SSL.Connection, certificate: crypto.X509, error: int, depth: int, accepted: int) -> bool:
    return True


def _pass_without_crl(
    connection: SSL.Connection, certificate: crypto.X509, error: int, depth: int, accepted: int
) -> bool:
    """CRLs are used where they are known; what OpenSSL has against a certificate is kept for who explains it."""
    passes = bool(accepted) or error == NO_CRL
    seen = connection.get_app_data()
    if not passes and isinstance(seen, TlsObservation):
        seen.error, seen.depth = error, depth
        seen.failing = crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate)
    return passes


def _note_state(connection: SSL.Connection, where: int, outcome: int) -> None:
    seen = connection.get_app_data()
    if isinstance(seen, TlsObservation) and _SENDS_CERTIFICATE in connection.get_state_string():
        seen.asked = True
