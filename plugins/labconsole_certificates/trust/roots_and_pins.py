"""Trust in a single root, or in one end certificate by its fingerprint; bundles have modules of their own."""

from __future__ import annotations

from abc import abstractmethod
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from cryptography import x509

from labconsole.errors import UserError
from labconsole.model.operation import Confirmation, OperationContext, Result
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.pki.reader import PkiReader
from labconsole.security.pki.records import CertificateRecord, State, TrustKind, TrustRecord
from labconsole.security.pki.snapshot import Snapshot
from labconsole.security.pki.store import PkiStore
from labconsole.security.secrets import Prompt
from labconsole.security.x509.certificate_profiles import AUTHORITIES, CertificateProfile
from labconsole.security.x509.extensions import extension_of
from labconsole.security.x509.fingerprints import grouped, typed_matches
from labconsole.security.x509.names import short_name
from labconsole_certificates.operations.parameter_fields import CertificateChoice, StateName
from labconsole_certificates.operations.pki_operation import PkiOperation
from labconsole_certificates.operations.record_lookup import (
    certificate_named,
    local_state_named,
    must_be_local,
)

_TYPED = "fingerprint typed"
_HERE = "fingerprint confirmed at the console that has both States"
CONFIRMED_HERE = "yes"
"""Typed by the operator to confirm the fingerprint that another State of this console shows."""


def trust_root(
    store: PkiStore, state: State, root: CertificateRecord, typed_fingerprint: str, *, confirmed: str = _TYPED
) -> TrustRecord:
    """Let `state` trust the root and what it issues. `typed_fingerprint` is as its owner read it out, in groups.

    `confirmed` is stored with it: how it was confirmed.

    Raises UserError: the fingerprint differs, no CA certificate, expired, or trusted already.
    """
    if root.profile is not CertificateProfile.ROOT:
        raise UserError(f"{short_name(root.certificate)} is not a root CA: choose a root, or pin an end certificate.")
    return _trust(store, state, root, TrustKind.ROOT, typed_fingerprint, confirmed)


def confirm_here(store: PkiStore, state: State, certificate: CertificateRecord) -> TrustRecord:
    """Let `state` trust the root or end certificate of another State of this console, which shows its fingerprint.

    No foreign data is involved, so nothing has to be read out: the operator confirms what both States show.
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


def _passes_for_a_ca(certificate: x509.Certificate) -> bool:
    """Whether OpenSSL accepts it as a CA though it lacks basicConstraints (X509_check_ca)."""
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


ConfirmedFingerprint = Annotated[
    str,
    parameter(
        "Confirmed fingerprint",
        ("Whole fingerprint as its owner reported it, by another way than the file took; not given: it is asked for"),
        option="--confirmed",
        metavar="FINGERPRINT",
        terminal_only=True,
    ),
]


class TrustedCertificateParameters(Parameters):
    """A State, and a certificate that it trusts."""

    state: StateName
    certificate: CertificateChoice

    def named(self, snapshot: Snapshot) -> tuple[State, CertificateRecord]:
        """The local State, and the certificate. Raises UserError: there is none."""
        return local_state_named(snapshot, self.state), certificate_named(snapshot, self.certificate)


class TrustParameters(TrustedCertificateParameters):
    """A certificate that a State shall trust, once its fingerprint is confirmed."""

    confirmed: ConfirmedFingerprint = ""


class _Trusting(PkiOperation[TrustParameters]):
    """Trust begins once the fingerprint is confirmed: typed, or shown if both States are of this console."""

    parameters: ClassVar[type[Parameters]] = TrustParameters

    @abstractmethod
    def begin(self, store: PkiStore, state: State, record: CertificateRecord, typed: str) -> TrustRecord:
        """Let `state` trust `record`, whose fingerprint was `typed`. Raises UserError."""

    def confirmation(self, parameters: TrustParameters) -> Confirmation | None:
        with PkiReader.open() as reader:
            snapshot = reader.snapshot()
        state, record = parameters.named(snapshot)
        if parameters.confirmed:
            return None
        name, owner = short_name(record.certificate), _owner_here(snapshot, record)
        option = "--confirmed"
        if owner is not None:
            question = f"{owner.name} is of this console. The fingerprint of {name} is {grouped(record.sha256)}."
            return Confirmation(CONFIRMED_HERE, question, f"{option} FINGERPRINT")
        question = f"{state.name} will trust {name}, which is not of this console."
        return Confirmation(record.sha256, question, option, fingerprint=True)

    def work(self, parameters: TrustParameters, store: PkiStore, prompt: Prompt, context: OperationContext) -> Result:
        snapshot = store.snapshot()
        state, record = parameters.named(snapshot)
        if not parameters.confirmed and _owner_here(snapshot, record) is not None:
            confirm_here(store, state, record)
        else:
            self.begin(store, state, record, parameters.confirmed or context.typed)
        return _result(f"{state.name} trusts {short_name(record.certificate)}.", state, record)


class TrustRoot(_Trusting):
    """Lets a State trust a root."""

    name: ClassVar[str] = "certificates.trust"
    title: ClassVar[str] = "Trust a root"
    description: ClassVar[str] = (
        "A State of this console trusts a root CA, and what it issues, from then on. Compare the whole fingerprint "
        "with what its owner reads out, by another way than the file took."
    )

    def begin(self, store: PkiStore, state: State, record: CertificateRecord, typed: str) -> TrustRecord:
        return trust_root(store, state, record, typed)


class Pin(_Trusting):
    """Lets a State trust one end certificate."""

    name: ClassVar[str] = "certificates.pin"
    title: ClassVar[str] = "Pin a certificate"
    description: ClassVar[str] = (
        "A State of this console trusts this one end certificate from then on, by its fingerprint: compare the whole "
        "of it with what its owner reads out."
    )

    def begin(self, store: PkiStore, state: State, record: CertificateRecord, typed: str) -> TrustRecord:
        return pin(store, state, record, typed)


class WithdrawTrust(PkiOperation[TrustedCertificateParameters]):
    """Ends a State's trust."""

    name: ClassVar[str] = "certificates.withdraw"
    title: ClassVar[str] = "Withdraw trust"
    description: ClassVar[str] = "A State of this console trusts this root or pinned certificate no longer."
    parameters: ClassVar[type[Parameters]] = TrustedCertificateParameters

    def work(
        self, parameters: TrustedCertificateParameters, store: PkiStore, prompt: Prompt, context: OperationContext
    ) -> Result:
        snapshot = store.snapshot()
        state, record = parameters.named(snapshot)
        rows = [one for one in snapshot.trust if (one.state, one.certificate) == (state.id, record.id)]
        held = next((one for one in rows if one.withdrawn is None), None)
        if held is None:
            raise UserError(f"{state.name} does not trust {short_name(record.certificate)}: there is nothing to end.")
        with store.change() as change:
            change.withdraw_trust(held.id)
        return _result(f"{state.name} no longer trusts {short_name(record.certificate)}.", state, record)


def _owner_here(snapshot: Snapshot, record: CertificateRecord) -> State | None:
    """The State of this console that owns the certificate and shows its fingerprint here; None: another console's."""
    owner = None if record.state is None else snapshot.state_by_id[record.state]
    return owner if owner is not None and owner.local else None


def _result(sentence: str, state: State, record: CertificateRecord) -> Result:
    data: dict[str, Any] = {"state": state.name, "certificate": short_name(record.certificate), "sha256": record.sha256}
    return Result((sentence,), data)
