"""An OCSP responder on loopback (RFC 6960, appendix A: over HTTP), which answers from the certificate database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from labconsole.security.pki.records import CertificateRecord
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt


@dataclass(frozen=True)
class RunningResponder:
    """A responder that answers; `url` is where, `answered` how many requests so far."""

    url: str
    authority: CertificateRecord

    @property
    def answered(self) -> int:
        """Requests that were answered so far."""
        raise NotImplementedError


@contextmanager
def serving(
    store: PkiStore, authority: CertificateRecord, *, port: int = 0, prompt: Prompt | None = None
) -> Iterator[RunningResponder]:
    """Answer for the certificates of `authority` while the context is open, signed with its own key.

    It reads the database anew for each request, so that what is revoked meanwhile is told at once. `port` 0: any free
    one of loopback. Raises TrialError: no CA, its key does not open, or the port is taken.
    """
    raise NotImplementedError
