"""Whether the other end of a TLS connection has a revoked certificate: judged after the handshake, with CRLs.

CRLs stay out of Python's `ssl`: with one it refuses every certificate of an issuer without. The console's validator,
which also decides on the page Certificates, judges the certificates that the other end has presented.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from labconsole.errors import BadInput
from labconsole.security.identities import IdentityFiles, load_certificates

if TYPE_CHECKING:
    from cryptography import x509

    from labconsole.security.x509.validation.judgement import Judgement, Purpose

_DER = 2
"""`ENCODING_DER` of the module `_ssl`, which is private until Python 3.13."""


class RevocationCheck:
    """Judges the other ends' certificates by trusted CAs and CRLs, read once."""

    def __init__(self, trust: Path, crls: Path | None) -> None:
        """Without CRLs, trust alone is judged. Raises UserError: a file cannot be read."""
        # Imported late: roles without TLS have no certificates, and those without CRLs start without the validator.
        from labconsole.security.x509.parsing import read_crls, read_file
        from labconsole.security.x509.validation.validator import Validator

        self._validator = Validator
        self._roots = load_certificates(trust)
        self._crls = read_crls(read_file(crls, "CRL file"), f"The CRL file {crls}") if crls is not None else ()

    def refusal_on(self, sock: ssl.SSLSocket, purpose: Purpose) -> str:
        """Why the certificate of a connection's other end is refused, in a clause; empty: it is accepted."""
        try:
            presented = presented_on(sock)
        except BadInput as error:
            return f"a certificate cannot be read: {str(error).rstrip('.')}"
        return self.refusal(presented, purpose) if presented else "no certificate was presented"

    def refusal(self, presented: Sequence[x509.Certificate], purpose: Purpose) -> str:
        """Why a certificate is refused, in a clause; empty: it is accepted. `presented` begins with it."""
        from labconsole.security.x509.names import short_name

        judgement = self._judge(presented, purpose)
        if judgement.accepted:
            return ""
        name = f"the certificate of {short_name(presented[0])}"
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

    They are parsed strictly: using them later raises nothing. Raises BadInput: one cannot be read.
    """
    from labconsole.security.x509.parsing import read_certificate

    if hasattr(sock, "get_unverified_chain"):  # Python 3.13
        chain = sock.get_unverified_chain()
    else:
        chain = [one.public_bytes(_DER) for one in sock._sslobj.get_unverified_chain() or ()]  # type: ignore[attr-defined]
    return tuple(read_certificate(der, "The peer's certificate") for der in chain)
