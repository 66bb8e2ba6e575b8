"""Reads one extension (RFC 5280, 4.2 and 5.2) of a certificate, CSR or CRL, if it has that extension."""

from __future__ import annotations

from typing import TypeVar

from cryptography import x509

E = TypeVar("E", bound=x509.ExtensionType)


def extension_of(extensions: x509.Extensions, kind: type[E]) -> E | None:
    """The extension of this kind; None if there is none."""
    return next((one.value for one in extensions if isinstance(one.value, kind)), None)


def alternative_names(extensions: x509.Extensions) -> tuple[x509.GeneralName, ...]:
    """The names in subjectAltName (4.2.1.6), in their order; empty without it."""
    return tuple(extension_of(extensions, x509.SubjectAlternativeName) or ())


def is_ca(certificate: x509.Certificate) -> bool:
    """Whether it is the certificate of a CA, as its basicConstraints say (4.2.1.9)."""
    constraints = extension_of(certificate.extensions, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def crl_number(crl: x509.CertificateRevocationList) -> int:
    """The number of a CRL (5.2.3); 0 where it has none."""
    number = extension_of(crl.extensions, x509.CRLNumber)
    return 0 if number is None else number.crl_number


def crl_scope(crl: x509.CertificateRevocationList) -> bytes:
    """The scope of a CRL, for comparison: DER of its issuing distribution point (5.2.5), and whether it is a delta CRL
    (5.2.4)."""
    point = extension_of(crl.extensions, x509.IssuingDistributionPoint)
    delta = extension_of(crl.extensions, x509.DeltaCRLIndicator)
    return (b"" if delta is None else b"delta") + (b"" if point is None else point.public_bytes())
