"""Trust in a single root, or in one end certificate by its fingerprint; bundles are in `trust`."""

from __future__ import annotations

from labconsole.security.pki.store import PkiStore

from labconsole.security.pki.records import CertificateRecord, State, TrustRecord


def trust_root(store: PkiStore, state: State, root: CertificateRecord, typed_fingerprint: str) -> TrustRecord:
    """Let `state` trust the root and what it issues. `typed_fingerprint` is what its owner read out, in groups.

    Raises TrialError: the fingerprint differs, no CA certificate, expired, or trusted already.
    """
    raise NotImplementedError


def pin(store: PkiStore, state: State, certificate: CertificateRecord, typed_fingerprint: str) -> TrustRecord:
    """Let `state` trust this one end certificate. Raises TrialError as `trust_root`."""
    raise NotImplementedError


def withdraw(store: PkiStore, trust: TrustRecord) -> None:
    """End the trust. Raises TrialError: it was withdrawn already."""
    raise NotImplementedError
