"""The result of path validation: the opinion of each of two libraries, and the judgement that follows from both."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography import x509


class Purpose(StrEnum):
    """Purpose of the end certificate: decides the extended key usage (RFC 5280, 4.2.1.12) that it must allow."""

    ANY = "any"
    TLS_SERVER = "tls-server"
    TLS_CLIENT = "tls-client"


class Answer(StrEnum):
    """A library's verdict on a path."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """It does not support part of the path (a type of key...). OpenSSL never answers this."""


@dataclass(frozen=True)
class Opinion:
    """A library's verdict, and why, in one sentence; `why` is empty where it accepted."""

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
    """Whether an end certificate is accepted, and the opinion of each of the two libraries.

    `path` goes from the end certificate to the root, empty where OpenSSL found none. `revocation_unknown` are the
    issuers in the path without a known CRL: their certificates were accepted without a check of revocation.
    """

    accepted: bool
    cryptography: Opinion
    openssl: Opinion
    decided_by: Decision
    """The library that refused, or those that accepted: both, or OpenSSL alone if `cryptography` cannot judge."""
    why: str
    """One sentence for the operator: which library refused and why, or the grounds of the acceptance."""
    path: tuple[x509.Certificate, ...] = ()
    revocation_unknown: tuple[x509.Name, ...] = ()
    revoked: bool = False
    """Whether a CRL lists the end certificate or a CA in its path."""
