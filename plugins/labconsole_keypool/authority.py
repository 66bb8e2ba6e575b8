"""The CA that certifies each request's key: its own key in software, as in the source, or in the token."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from cryptography import x509

from labconsole.security.token.opening import Token
from labconsole_keypool.certificate_fields import CertificateFields


class Authority:
    """A CA: its private key, its certificate, and the certificates it issues (RFC 5280)."""

    chain: tuple[x509.Certificate, ...]
    """The CA's certificate, and those above it."""

    @classmethod
    def of_lab(cls, home: Path | None = None) -> Self:
        """The console's own CA with a P-256 key in software; made on first use, never asks anybody. Raises TrialError."""
        raise NotImplementedError

    @classmethod
    def in_token(cls, token: Token) -> Self:
        """A CA whose key lies in `token` and never leaves it; made on first use. Raises TokenError."""
        raise NotImplementedError

    def issue(self, csr: x509.CertificateSigningRequest, fields: CertificateFields) -> x509.Certificate:
        """A certificate for the key of `csr`, with the fields of the sign request. May be called by several threads.

        Raises:
            InvalidSignature: whoever made `csr` does not have its private key.
        """
        raise NotImplementedError
