"""The trust store of a station: roots, authorities and tickets with loaded keys, and packets that wait for an issuer.

Certificates not verified up to a trusted root (on probation) and waiting packets have bounds of their own: unknown
certificates, however many, displace each other only.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from threading import RLock
from typing import NamedTuple

from labconsole.errors import UserError
from labconsole_v2x.security.chain import (
    ChainFault,
    ChainReason,
    DigestVerifier,
    effective_region,
    link_fault,
    root_fault,
)
from labconsole_v2x.security.keys import integers_verifier, load_public_key
from labconsole_v2x.security.structures import Certificate, Curve, PublicKey, Region

KeyLoader = Callable[[PublicKey], DigestVerifier]
"""Loads a public key once; raises ValueError where it is not a point of its curve. The verification backend."""


def software_verifier(key: PublicKey) -> DigestVerifier:
    """Load a key into `cryptography`; raises ValueError where it is not a point of its curve."""
    return integers_verifier(load_public_key(key))


class UntrustedRootError(UserError):
    """A certificate cannot be a trusted root."""


class Limits(NamedTuple):
    """The limits that each packet of a signer must keep: its ITS-AIDs, validity in us (ITS time), and region."""

    psids: frozenset[int]
    start_us: int
    end_us: int
    """Excluded."""
    region: Region | None
    """The certificate's region, or the nearest one of its chain."""

    @classmethod
    def of(cls, certificate: Certificate, issuers: Iterable[Certificate] = ()) -> Limits:
        """The limits of a certificate under the chain of its issuer, as far as that is known."""
        validity = certificate.validity
        return cls(
            frozenset(permission.psid for permission in certificate.permissions),
            validity.start_s * 1_000_000,
            validity.end_s * 1_000_000,
            effective_region((certificate, *issuers)),
        )


@dataclass(slots=True)
class KnownCertificate:
    """A certificate with its loaded key, its chain, and the values that each of its packets needs."""

    certificate: Certificate
    curve: Curve
    """That of its key."""
    verify: DigestVerifier
    chain: tuple[Certificate, ...]
    """From this certificate to the root; empty while its issuer is unknown."""
    canonical_hash: bytes
    """Hash of its canonical form by its own key's hash: the second part of a signature's input."""
    limits: Limits


class WaitingPacket(NamedTuple):
    """A packet that waits for a certificate: the HashedId8 of that, its octets, and what its receiver knows of it."""

    missing: bytes
    octets: bytes
    origin: object = None


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """The largest numbers of certificates, and of packets (and their octets) that wait for a certificate."""

    tickets: int = 4096
    authorities: int = 256
    probation: int = 256
    waiting_packets: int = 256
    waiting_octets: int = 256 * 1024


class TrustStore:
    """Certificates by HashedId8; a key is loaded once for as long as its certificate is stored."""

    def __init__(self, limits: StoreLimits | None = None, load_key: KeyLoader = software_verifier) -> None:
        self.limits = limits or StoreLimits()
        self._load_key = load_key
        self.turn = RLock()
        """For callers: a thread holds it while it uses the store, and not while it verifies a packet's signature."""
        self._roots: dict[bytes, KnownCertificate] = {}
        self._authorities: OrderedDict[bytes, KnownCertificate] = OrderedDict()
        self._tickets: OrderedDict[bytes, KnownCertificate] = OrderedDict()
        self.ticket: Callable[[bytes], KnownCertificate | None] = self._tickets.get
        """Returns a validated ticket by its HashedId8 as it is stored: it is not kept longer for that."""
        self._probation: OrderedDict[bytes, KnownCertificate] = OrderedDict()
        self._by_octets: dict[bytes, bytes] = {}
        self._distrusted: set[tuple[bytes | None, bytes]] = set()
        """Roots, None for any, and the HashedId8 of what is distrusted below them."""
        self._removed: OrderedDict[bytes, None] = OrderedDict()
        """The HashedId8 of certificates that were found to be distrusted, or below one."""
        self._waiting: deque[WaitingPacket] = deque()
        self._waiting_octets = 0
        self._release_due = False
        """Whether a certificate was validated since packets were last released: else none can be ready."""

    def __len__(self) -> int:
        """Return the number of stored certificates of all kinds."""
        return len(self._roots) + len(self._authorities) + len(self._tickets) + len(self._probation)

    def add_root(self, certificate: Certificate) -> KnownCertificate:
        """Trust a root CA certificate; raises `UntrustedRootError`."""
        known = self._known(certificate, (certificate,))
        fault = known if isinstance(known, ChainFault) else root_fault(certificate, known.verify)
        fault = fault or self._distrust_fault((certificate,))
        if isinstance(known, ChainFault) or fault is not None:
            name = certificate.name or certificate.hashed_id8.hex()
            raise UntrustedRootError(f"{name} cannot be a trusted root ({fault}). Choose a root CA's certificate.")
        self._roots[certificate.hashed_id8] = known
        self._by_octets[certificate.octets] = certificate.hashed_id8
        return known

    def find(self, hashed_id8: bytes) -> KnownCertificate | None:
        """Return a certificate and keep it longest; one on probation is validated if its issuer is now known.

        One on probation whose validation fails is removed.
        """
        known = self._tickets.get(hashed_id8)
        if known is not None:
            self._tickets.move_to_end(hashed_id8)
            return known
        known = self._authorities.get(hashed_id8)
        if known is not None:
            self._authorities.move_to_end(hashed_id8)
            return known
        known = self._roots.get(hashed_id8)
        if known is not None:
            return known
        known = self._probation.get(hashed_id8)
        if known is None or known.certificate.issuer is None or self.issuer(known.certificate.issuer) is None:
            return known
        self._forget(self._probation, hashed_id8)
        admitted = self.admit(known)
        return None if isinstance(admitted, ChainFault) else admitted

    def find_octets(self, octets: bytes) -> KnownCertificate | None:
        """Return a stored certificate by the octets in which it was first received."""
        hashed_id8 = self._by_octets.get(octets)
        return None if hashed_id8 is None else self.find(hashed_id8)

    def find_authority(self, hashed_id3: bytes) -> Certificate | None:
        """Return a validated authority by the last three octets of its hash (peers ask so, IEEE 1609.2, 8.2)."""
        return next((k.certificate for i, k in self._authorities.items() if i[5:] == hashed_id3), None)

    def issuer(self, hashed_id8: bytes) -> KnownCertificate | None:
        """Return a validated authority or root."""
        return self._authorities.get(hashed_id8) or self._roots.get(hashed_id8)

    def limits_of(self, certificate: Certificate) -> Limits:
        """The limits of a certificate that is not stored; its region is its issuer's, where it has none itself."""
        issuer = self.issuer(certificate.issuer) if certificate.issuer else None
        return Limits.of(certificate, issuer.chain if issuer else ())

    def load(self, certificate: Certificate) -> KnownCertificate | ChainFault:
        """Return a received certificate with its loaded key, not yet validated; the stored one where it is stored."""
        same = self.find(certificate.hashed_id8)
        if same is None:
            if certificate.issuer is not None and self.is_distrusted(certificate.issuer):
                return self._refused(certificate, certificate.issuer)
            return self._distrust_fault((certificate,)) or self._known(certificate, ())
        if same.certificate.canonical != certificate.canonical:
            return ChainFault(ChainReason.COLLISION, certificate.hashed_id8.hex())
        return same

    def admit(self, known: KnownCertificate) -> KnownCertificate | ChainFault:
        """Validate a loaded certificate and store the result: on probation where its issuer is unknown."""
        certificate = known.certificate
        if certificate.issuer is None:
            return ChainFault(ChainReason.ISSUER, "a self-signed certificate that is not a trusted root")
        if self.is_distrusted(certificate.issuer):
            return self._refused(certificate, certificate.issuer)
        issuer = self.issuer(certificate.issuer)
        if issuer is not None and not known.chain:
            fault = link_fault(certificate, issuer.chain, issuer.verify)
            if fault is not None:
                return fault
            chain = (certificate, *issuer.chain)
            if (fault := self._distrust_fault(chain)) is not None:
                return fault
            known = replace(known, chain=chain, limits=Limits.of(certificate, issuer.chain))
        self._keep(known)
        return known

    def add(self, certificate: Certificate) -> ChainFault | None:
        """Load, validate and store a certificate; return why it was refused."""
        known = self.load(certificate)
        if isinstance(known, KnownCertificate) and not known.chain:
            known = self.admit(known)
        return known if isinstance(known, ChainFault) else None

    def distrust(self, *hashed_id8s: bytes, root: bytes | None = None) -> None:
        """Remove certificates with all that chain to them, and refuse them from now on.

        `root`: only what chains to this root, since a CRL is about the certificates of its own root.
        """
        self._distrusted.update((root, hashed_id8) for hashed_id8 in hashed_id8s)
        for store in (self._roots, self._authorities, self._tickets, self._probation):
            for known in list(store.values()):
                self._distrust_fault(known.chain or (known.certificate,))

    def trust_again(self, *hashed_id8s: bytes, root: bytes | None = None) -> None:
        """Undo `distrust`: what was removed can be added again, or learned from its packets."""
        self._distrusted.difference_update((root, hashed_id8) for hashed_id8 in hashed_id8s)
        self._removed.clear()

    def is_distrusted(self, hashed_id8: bytes) -> bool:
        """Whether a certificate is distrusted, or was found to chain to one that is."""
        return hashed_id8 in self._removed or (None, hashed_id8) in self._distrusted

    def wait_for(self, hashed_id8: bytes, octets: bytes, origin: object = None) -> None:
        """Store a packet until a certificate is known; the oldest packets make room."""
        known = self.find(hashed_id8)
        self._release_due = self._release_due or (known is not None and bool(known.chain))
        self._waiting.append(WaitingPacket(hashed_id8, octets, origin))
        self._waiting_octets += len(octets)
        while len(self._waiting) > self.limits.waiting_packets or self._waiting_octets > self.limits.waiting_octets:
            self._waiting_octets -= len(self._waiting.popleft().octets)

    @property
    def has_waiting(self) -> bool:
        """Whether any packet waits for a certificate."""
        return bool(self._waiting)

    def released(self) -> list[WaitingPacket]:
        """Remove and return the packets whose missing certificate is now known and valid, oldest first."""
        if not self._waiting or not self._release_due:
            return []
        self._release_due = False
        wanted = {packet.missing for packet in self._waiting}
        known = {hashed_id8 for hashed_id8 in wanted if (found := self.find(hashed_id8)) and found.chain}
        ready = [packet for packet in self._waiting if packet.missing in known]
        if ready:
            self._waiting = deque(packet for packet in self._waiting if packet.missing not in known)
            self._waiting_octets = sum(len(packet.octets) for packet in self._waiting)
        return ready

    def _known(self, certificate: Certificate, chain: tuple[Certificate, ...]) -> KnownCertificate | ChainFault:
        try:
            verify = self._load_key(certificate.verification_key)
        except ValueError as error:
            return ChainFault(ChainReason.KEY, str(error))
        curve = certificate.verification_key.curve
        canonical_hash = hashlib.new(curve.hash_name, certificate.canonical).digest()
        return KnownCertificate(certificate, curve, verify, chain, canonical_hash, Limits.of(certificate))

    def _distrust_fault(self, chain: Sequence[Certificate]) -> ChainFault | None:
        """Return why a chain, as far as it is known, is distrusted; its first certificate is removed then."""
        root = chain[-1].hashed_id8
        for certificate in chain:
            if (None, certificate.hashed_id8) in self._distrusted or (root, certificate.hashed_id8) in self._distrusted:
                return self._refused(chain[0], certificate.hashed_id8)
        return None

    def _refused(self, certificate: Certificate, distrusted: bytes) -> ChainFault:
        """Remove a certificate, and remember it for packets that name it by its HashedId8 only."""
        hashed_id8 = certificate.hashed_id8
        for store in (self._roots, self._authorities, self._tickets, self._probation):
            if hashed_id8 in store:
                self._forget(store, hashed_id8)
        self._removed[hashed_id8] = None
        if len(self._removed) > self.limits.tickets:
            self._removed.popitem(last=False)
        return ChainFault(ChainReason.REVOKED, distrusted.hex())

    def _keep(self, known: KnownCertificate) -> None:
        limits, certificate = self.limits, known.certificate
        if not known.chain:
            store, limit = self._probation, limits.probation
        elif certificate.issue_permissions:
            store, limit = self._authorities, limits.authorities
        else:
            store, limit = self._tickets, limits.tickets
        store[certificate.hashed_id8] = known
        self._release_due = self._release_due or bool(known.chain)
        self._by_octets[certificate.octets] = certificate.hashed_id8
        while len(store) > limit:
            self._forget(store, next(iter(store)))

    def _forget(self, store: dict[bytes, KnownCertificate], hashed_id8: bytes) -> None:
        self._by_octets.pop(store.pop(hashed_id8).certificate.octets, None)
