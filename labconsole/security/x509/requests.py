"""Certificate signing requests (PKCS #10, RFC 2986): made for one's own key, and judged before a CA approves one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509

from labconsole.security.x509.key_types import PrivateKey
from labconsole.security.x509.profiles import CertificateProfile


@dataclass(frozen=True)
class CsrJudgement:
    """What a CA should know before it approves a request."""

    proof_of_possession: bool
    """Whether it is signed with the private key of the public key in it."""
    asks_for_ca: bool
    """Whether it asks to become a CA itself, by basicConstraints or keyUsage."""
    profile: CertificateProfile | None
    """The profile that it asks for, if that can be told."""
    names: tuple[x509.GeneralName, ...]
    """Its subjectAltName."""
    extensions: tuple[x509.Extension[x509.ExtensionType], ...]
    """All extensions that it asks for; the CA's profile decides, not they."""
    problems: tuple[str, ...]
    """Sentences: why one should not approve it. Empty if nothing speaks against it."""


def make_csr(
    key: PrivateKey, subject: x509.Name, names: Sequence[x509.GeneralName], profile: CertificateProfile
) -> x509.CertificateSigningRequest:
    """A request for a certificate for `key`, which signs it as proof that its sender has it.

    Raises:
        BadInput: neither subject nor names, or the type of key does not fit the profile.
        TokenError: the key lies in a token that refuses.
    """
    raise NotImplementedError


def judge_csr(csr: x509.CertificateSigningRequest) -> CsrJudgement:
    """Everything that speaks against a request, and what it asks for. Raises nothing."""
    raise NotImplementedError
