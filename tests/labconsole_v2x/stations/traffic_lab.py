"""A centre, a station and another centre of one lab, with a clock that the test sets."""

from __future__ import annotations

from dataclasses import dataclass, field

from labconsole_v2x.security.issuing import CENTRE_PERMISSIONS, CENTRE_RANGES, TICKET_PERMISSIONS, LabPki
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import Certificate, Permission
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import Verifier
from labconsole_v2x.stations.routes import Route
from labconsole_v2x.stations.sending import Identity
from labconsole_v2x.stations.traffic_centre import (
    CentreIdentity,
    SentReport,
    TrafficCentre,
    TrafficSender,
    read_confirmation,
)
from tests.labconsole_v2x.security.lab_certificates import NOW_S, NOW_US

MOVEMENT = Route(10, 20, 100, 13.0).at(5.0)
MAC = bytes.fromhex("020000000001")


def traffic_pki() -> LabPki:
    """A PKI whose AA may also issue tickets of centres."""
    return LabPki.create(NOW_S - 3600, further_ranges=CENTRE_RANGES)


@dataclass
class TrafficLab:
    """Everything that reports and confirmations need."""

    pki: LabPki = field(default_factory=traffic_pki)
    now_us: int = NOW_US
    most_kept: int = 100

    def __post_init__(self) -> None:
        self.identity = self.centre_identity()
        self.centre = TrafficCentre(self.identity, self.verifier(), most_kept=self.most_kept, clock=lambda: self.now_us)
        self.station = self.sender()
        self.receiver = self.verifier()
        """That of the station, for confirmations."""

    def verifier(self) -> Verifier:
        trust = TrustStore()
        trust.add_root(self.pki.root)
        assert trust.add(self.pki.aa) is None
        return Verifier(trust, clock=lambda: self.now_us)

    def ticket(
        self,
        key: SoftwareKey,
        permissions: tuple[Permission, ...] = TICKET_PERMISSIONS,
        encryption_key: SoftwareKey | None = None,
    ) -> Certificate:
        encryption = encryption_key.public_key if encryption_key else None
        return self.pki.ticket(key.public_key, NOW_S - 60, permissions=permissions, encryption_key=encryption)

    def centre_identity(self) -> CentreIdentity:
        key, encryption_key = SoftwareKey.generate(), SoftwareKey.generate()
        return CentreIdentity(self.ticket(key, CENTRE_PERMISSIONS, encryption_key), key, encryption_key)

    def sender(self, centre: Certificate | None = None) -> TrafficSender:
        key = SoftwareKey.generate()
        ticket = self.ticket(key)
        return TrafficSender(
            Identity.of(ticket.hashed_id8), ticket, key, centre or self.identity.ticket, clock=lambda: self.now_us
        )

    def report(self) -> SentReport:
        return self.station.report(MOVEMENT)

    def read(self, confirmation: bytes | None, report: SentReport) -> str:
        assert confirmation is not None
        return read_confirmation(confirmation, report, self.identity.ticket, self.receiver)
