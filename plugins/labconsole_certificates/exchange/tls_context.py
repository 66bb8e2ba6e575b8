"""The credentials of one end of a proving handshake, and its TLS context, in which OpenSSL checks the other end."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from OpenSSL import SSL, crypto

from labconsole.errors import BadInput
from labconsole.security.identities import validity_problem
from labconsole.security.x509.fingerprints import fingerprint
from labconsole.security.x509.issuing import check_key_pair
from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validation.judgement import Purpose
from labconsole.security.x509.validation.openssl_path import (
    NO_CRL,
    PATH_FLAGS,
    TLS_CRL_FLAGS,
    fill,
    with_clock_skew,
)
from labconsole.security.x509.validation.validator import Validator, usage_problem

_NO_AUTO_CHAIN = 0x8
"""SSL_MODE_NO_AUTO_CHAIN of ssl.h: sends the given intermediates and no others, so that a missing one is noticed."""

_SENDS_CERTIFICATE = b"write client certificate"
"""Part of OpenSSL's state text (ssl/ssl_stat.c) after a server has requested the client's certificate."""


@dataclass
class TlsObservation:
    """What OpenSSL reports during one connection: the application data of that connection."""

    error: int | None = None
    """Verification error of the other end's certificates (x509_vfy.h)."""
    failing: bytes = b""
    """The certificate with that error, as DER: `cryptography` may be unable to read it."""
    depth: int = 0
    """Depth of that certificate: 0 is the end certificate."""
    certificate_requested: bool = False
    """Whether the server requested the certificate of this end, a client."""


def _none_refused(path: Sequence[x509.Certificate]) -> str:
    return ""


@dataclass(frozen=True)
class TlsCredentials:
    """One end of a handshake: its certificate, the intermediates above it, its key, its trusted roots and CRLs.

    `pins` are SHA-256 fingerprints (hex) of end certificates that are accepted without any CA while they are valid.
    TLS context and validator are built once, at the first handshake, and serve any number of them.
    """

    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...]
    key: PrivateKey
    roots: tuple[x509.Certificate, ...]
    crls: tuple[x509.CertificateRevocationList, ...] = ()
    pins: Collection[str] = ()
    names_refused: Callable[[Sequence[x509.Certificate]], str] = _none_refused
    """Returns why it refuses the names of the end certificate that begins a path; empty: it accepts them."""

    @cached_property
    def context(self) -> SSL.Context:
        """TLS 1.2 or later, for client and server, with a certificate required of the other end.

        Trust is judged at the time of the first use. A connection's application data may be a `TlsObservation`, to be
        filled in.

        Raises:
            BadInput: the key is not the certificate's, or its bytes are not available (a token key).
        """
        return _tls_context(self)

    def judge(self, presented: Sequence[x509.Certificate], purpose: Purpose, name: str | None) -> tuple[bool, str]:
        """Whether it accepts the other end's certificates (the end certificate first), and why. Raises BadInput."""
        leaf, *intermediates = presented
        if fingerprint(leaf) in self.pins:
            problem = validity_problem(leaf, datetime.now(UTC)) or usage_problem((leaf,), purpose, name)
            if problem:
                return False, f"It is pinned, but {problem}."
            refused = self.names_refused((leaf,))
            return (False, refused) if refused else (True, "It is pinned by its fingerprint.")
        judgement = self._validator.validate(leaf, purpose, name, intermediates)
        refused = self.names_refused(judgement.path) if judgement.accepted else ""
        return (False, refused) if refused else (judgement.accepted, judgement.why)

    @cached_property
    def _validator(self) -> Validator:
        return Validator(self.roots, (), self.crls, at=datetime.now(UTC))


def _tls_context(end: TlsCredentials) -> SSL.Context:
    check_key_pair(end.certificate, end.key)
    context = SSL.Context(SSL.TLS_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_options(SSL.OP_NO_TICKET)
    context.set_mode(_NO_AUTO_CHAIN)
    context.use_certificate(end.certificate)
    for intermediate in end.chain:
        context.add_extra_chain_cert(intermediate)
    _use_key(context, end.key, short_name(end.certificate))
    flags = TLS_CRL_FLAGS if end.crls else PATH_FLAGS
    store = context.get_cert_store()
    if store is not None:  # as every context has one
        moment = with_clock_skew(end.crls, datetime.now(UTC))
        fill(store, map(crypto.X509.from_cryptography, end.roots), end.crls, flags, moment)
    context.set_info_callback(_note_state)
    # pins are unknown to OpenSSL, so with pins it lets every certificate pass, and `TlsCredentials.judge` decides
    verify = _pass if end.pins else _pass_without_crl
    context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, verify)
    return context


def _use_key(context: SSL.Context, key: PrivateKey, name: str) -> None:
    try:
        der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    except UnsupportedAlgorithm as error:
        raise BadInput(
            f"The private key of {name} is in a token, and TLS cannot use it there: prove it with a key in a file."
        ) from error
    with warnings.catch_warnings():
        # pyOpenSSL accepts ML-DSA keys only in its own form, which it calls deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        context.use_privatekey(crypto.load_privatekey(crypto.FILETYPE_ASN1, der))


def _pass(connection: SSL.Connection, certificate: crypto.X509, error: int, depth: int, accepted: int) -> bool:
    return True


def _pass_without_crl(
    connection: SSL.Connection, certificate: crypto.X509, error: int, depth: int, accepted: int
) -> bool:
    """Whether OpenSSL accepts a certificate, a missing CRL apart; its error is recorded for `TlsEndpoint.report`."""
    passes = bool(accepted) or error == NO_CRL
    seen = connection.get_app_data()
    if not passes and isinstance(seen, TlsObservation):
        seen.error, seen.depth = error, depth
        seen.failing = crypto.dump_certificate(crypto.FILETYPE_ASN1, certificate)
    return passes


def _note_state(connection: SSL.Connection, where: int, outcome: int) -> None:
    seen = connection.get_app_data()
    if isinstance(seen, TlsObservation) and _SENDS_CERTIFICATE in connection.get_state_string():
        seen.certificate_requested = True
