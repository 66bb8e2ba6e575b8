"""Proves an exchange: real mutual TLS handshakes between the identities of two States."""

from __future__ import annotations

from dataclasses import dataclass

from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt
from labconsole.security.x509.handshake import Handshake


@dataclass(frozen=True)
class Proof:
    """What came of both directions."""

    there: Handshake
    """`[A] -> tls-connect -> [B]`."""
    back: Handshake
    """`[B] -> tls-connect -> [A]`."""


def prove(store: PkiStore, a: str, b: str, prompt: Prompt | None = None) -> Proof:
    """Let A connect to B and B to A, each with what it holds and trusts, and note what passed in the audit list.

    Raises TrialError: a State is not local, or a step of the exchange is missing (its sentence says which).
    """
    raise NotImplementedError
