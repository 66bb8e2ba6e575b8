"""CAM senders with tickets of a lab PKI, and a clock that tests set, for tests of stations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from types import SimpleNamespace

import pytest

from labconsole_v2x.security import verification
from labconsole_v2x.security.distribution import CertificateInclusion, Distribution
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.keys import SigningKey, SoftwareKey
from labconsole_v2x.security.structures import Curve
from labconsole_v2x.security.trust import StoreLimits, TrustStore
from labconsole_v2x.stations.sending import PASSENGER_CAR, CamSender, Identity, PlaceholderKey, SecurityMode

BEGIN_NS = 1_800_000_000_123_456_000
"""Unix time at which the scenarios begin."""
ITS_EPOCH_S = 1_072_915_200
"""2004-01-01T00:00:00 UTC as Unix time."""
LEAP_SECONDS = 5
"""TAI - UTC has grown by five leap seconds since then."""


def its_us_of(unix_ns: int) -> int:
    """ITS time in us, calculated here and not by the console."""
    return unix_ns // 1000 - ITS_EPOCH_S * 1_000_000 + LEAP_SECONDS * 1_000_000


BEGIN_S = its_us_of(BEGIN_NS) // 1_000_000


@dataclass
class Clock:
    """The wall clock that senders read."""

    now_ns: int = BEGIN_NS

    def time_ns(self) -> int:
        return self.now_ns


def set_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Let senders read a clock that the test sets."""
    clock = Clock()
    monkeypatch.setattr(verification, "time", SimpleNamespace(time_ns=clock.time_ns))
    return clock


@dataclass
class Lab:
    """A PKI on one curve, whose tickets are valid when the scenarios begin."""

    curve: Curve = Curve.P256
    start_s: int = BEGIN_S - 3600
    limits: StoreLimits = field(default_factory=StoreLimits)

    @cached_property
    def pki(self) -> LabPki:
        return LabPki.create(self.start_s, root_curve=self.curve, authority_curve=self.curve)

    def trust(self) -> TrustStore:
        """A store that trusts the root and knows the AA."""
        trust = TrustStore(self.limits)
        trust.add_root(self.pki.root)
        assert trust.add(self.pki.aa) is None
        return trust

    def sender(
        self,
        mode: SecurityMode = SecurityMode.FULL,
        *,
        inclusion: CertificateInclusion = CertificateInclusion.ETSI,
        station_type: int = PASSENGER_CAR,
        key: SigningKey | None = None,
        compressed_r: bool = False,
    ) -> CamSender:
        """A sender with a new ticket, or with random names in the mode without security."""
        if mode is SecurityMode.NONE:
            return CamSender(Identity.of(Random().randbytes(8)), station_type=station_type)
        signing = key or SoftwareKey.generate(self.curve, compressed_r=compressed_r)
        ticket = self.pki.ticket(signing.public_key, self.start_s)
        used = PlaceholderKey(signing.public_key) if mode is SecurityMode.HEADER else signing
        sender = CamSender(Identity.of(ticket.hashed_id8), ticket=ticket, key=used, station_type=station_type)
        sender.distribution = Distribution(ticket, self.trust(), inclusion)
        return sender
