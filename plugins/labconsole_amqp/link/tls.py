"""TLS for both ends of an AMQP connection: settings, contexts, and a sentence for each failure.

Python's `ssl` does TLS on the socket, and proton handles plain bytes. It is as fast as
proton's `pn_ssl` (measured side by side), and unlike that it checks IP addresses in certificates, reports why a
handshake failed, and loads no system CA bundle (25 ms each).
"""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from labconsole.errors import UserError
from labconsole.security.identities import LoadedIdentity
from labconsole_amqp.choices import TlsVersion
from labconsole_amqp.link.revocation import RevocationCheck, check_of
from labconsole_amqp.wire.amqp_types import SASL_HEADER

_VERSIONS = {TlsVersion.V1_2: ssl.TLSVersion.TLSv1_2, TlsVersion.V1_3: ssl.TLSVersion.TLSv1_3}

# OpenSSL's X509_V_ERR_* codes (x509_vfy.h).
_NOT_YET_VALID, _EXPIRED = 9, 10
_UNKNOWN_ISSUER = frozenset((2, 18, 19, 20, 21))
_NAME_MISMATCH = frozenset((62, 64))


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """TLS settings of one end.

    A client without `identity` stays anonymous. `trust` is a PEM file with the trusted certificates: CAs, or a peer's
    own certificate; without it, the file of the identity counts. `server_name` is the name that the server's
    certificate must carry; empty: the host of the endpoint.
    """

    identity: LoadedIdentity | None = None
    trust: Path | None = None
    server_name: str = ""
    minimum: TlsVersion = TlsVersion.V1_2

    def revocation_check(self) -> RevocationCheck | None:
        """The check of the other end's certificate by CRLs; None where this end has none. Raises UserError."""
        return check_of(self.identity.files, self.trust) if self.identity is not None else None

    def judging(self) -> RevocationCheck | None:
        """As `revocation_check`, and by trust alone without CRLs: a connection that is open may have a root that is no
        longer trusted. Raises UserError."""
        check = self.revocation_check()
        return RevocationCheck(self.trust_file, None) if check is None and self.trust_file is not None else check

    @property
    def trust_file(self) -> Path | None:
        """PEM file with the trusted certificates."""
        return self.trust or (self.identity.files.trust if self.identity is not None else None)


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """A client context: trusts only the trust file, presents our certificate if there is one. Raises UserError."""
    if settings.trust_file is None:
        raise UserError("TLS needs a CA file: name the certificate that signed the broker's, or the broker's own")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _load(context, settings)
    return context


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """A server context: presents our certificate; with a trust file it requires the client's. Raises UserError."""
    if settings.identity is None:
        raise UserError("a TLS port needs the broker's certificate and key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # No tickets: a client would come back without a handshake that looks at its certificate.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    if settings.trust_file is not None:
        context.verify_mode = ssl.CERT_REQUIRED
    _load(context, settings)
    return context


def _load(context: ssl.SSLContext, settings: TlsSettings) -> None:
    context.minimum_version = _VERSIONS[settings.minimum]
    if (trust := settings.trust_file) is not None:
        # A certificate that is trusted by name needs no chain up to a root: self-signed between two States.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(cafile=trust)
        except (OSError, ssl.SSLError) as error:
            raise UserError(f"the CA file {trust} cannot be read: {_reason(error)}") from error
    if (identity := settings.identity) is not None:
        secret = identity.secret
        try:
            # Always with a password, or OpenSSL would ask for one on the terminal.
            context.load_cert_chain(
                identity.certificate_file, identity.key_file, lambda: secret.reveal() if secret is not None else ""
            )
        except (OSError, ssl.SSLError) as error:
            raise UserError(
                f"the certificate {identity.certificate_file} and its key {identity.key_file} cannot be used "
                f"({_reason(error)}): check both files and the key's passphrase"
            ) from error


def peer_subject(sock: ssl.SSLSocket) -> str | None:
    """The peer's distinguished name, `CN=State A,O=..`, most specific part first (as RFC 4514); None without one."""
    certificate = sock.getpeercert()
    if not certificate:
        return None
    short = {"commonName": "CN", "organizationName": "O", "organizationalUnitName": "OU", "countryName": "C"}
    names = certificate.get("subject", ())
    return ",".join(f"{short.get(key, key)}={value}" for part in reversed(names) for key, value in part)


def server_failure(error: Exception) -> str:
    """Why a broker refused a client in the TLS handshake, as a short clause."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == _EXPIRED:
            return "client certificate expired"
        if error.verify_code == _NOT_YET_VALID:
            return "client certificate not yet valid"
        if error.verify_code in _UNKNOWN_ISSUER:
            return "client certificate of a foreign CA"
        return f"client certificate refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "client certificate missing"
    if isinstance(error, ssl.SSLError) and error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return "client does not speak TLS, which this port needs"
    return f"TLS handshake failed: {_reason(error)}"


def client_failure(peer: str, expected_name: str, settings: TlsSettings, error: Exception) -> str:
    """Why TLS with the broker `peer` (`host:port`) failed, in one sentence with what to do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == _EXPIRED:
            return f"the certificate of {peer} has expired: the broker needs a new one"
        if error.verify_code == _NOT_YET_VALID:
            return f"the certificate of {peer} is not yet valid: check both clocks"
        if error.verify_code in _NAME_MISMATCH:
            return (
                f'the certificate of {peer} is not for {expected_name}: set "Server name" (server_name) to a name in '
                "the certificate"
            )
        if error.verify_code in _UNKNOWN_ISSUER:
            return (
                f"the certificate of {peer} is not trusted by {settings.trust_file} (wrong CA file or foreign "
                f"certificate): get the right CA of that broker"
            )
        return f"the certificate of {peer} was refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason is not None and "ALERT" in error.reason:
        return _alert(peer, settings, error.reason)
    if isinstance(error, ssl.SSLError) and error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return plain_port_remedy(peer)
    if isinstance(error, ssl.SSLError) and error.reason == "UNSUPPORTED_PROTOCOL":
        return _version_mismatch(peer, settings)
    if isinstance(error, TimeoutError):
        return f"{peer} did not finish the TLS handshake in time"
    hint = "" if settings.identity else "; it may require a client certificate"
    return f"{peer} closed the connection during TLS ({_reason(error)}){hint}"


def _alert(peer: str, settings: TlsSettings, reason: str) -> str:
    if settings.identity is None:
        if "CERTIFICATE" in reason or "HANDSHAKE_FAILURE" in reason:
            return f"{peer} requires a client certificate: name certificate and key"
    else:
        refusal = f"{peer} refused our client certificate {settings.identity.certificate_file}"
        causes = {
            "CERTIFICATE_EXPIRED": "it has expired",
            "UNKNOWN_CA": "it does not know the CA",
            "CERTIFICATE_REVOKED": "it is revoked",
        }
        for key, cause in causes.items():
            if key in reason:
                return f"{refusal}: {cause}"
        if "CERTIFICATE" in reason:
            return f"{refusal}: it must be one that the broker trusts"
    if "PROTOCOL_VERSION" in reason:
        return _version_mismatch(peer, settings)
    return f"{peer} refused TLS: {reason.lower().replace('_', ' ')}"


def _version_mismatch(peer: str, settings: TlsSettings) -> str:
    if settings.minimum is TlsVersion.V1_2:
        return f"{peer} speaks neither TLS 1.2 nor 1.3: it must be updated, since older versions are not safe"
    return f'{peer} does not speak TLS 1.3: set "TLS from" (tls_minimum) to 1.2'


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


_TIMEOUT_S = 0.7
_HANDSHAKE, _ALERT = 0x16, 0x15


class PortProtocol(Enum):
    """The protocol that a port answers."""

    AMQP = auto()
    TLS = auto()
    UNKNOWN = auto()


def probe_port_protocol(host: str, port: int) -> PortProtocol:
    """Find out by two more connections, at most 0.7 s each: first in plain AMQP, then by a TLS hello."""
    if _answer(host, port, SASL_HEADER)[:4] == b"AMQP":
        return PortProtocol.AMQP
    answer = _answer(host, port, _client_hello())
    if len(answer) > 1 and answer[0] in (_HANDSHAKE, _ALERT) and answer[1] == 3:
        return PortProtocol.TLS
    return PortProtocol.UNKNOWN


def plain_port_remedy(peer: str) -> str:
    """What to do about a port that speaks plain AMQP, as a clause."""
    return f"{peer} does not speak TLS: use its TLS port, or choose Test 1, which has no TLS"


def tls_port_remedy(peer: str) -> str:
    """What to do about a port that speaks TLS only, as a clause."""
    return f"{peer} is a TLS port, and Test 1 has no TLS: use the broker's port without TLS, or choose Test 2, 3 or 4"


def _answer(host: str, port: int, request: bytes) -> bytes:
    try:
        with socket.create_connection((host, port), _TIMEOUT_S) as sock:
            sock.sendall(request)
            return sock.recv(64)
    except OSError:
        return b""


def _client_hello() -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # only the first bytes of the answer are read
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()
