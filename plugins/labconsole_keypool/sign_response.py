"""Writes the answers to sign requests: the signatures with their certificate chain, or why there are none."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from cryptography import x509

from labconsole_keypool.sign_request import SignRequest


class Fault(StrEnum):
    """Whose fault a refusal is (OASIS DSS 1.0, 2.6: ResultMajor)."""

    REQUESTER = "urn:oasis:names:tc:dss:1.0:resultmajor:RequesterError"
    RESPONDER = "urn:oasis:names:tc:dss:1.0:resultmajor:ResponderError"


def build(request: SignRequest, signatures: Sequence[bytes], chain: Sequence[x509.Certificate]) -> bytes:
    """The SignResponse to `request`, in its form: one signature a task, in the order of the tasks.

    Args:
        request: What was asked.
        signatures: As `SignatureAlgorithm.sign` gives them.
        chain: The signer's certificate first, then each one's issuer.

    Raises:
        ValueError: there are not as many signatures as tasks.
    """
    raise NotImplementedError


def refused(reason: str, *, request: SignRequest | None = None, fault: Fault = Fault.REQUESTER) -> bytes:
    """The SignResponse that says why there is no signature; `request` is None where it could not be read."""
    raise NotImplementedError
