"""Signed lists of a lab's TLM and root, right or wrong, and a station that has what it needs to read them."""

from __future__ import annotations

from labconsole_v2x.pki.lists.signed_lists import sign_revocation_list, sign_trust_list
from labconsole_v2x.pki.lists.station_trust import StationTrust
from labconsole_v2x.pki.lists.trust_lists import (
    AaEntry,
    CentreEntry,
    Command,
    EaEntry,
    RevocationList,
    RootEntry,
    TlmEntry,
    TrustList,
)
from labconsole_v2x.pki.request_parts import Content
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import Reason, Verifier
from tests.labconsole_v2x.pki.pki_lab import AA_URL, EA_URL, NOW_S, NOW_US, lab_pki
from tests.labconsole_v2x.security.lab_certificates import Holder, signed_cam

DC_URL = "http://dc.test/"
WEEK_S = 7 * 86_400
MINUTE_US = 60_000_000


class ListsLab:
    """A TLM, root, EA and AA, and a station's trust, with a clock that the test sets."""

    def __init__(self, pki: LabPki | None = None) -> None:
        self.pki = pki or lab_pki()
        self.now_us = NOW_US
        self.store = TrustStore()
        self.trust = StationTrust(self.store, tlm=self.pki.tlm, clock=lambda: self.now_us)

    @property
    def ectl_entries(self) -> tuple[Command, ...]:
        """The root, its distribution centre, and the TLM."""
        centre = CentreEntry(DC_URL, (self.pki.root.hashed_id8,))
        return RootEntry(self.pki.root), TlmEntry(self.pki.tlm, DC_URL), centre

    @property
    def ctl_entries(self) -> tuple[Command, ...]:
        """EA, AA and distribution centre of the root."""
        centre = CentreEntry(DC_URL, (self.pki.root.hashed_id8,))
        return EaEntry(self.pki.ea, EA_URL), AaEntry(self.pki.aa, AA_URL), centre

    def ectl(
        self,
        commands: tuple[Command, ...] | None = None,
        *,
        sequence: int = 1,
        issued_us: int = NOW_US,
        is_full: bool = True,
        next_update_s: int = NOW_S + WEEK_S,
    ) -> bytes:
        """A list of the TLM."""
        values = TrustList(is_full, sequence, next_update_s, self.ectl_entries if commands is None else commands)
        return sign_trust_list(values, Content.TLM_TRUST_LIST, self.pki.tlm_key, self.pki.tlm, issued_us)

    def ctl(
        self,
        commands: tuple[Command, ...] | None = None,
        *,
        sequence: int = 1,
        issued_us: int = NOW_US,
        is_full: bool = True,
        next_update_s: int = NOW_S + WEEK_S,
    ) -> bytes:
        """A list of the root."""
        values = TrustList(is_full, sequence, next_update_s, self.ctl_entries if commands is None else commands)
        return sign_trust_list(values, Content.ROOT_TRUST_LIST, self.pki.root_key, self.pki.root, issued_us)

    def crl(
        self,
        *entries: bytes,
        this_update_s: int = NOW_S,
        next_update_s: int = NOW_S + WEEK_S,
        issued_us: int | None = None,
    ) -> bytes:
        """A revocation list of the root, by default signed when it takes effect."""
        values = RevocationList(this_update_s, next_update_s, entries)
        signed_us = this_update_s * 1_000_000 if issued_us is None else issued_us
        return sign_revocation_list(values, self.pki.root_key, self.pki.root, signed_us)

    def apply_all(self) -> None:
        """Apply ECTL, CTL and an empty CRL."""
        self.trust.apply_trust_list(self.ectl())
        self.trust.apply_trust_list(self.ctl())
        self.trust.apply_revocation_list(self.crl())


def ticket_of(pki: LabPki) -> Holder:
    """A ticket of the lab's AA, with its key."""
    key = SoftwareKey.generate()
    return Holder(pki.ticket(key.public_key, NOW_S - 60), key)


def verdict(lab: ListsLab, ticket: Holder, *, digest: bool = False, time_us: int = NOW_US) -> Reason:
    """What the station says of a CAM that is signed with the ticket."""
    verifier = Verifier(lab.store, clock=lambda: time_us)
    return verifier.verify(signed_cam(ticket, time_us, digest=digest)).reason


def trusted(lab: ListsLab) -> object:
    """All that a station's trust shows."""
    trust, root = lab.trust, lab.pki.root.hashed_id8
    return (
        trust.roots,
        trust.enrolment_authorities(root),
        trust.authorization_authorities(root),
        trust.centres,
        trust.revoked(root),
        trust.sequence(root),
        trust.sequence(lab.pki.tlm.hashed_id8),
        len(lab.store),
    )
