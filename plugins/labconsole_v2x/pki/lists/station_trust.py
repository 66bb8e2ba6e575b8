"""What a station trusts by the lists of TS 102 941: a TLM's roots, their authorities, and what they have revoked.

A list is applied whole or refused by reason; a refused one changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from labconsole.errors import UserError
from labconsole_v2x.pki.lists.signed_lists import (
    ListReason,
    OpenedList,
    RefusedListError,
    open_list,
    permission_fault,
    read_list,
)
from labconsole_v2x.pki.lists.trust_lists import (
    SEQUENCES,
    AaEntry,
    CentreEntry,
    EaEntry,
    Entry,
    RevocationList,
    RootEntry,
    TrustList,
    applied,
)
from labconsole_v2x.pki.request_parts import Content
from labconsole_v2x.security.chain import ChainFault, link_fault, root_fault, self_signature_fault
from labconsole_v2x.security.structures import Certificate
from labconsole_v2x.security.trust import TrustStore, UntrustedRootError, software_verifier
from labconsole_v2x.security.verification import its_now


@dataclass(slots=True)
class _Issuer:
    """What was applied of the lists of a TLM or root, the newest of each kind."""

    octets: tuple[bytes, ...] = ()
    """Of the last full list, and of the deltas since."""
    opened: OpenedList | None = None
    entries: tuple[Entry, ...] = ()
    deleted: set[bytes] = field(default_factory=set)
    crl_octets: bytes = b""
    crl: OpenedList | None = None
    distrusted: frozenset[bytes] = frozenset()
    """As the store has it."""

    @property
    def revoked(self) -> frozenset[bytes]:
        values = self.crl.values if self.crl is not None else None
        return frozenset(values.entries) if isinstance(values, RevocationList) else frozenset()


class StationTrust:
    """The trusted roots and authorities of a station, kept in its `TrustStore`, whose `turn` is held meanwhile."""

    def __init__(
        self,
        store: TrustStore,
        *,
        tlm: Certificate | None = None,
        roots: Iterable[Certificate] = (),
        clock: Callable[[], int] = its_now,
    ) -> None:
        """Raises UserError: the TLM's or a root's certificate is not one."""
        self.store = store
        self.tlm = tlm
        self._clock = clock
        self._roots: dict[bytes, Certificate] = {}
        self._issuers: dict[bytes, _Issuer] = {}
        if tlm is not None and (fault := tlm_fault(tlm)) is not None:
            raise UserError(
                f"{tlm.name or tlm.hashed_id8.hex()} cannot be a TLM ({fault}): choose a TLM's certificate."
            )
        for root in roots:
            store.add_root(root)
            self._roots[root.hashed_id8] = root

    @property
    def roots(self) -> tuple[Certificate, ...]:
        """The trusted roots: those given, and those of the ECTL."""
        return tuple(root for root in self._roots.values() if root.hashed_id8 not in self.revoked(root.hashed_id8))

    @property
    def centres(self) -> tuple[CentreEntry, ...]:
        """The distribution centres of all lists."""
        entries = (entry for issuer in self._issuers.values() for entry in issuer.entries)
        return tuple(entry for entry in entries if isinstance(entry, CentreEntry))

    def centre_of(self, root: bytes) -> CentreEntry | None:
        """The distribution centre of a root's lists: as the TLM names it, or else the root itself."""
        signers = [root] if self.tlm is None else [self.tlm.hashed_id8, root]
        entries = (entry for signer in signers for entry in self._issuer(signer).entries)
        return next((one for one in entries if isinstance(one, CentreEntry) and root in one.issuers), None)

    def enrolment_authorities(self, root: bytes) -> tuple[EaEntry, ...]:
        """The EAs of a root that are listed and not revoked."""
        issuer, revoked = self._issuer(root), self.revoked(root)
        listed = (entry for entry in issuer.entries if isinstance(entry, EaEntry))
        return tuple(entry for entry in listed if entry.certificate.hashed_id8 not in revoked)

    def authorization_authorities(self, root: bytes) -> tuple[AaEntry, ...]:
        """The AAs of a root that are listed and not revoked."""
        issuer, revoked = self._issuer(root), self.revoked(root)
        listed = (entry for entry in issuer.entries if isinstance(entry, AaEntry))
        return tuple(entry for entry in listed if entry.certificate.hashed_id8 not in revoked)

    def revoked(self, root: bytes) -> frozenset[bytes]:
        """What the CRL of a root has revoked."""
        return self._issuer(root).revoked

    def sequence(self, signer: bytes) -> int | None:
        """The sequence of the trust list that is applied of a TLM or root."""
        opened = self._issuer(signer).opened
        return opened.values.sequence if opened is not None and isinstance(opened.values, TrustList) else None

    def deltas(self, signer: bytes) -> int:
        """How many deltas were applied since the last full list of a TLM or root."""
        return max(len(self._issuer(signer).octets) - 1, 0)

    def octets_to_restore(self) -> tuple[bytes, ...]:
        """The lists from which `restore` builds this state again, in order: an ECTL before those of its roots."""
        tlm = self.tlm.hashed_id8 if self.tlm is not None else b""
        issuers = [self._issuers[signer] for signer in sorted(self._issuers, key=lambda signer: signer != tlm)]
        lists = [octets for issuer in issuers for octets in issuer.octets]
        return (*lists, *(issuer.crl_octets for issuer in issuers if issuer.crl_octets))

    def apply_trust_list(self, octets: bytes) -> OpenedList:
        """Apply an ECTL or a CTL of a root, full or delta. Raises `RefusedListError`."""
        with self.store.turn:
            opened = open_list(octets, self._signer, self._clock())
            if not isinstance(opened.values, TrustList):
                raise RefusedListError(ListReason.MALFORMED, "it is a revocation list")
            issuer = self._issuer(opened.signer.hashed_id8)
            if octets not in issuer.octets[-1:]:
                self._check_order(opened, opened.values, issuer.opened)
                self._apply_trust_list(octets, opened, opened.values, issuer)
            return opened

    def apply_revocation_list(self, octets: bytes) -> OpenedList:
        """Apply a root's CRL. Raises `RefusedListError`."""
        with self.store.turn:
            opened = open_list(octets, self._signer, self._clock())
            if not isinstance(opened.values, RevocationList):
                raise RefusedListError(ListReason.MALFORMED, "it is a trust list")
            issuer = self._issuer(opened.signer.hashed_id8)
            known = issuer.crl.values if issuer.crl is not None else None
            if isinstance(known, RevocationList) and opened.values.this_update_s < known.this_update_s:
                raise RefusedListError(ListReason.OLDER, "its thisUpdate is older")
            _check_generation(opened, issuer.crl)
            issuer.crl, issuer.crl_octets = opened, octets
            self._distrust(opened.signer, issuer)
            return opened

    def restore(self, octets: bytes) -> None:
        """Apply a list that was applied before, whatever its times: so that no older one is.

        Raises `RefusedListError`: its signer is not trusted any more.
        """
        with self.store.turn:
            opened = read_list(octets, self._signer)
            issuer = self._issuer(opened.signer.hashed_id8)
            if isinstance(opened.values, TrustList):
                self._apply_trust_list(octets, opened, opened.values, issuer)
            else:
                issuer.crl, issuer.crl_octets = opened, octets
                self._distrust(opened.signer, issuer)

    def _issuer(self, hashed_id8: bytes) -> _Issuer:
        return self._issuers.setdefault(hashed_id8, _Issuer())

    def _signer(self, content: Content, hashed_id8: bytes) -> Certificate | None:
        if content is Content.TLM_TRUST_LIST:
            return self.tlm if self.tlm is not None and self.tlm.hashed_id8 == hashed_id8 else None
        return next((root for root in self.roots if root.hashed_id8 == hashed_id8), None)

    def _check_order(self, opened: OpenedList, values: TrustList, known: OpenedList | None) -> None:
        """Check that a list follows the one applied. Raises `RefusedListError`."""
        before = known.values.sequence if known is not None and isinstance(known.values, TrustList) else None
        _check_generation(opened, known)
        if before is None:
            if not values.is_full:
                raise RefusedListError(ListReason.WRONG_BASE, "no full list is applied yet")
            return
        ahead = (values.sequence - before) % SEQUENCES
        # Half of the numbers are ahead (RFC 1982): a list that has expired says nothing about numbers since.
        in_use = known is not None and known.values.next_update_s > self._clock() // 1_000_000
        if ahead >= SEQUENCES // 2 and (in_use or not values.is_full):
            raise RefusedListError(ListReason.OLDER, f"its sequence is {values.sequence}, {before} is applied")
        if not values.is_full and ahead != 1:
            detail = f"it changes {(values.sequence - 1) % SEQUENCES}, {before} is applied"
            raise RefusedListError(ListReason.WRONG_BASE, detail)

    def _apply_trust_list(self, octets: bytes, opened: OpenedList, values: TrustList, issuer: _Issuer) -> None:
        for command in values.commands:
            if isinstance(command, RootEntry | EaEntry | AaEntry) and (fault := _entry_fault(command, opened.signer)):
                name = command.certificate.name or command.certificate.hashed_id8.hex()
                raise RefusedListError(ListReason.ENTRY_INVALID, f"{name}: {fault}")
        before = _certificates(issuer.entries)
        issuer.entries = applied(() if values.is_full else issuer.entries, values.commands)
        issuer.octets, issuer.opened = (octets,) if values.is_full else (*issuer.octets, octets), opened
        after = _certificates(issuer.entries)
        issuer.deleted = (issuer.deleted | before.keys()) - after.keys()
        if opened.content is Content.TLM_TRUST_LIST:
            for gone in issuer.deleted:
                self._roots.pop(gone, None)
            self._roots |= after
        self._distrust(opened.signer, issuer)

    def _distrust(self, signer: Certificate, issuer: _Issuer) -> None:
        """Have the store follow what a signer lists, has deleted and has revoked."""
        root = None if signer is self.tlm else signer.hashed_id8
        wanted = issuer.revoked | issuer.deleted
        if gone := issuer.distrusted - wanted:
            self.store.trust_again(*gone, root=root)
        if new := wanted - issuer.distrusted:
            self.store.distrust(*new, root=root)
        issuer.distrusted = frozenset(wanted)
        for entry in issuer.entries:
            if isinstance(entry, RootEntry):
                with suppress(UntrustedRootError):  # revoked by itself
                    self.store.add_root(entry.certificate)
                self._distrust(entry.certificate, self._issuer(entry.certificate.hashed_id8))
            elif isinstance(entry, AaEntry):
                self.store.add(entry.certificate)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of fetching a list: from where, and the list, or why there is none or it is refused."""

    url: str
    opened: OpenedList | None = None
    error: UserError | None = None


Get = Callable[[str], bytes]
"""Returns the octets at a URL. Raises UserError."""
_MOST_DELTAS = 8
"""So many are fetched at once, and applied without a full list in between."""


def refresh(trust: StationTrust, centre: str, get: Get) -> list[Fetched]:
    """Fetch and apply the ECTL, and the CTL and CRL of each trusted root: from its own centre, or from this one."""
    results = []
    if trust.tlm is not None:
        results += _fetch_trust_list(trust, centre, "getectl", trust.tlm.hashed_id8, get)
    for root in trust.roots:
        signer = root.hashed_id8
        named = trust.centre_of(signer)
        own = named.url if named is not None else centre
        # First the CRL: a list of authorities is not followed once its root has revoked itself.
        results.append(_fetch(_url(own, "getcrl", signer), get, trust.apply_revocation_list))
        results += _fetch_trust_list(trust, own, "getctl", signer, get)
    return results


def _fetch_trust_list(trust: StationTrust, centre: str, path: str, signer: bytes, get: Get) -> list[Fetched]:
    """The deltas from the list that is applied, or else the full list."""
    results = []
    for _ in range(_MOST_DELTAS):
        if (sequence := trust.sequence(signer)) is None or trust.deltas(signer) >= _MOST_DELTAS:
            break
        url = f"{_url(centre, path, signer)}/{(sequence + 1) % SEQUENCES}"
        delta = _fetch(url, get, trust.apply_trust_list)
        if delta.error is not None:
            break
        results.append(delta)
    return results or [_fetch(_url(centre, path, signer), get, trust.apply_trust_list)]


def _url(centre: str, path: str, signer: bytes) -> str:
    return f"{centre.rstrip('/')}/{path}/{signer.hex().upper()}"


def _fetch(url: str, get: Get, apply: Callable[[bytes], OpenedList]) -> Fetched:
    try:
        return Fetched(url, apply(get(url)))
    except UserError as error:
        return Fetched(url, error=error)


def tlm_fault(certificate: Certificate) -> str | None:
    """Why a certificate is not one of a TLM: self-signed, and permitted to list roots."""
    try:
        fault = self_signature_fault(certificate, software_verifier(certificate.verification_key))
    except ValueError as error:
        return str(error)
    if fault is not None:
        return str(fault)
    return permission_fault(TrustList(True, 0, 0, (RootEntry(certificate),)), certificate)


def _certificates(entries: Iterable[Entry]) -> dict[bytes, Certificate]:
    """The certificates that entries make trusted."""
    trusted = (entry.certificate for entry in entries if isinstance(entry, RootEntry | EaEntry | AaEntry))
    return {certificate.hashed_id8: certificate for certificate in trusted}


def _check_generation(opened: OpenedList, known: OpenedList | None) -> None:
    if known is not None and opened.generation_us < known.generation_us:
        raise RefusedListError(ListReason.OLDER, "it was generated before the list applied")


def _entry_fault(entry: RootEntry | EaEntry | AaEntry, signer: Certificate) -> ChainFault | str | None:
    certificate = entry.certificate
    try:
        if isinstance(entry, RootEntry):
            return root_fault(certificate, software_verifier(certificate.verification_key))
        software_verifier(certificate.verification_key)
        return link_fault(certificate, (signer,), software_verifier(signer.verification_key))
    except ValueError as error:
        return str(error)
