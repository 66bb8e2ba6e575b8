"""What path validation says: the opinion of each of two libraries, and the judgement that follows from both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cryptography import x509


class Purpose(StrEnum):
    """What the end certificate is wanted for: decides the extended key usage (RFC 5280, 4.2.1.12) it must allow."""

    ANY = "any"
    TLS_SERVER = "tls-server"
    TLS_CLIENT = "tls-client"


class Answer(StrEnum):
    """What a library says of a path."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """It does not know what the path is made of (a type of key...), so it cannot tell. OpenSSL never says so."""


@dataclass(frozen=True)
class Opinion:
    """What one library says, and why, in one sentence; `why` is empty where it accepted."""

    answer: Answer
    why: str = ""


class Decision(StrEnum):
    """Whose opinion was decisive."""

    BOTH = "both"
    CRYPTOGRAPHY = "cryptography"
    OPENSSL = "openssl"
    CONSOLE = "console"
    """The console itself: the certificate is not for that purpose, or not for that name."""


@dataclass(frozen=True)
class Judgement:
    """Whether an end certificate is accepted, and what each of the two libraries said.

    `path` goes from the end certificate to the root, empty where OpenSSL found none. `revocation_unknown` are the
    issuers in the path of which no CRL is known: what they issued was accepted without a look at revocation.
    """

    accepted: bool
    cryptography: Opinion
    openssl: Opinion
    decided_by: Decision
    """Who refused, or who accepted: both, or OpenSSL alone where `cryptography` does not know."""
    why: str
    """One sentence for the operator: which of the two refused and why, or what the acceptance rests on."""
    path: tuple[x509.Certificate, ...] = ()
    revocation_unknown: tuple[x509.Name, ...] = ()
    revoked: bool = False
    """Whether a CRL lists the end certificate or a CA in its path."""
