"""Whether the other end of a TLS connection has a revoked certificate: judged after the handshake, with CRLs.

CRLs stay out of Python's `ssl`: with one it refuses every certificate of an issuer without. The console's validator,
which also decides on the page Certificates, judges the certificates that the other end has presented.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from labconsole.errors import UserError
from labconsole.security.identities import IdentityFiles, load_certificates
from labconsole.security.x509.parsing import read_file
from labconsole.security.x509.validation.judgement import Judgement, Purpose

_DER = 2
"""`ENCODING_DER` of the module `_ssl`, which is private until Python 3.13."""
_END = b"-----END X509 CRL-----"


class RevocationCheck:
    """Judges the other ends' certificates by trusted CAs and CRLs, read once."""

    def __init__(self, trust: Path, crls: Path) -> None:
        """Raises UserError: a file cannot be read."""
        from labconsole.security.x509.validation.validator import Validator  # late: roles without CRLs start faster

        self._validator = Validator
        self._roots = load_certificates(trust)
        self._crls = _read_crls(crls)

    def refusal_on(self, sock: ssl.SSLSocket, purpose: Purpose) -> str:
        """Why the certificate of a connection's other end is refused, in a clause; empty: it is accepted."""
        try:
            presented = presented_on(sock)
        except Exception as error:  # noqa: BLE001 - whatever it presents: what cannot be read is not let in
            return f"a certificate cannot be read ({type(error).__name__}: {error})"
        return self.refusal(presented, purpose) if presented else "no certificate was presented"

    def refusal(self, presented: Sequence[x509.Certificate], purpose: Purpose) -> str:
        """Why a certificate is refused, in a clause; empty: it is accepted. `presented` begins with it."""
        try:
            judgement = self._judge(presented, purpose)
        except Exception as error:  # noqa: BLE001 - what the validator cannot read is not let in, and ends no broker
            return f"a certificate cannot be judged ({type(error).__name__}: {error})"
        if judgement.accepted:
            return ""
        name = f"the certificate of {_common_name(presented[0])}"
        return f"{name} is revoked" if judgement.revoked else f"{name} is refused: {judgement.why.rstrip('.')}"

    def knows_all(self, presented: Sequence[x509.Certificate], purpose: Purpose) -> bool:
        """Whether there is a CRL of every CA of a certificate that is accepted."""
        return not self._judge(presented, purpose).revocation_unknown

    def _judge(self, presented: Sequence[x509.Certificate], purpose: Purpose) -> Judgement:
        leaf, *others = presented
        validator = self._validator(self._roots, (), self._crls, at=datetime.now(UTC))
        return validator.validate(leaf, purpose, None, others)


def check_of(files: IdentityFiles, trust: Path | None = None) -> RevocationCheck | None:
    """The check by the CRLs of an identity, below `trust` or what it trusts; None where it has none.

    Raises UserError: a file cannot be read.
    """
    trust = trust or files.trust
    return RevocationCheck(trust, files.crls) if trust is not None and files.crls is not None else None


def presented_on(sock: ssl.SSLSocket) -> tuple[x509.Certificate, ...]:
    """The certificates that the other end of a connection has presented, its own first; none where it has none.

    Raises ValueError and other exceptions of `cryptography`: one cannot be read.
    """
    if hasattr(sock, "get_unverified_chain"):  # Python 3.13
        chain = sock.get_unverified_chain()
    else:
        chain = [one.public_bytes(_DER) for one in sock._sslobj.get_unverified_chain() or ()]  # type: ignore[attr-defined]
    return tuple(map(x509.load_der_x509_certificate, chain))


def _common_name(certificate: x509.Certificate) -> str:
    from labconsole.security.x509.names import short_name  # late, as above

    return short_name(certificate)


def _read_crls(path: Path) -> tuple[x509.CertificateRevocationList, ...]:
    parts = read_file(path, "CRL file").split(_END)[:-1]
    try:
        return tuple(x509.load_pem_x509_crl(part + _END) for part in parts)
    except ValueError as error:
        raise UserError(f"the CRL file {path} cannot be read: name a PEM file with CRLs") from error
