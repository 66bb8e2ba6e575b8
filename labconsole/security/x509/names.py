"""Names in any script: distinguished names (RFC 4514) and subject alternative names, as text and back."""

from __future__ import annotations

from cryptography import x509


def name_from_text(text: str) -> x509.Name:
    """A distinguished name from `CN=...,O=...,C=SG` (RFC 4514), values in any script. Raises BadInput."""
    raise NotImplementedError


def name_as_text(name: x509.Name) -> str:
    """RFC 4514, with what does not show or turns the direction of writing as hex pairs; `name_from_text` reads it."""
    raise NotImplementedError


def general_name_from_text(text: str) -> x509.GeneralName:
    """A subject alternative name: a host (`bücher.example`, IDNA 2008), `IP:`, `URI:`, `email:` or `DIR:CN=...`.

    A bare IP address is one too, as is a bare mail address. Raises BadInput.
    """
    raise NotImplementedError


def name_constraint_from_text(text: str) -> x509.GeneralName:
    """A subtree for name constraints (RFC 5280, 4.2.1.10): as `general_name_from_text`, and `IP:` of a network."""
    raise NotImplementedError


def general_name_as_text(name: x509.GeneralName) -> str:
    """`bücher.example (xn--bcher-kva.example)`, `IP:192.0.2.1` ...: the U-label, and the A-label beside it."""
    raise NotImplementedError


def short_name(certificate: x509.Certificate | x509.CertificateSigningRequest) -> str:
    """What to call it in a list: common name, else organisation, else its first alternative name."""
    raise NotImplementedError


def shown(text: str) -> str:
    """Text from outside, safe to show: characters that do not show or turn the direction of writing as `<U+202E>`."""
    raise NotImplementedError
