"""All that the certificate database holds at one moment, and how it hangs together: issuers, chains, trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from labconsole.security.pki.records import (
    AuditRecord,
    BundleRecord,
    CertificateRecord,
    CrlRecord,
    HandoverRecord,
    IdentityRecord,
    KeyRecord,
    ProofRecord,
    RequestRecord,
    RotationRecord,
    State,
    TrustKind,
    TrustRecord,
)
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.signatures import issued_by
from labconsole.store.errors import StoreError

_LONGEST_CHAIN = 16
_ISSUING = frozenset({CertificateProfile.ROOT, CertificateProfile.INTERMEDIATE, None})


@dataclass(frozen=True)
class Snapshot:
    """All rows, oldest first; those that were removed, withdrawn, refused or cancelled too."""

    states: tuple[State, ...] = ()
    keys: tuple[KeyRecord, ...] = ()
    certificates: tuple[CertificateRecord, ...] = ()
    requests: tuple[RequestRecord, ...] = ()
    crls: tuple[CrlRecord, ...] = ()
    trust: tuple[TrustRecord, ...] = ()
    bundles: tuple[BundleRecord, ...] = ()
    handovers: tuple[HandoverRecord, ...] = ()
    proofs: tuple[ProofRecord, ...] = ()
    rotations: tuple[RotationRecord, ...] = ()
    identities: tuple[IdentityRecord, ...] = ()
    audit: tuple[AuditRecord, ...] = ()
    """The newest 1,000, newest first."""

    @cached_property
    def state_by_id(self) -> Mapping[int, State]:
        """States by their id."""
        return {state.id: state for state in self.states}

    @cached_property
    def key_by_id(self) -> Mapping[int, KeyRecord]:
        """Keys by their id."""
        return {key.id: key for key in self.keys}

    @cached_property
    def certificate_by_id(self) -> Mapping[int, CertificateRecord]:
        """Certificates by their id."""
        return {record.id: record for record in self.certificates}

    @cached_property
    def certificate_by_sha256(self) -> Mapping[str, CertificateRecord]:
        """Certificates by the SHA-256 (hex) of their DER."""
        return {record.sha256: record for record in self.certificates}

    @cached_property
    def newest_crl_of(self) -> Mapping[int, CrlRecord]:
        """The newest CRL of each CA, by the CA certificate's id."""
        return {record.issuer: record for record in sorted(self.crls, key=lambda crl: crl.age)}

    @cached_property
    def newest_crls(self) -> tuple[CrlRecord, ...]:
        """The newest CRL of each CA and scope: those of a part, and delta CRLs, next to complete ones."""
        return tuple({(crl.issuer, crl.scope): crl for crl in sorted(self.crls, key=lambda crl: crl.age)}.values())

    def authorities_called(self, subject: bytes, spki_sha256: str) -> tuple[CertificateRecord, ...]:
        """The certificates, not removed, for this name (DER) and key of a CA."""
        named = self._by_subject.get(subject, ())
        return tuple(record for record in named if record.name_and_key == (subject, spki_sha256))

    def issuers_of(self, record: CertificateRecord) -> tuple[CertificateRecord, ...]:
        """The certificates whose key signed this one, newest first; several where a CA has link certificates.

        One that signed itself has itself as its only issuer. Removed ones are left out.
        """
        if record.self_signed:
            return (record,)
        candidates = self._by_subject.get(record.certificate.issuer.public_bytes(), ())
        return tuple(other for other in candidates if issued_by(record.certificate, other.certificate))

    def chain_of(self, record: CertificateRecord) -> tuple[CertificateRecord, ...]:
        """The issuers above `record`, its own first, up to a self-signed root as far as they are known.

        Of several issuers one that signed itself is taken, else one that its key's State holds (not what another State
        has certified of that key), else the newest. Empty for a self-signed one.
        """
        chain: list[CertificateRecord] = []
        seen = {record.id}
        while len(chain) < _LONGEST_CHAIN:
            found = [issuer for issuer in self.issuers_of(record) if issuer.id not in seen]
            if not found:
                break
            own = next((issuer for issuer in found if self._is_its_keys_own(issuer)), found[0])
            record = next((issuer for issuer in found if issuer.self_signed), own)
            seen.add(record.id)
            chain.append(record)
        return tuple(chain)

    def _is_its_keys_own(self, record: CertificateRecord) -> bool:
        return record.key is not None and self.key_by_id[record.key].state == record.state

    def presented_chain(self, record: CertificateRecord, at: datetime) -> tuple[CertificateRecord, ...]:
        """What goes with `record` to a peer: the intermediates above it, and its root's links that are valid at `at`.

        While a root is rotated, a link leads a peer that trusts only the other one to it (RFC 9810, 4.4). The root
        itself proves nothing to a peer, and is left out.
        """
        chain = self.chain_of(record)
        above = [issuer for issuer in chain if not issuer.self_signed]
        if not chain or not chain[-1].self_signed:
            return tuple(above)
        root = chain[-1].certificate
        links = [
            other
            for other in self._by_subject.get(root.subject.public_bytes(), ())
            if other.certificate.public_key() == root.public_key()
            and not other.self_signed
            and other.revoked is None
            and other.certificate.not_valid_before_utc <= at <= other.certificate.not_valid_after_utc
        ]
        return tuple(dict.fromkeys((*above, *links)))

    def roots_of(self, state: int) -> tuple[CertificateRecord, ...]:
        """The own root certificates of a State, newest first; neither removed nor revoked ones."""
        return tuple(
            record
            for record in reversed(self.certificates)
            if record.state == state
            and record.profile is CertificateProfile.ROOT
            and record.removed is None
            and record.revoked is None
        )

    def trusted_by(self, state: int, kind: TrustKind) -> tuple[CertificateRecord, ...]:
        """What a State trusts: its own roots first (where `kind` is ROOT), then what its trust rows say."""
        own = self.roots_of(state) if kind is TrustKind.ROOT else ()
        rows = (
            self.certificate_by_id[row.certificate]
            for row in self.trust
            if row.state == state and row.kind is kind and row.withdrawn is None
        )
        return tuple(dict.fromkeys((*own, *rows)))

    @cached_property
    def _by_subject(self) -> Mapping[bytes, tuple[CertificateRecord, ...]]:
        """What may be an issuer, by its name; of all others none needs to be parsed."""
        found: dict[bytes, list[CertificateRecord]] = {}
        for record in reversed(self.certificates):
            if record.removed is None and record.profile in _ISSUING:
                found.setdefault(record.certificate.subject.public_bytes(), []).append(record)
        return {name: tuple(records) for name, records in found.items()}


def identity_named(name: str, identities: Sequence[IdentityRecord]) -> IdentityRecord:
    """The identity called `name` among these. Raises StoreError: there is none."""
    found = next((identity for identity in identities if identity.name == name), None)
    if found is None:
        known = ", ".join(identity.name for identity in identities)
        wanted = f"choose one of {known}" if known else "give a certificate that name first"
        raise StoreError(f"There is no identity {name}: {wanted}.")
    return found
