"""Trust in a single root, or in one end certificate by its fingerprint; bundles are in `trust`."""

from __future__ import annotations

from datetime import UTC, datetime

from cryptography import x509

from labconsole.errors import UserError
from labconsole.security.pki.records import CertificateRecord, State, TrustKind, TrustRecord
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.fingerprints import typed_matches
from labconsole.security.x509.names import short_name
from labconsole.security.x509.profiles import AUTHORITIES, CertificateProfile
from labconsole_certificates.operations.references import must_be_local

_TYPED = "fingerprint typed"
_HERE = "fingerprint confirmed at the console that has both States"


def trust_root(
    store: PkiStore, state: State, root: CertificateRecord, typed_fingerprint: str, *, confirmed: str = _TYPED
) -> TrustRecord:
    """Let `state` trust the root and what it issues. `typed_fingerprint` is what its owner read out, in groups.

    `confirmed` is stored with it: how it was confirmed.

    Raises UserError: the fingerprint differs, no CA certificate, expired, or trusted already.
    """
    if root.profile is not CertificateProfile.ROOT:
        raise UserError(f"{short_name(root.certificate)} is no root CA: choose a root, or pin an end certificate.")
    return _trust(store, state, root, TrustKind.ROOT, typed_fingerprint, confirmed)


def confirm_here(store: PkiStore, state: State, certificate: CertificateRecord) -> TrustRecord:
    """Let `state` trust the root or end certificate of another State of this console, which shows its fingerprint.

    Nothing came from outside, so nothing has to be read out: the operator confirms what both States show.
    Raises UserError: its State is another console's, else as `trust_root`.
    """
    owner = None if certificate.state is None else store.snapshot().state_by_id[certificate.state]
    if owner is None or not owner.local:
        raise UserError(f"{short_name(certificate.certificate)} is of another console: type its fingerprint.")
    begin = trust_root if certificate.profile is CertificateProfile.ROOT else pin
    return begin(store, state, certificate, certificate.sha256, confirmed=_HERE)


def pin(
    store: PkiStore, state: State, certificate: CertificateRecord, typed_fingerprint: str, *, confirmed: str = _TYPED
) -> TrustRecord:
    """Let `state` trust this one end certificate. Raises UserError as `trust_root`."""
    if certificate.profile in AUTHORITIES:
        raise UserError(f"{short_name(certificate.certificate)} is a CA: trust it as a root; pins are for others.")
    if _passes_for_a_ca(certificate.certificate):
        raise UserError(
            f"TLS would take {short_name(certificate.certificate)} for a CA, which might certify anybody (no "
            "basicConstraints, and key usage keyCertSign or an old version): ask for an end certificate."
        )
    return _trust(store, state, certificate, TrustKind.PIN, typed_fingerprint, confirmed)


def withdraw(store: PkiStore, trust: TrustRecord) -> None:
    """End the trust. Raises UserError: it was withdrawn already."""
    with store.change() as change:
        change.withdraw_trust(trust.id)


def _passes_for_a_ca(certificate: x509.Certificate) -> bool:
    """Whether OpenSSL takes it for a CA though it does not say so (X509_check_ca): it would be trusted as one."""
    usage = extension_of(certificate.extensions, x509.KeyUsage)
    return certificate.version is not x509.Version.v3 or (usage is not None and usage.key_cert_sign)


def _trust(
    store: PkiStore,
    state: State,
    certificate: CertificateRecord,
    kind: TrustKind,
    typed_fingerprint: str,
    confirmed: str,
) -> TrustRecord:
    must_be_local(state)
    name = short_name(certificate.certificate)
    if not typed_matches(certificate.sha256, typed_fingerprint):
        raise UserError(
            f"That is not the fingerprint of {name}, so nothing is trusted: compare all of it with what its owner "
            "says, and ask for the certificate again if it differs."
        )
    end = certificate.certificate.not_valid_after_utc
    if datetime.now(UTC) > end:
        raise UserError(f"{name} expired on {end:%Y-%m-%d}, so nothing is trusted: ask for its successor.")
    if certificate in store.snapshot().trusted_by(state.id, kind):
        raise UserError(f"{state.name} trusts {name} already.")
    with store.change() as change:
        return change.trust(state.id, certificate.id, kind, confirmed)
