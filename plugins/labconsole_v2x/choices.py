"""The choices of the trials' parameters, by the names under which they are stored, and their labels."""

from __future__ import annotations

from enum import StrEnum

from labconsole_v2x.security.backends import Backend
from labconsole_v2x.security.distribution import CertificateInclusion
from labconsole_v2x.security.structures import Curve
from labconsole_v2x.security.verification import CheckOrder
from labconsole_v2x.stations.sending import ALL_LAYERS, Layer


class Generation(StrEnum):
    """When a station sends CAMs."""

    FIXED = "fixed"
    RULES = "rules"


GENERATIONS = {
    Generation.FIXED.value: "At a fixed rate",
    Generation.RULES.value: "By the rules of EN 302 637-2",
}


class Receivers(StrEnum):
    """Which stations receive and verify."""

    ONE = "one"
    ALL = "all"


class CurveChoice(StrEnum):
    """A curve by the name under which it is stored."""

    P256 = "p256"
    BRAINPOOL_P256R1 = "brainpoolP256r1"
    BRAINPOOL_P384R1 = "brainpoolP384r1"
    P384 = "p384"

    @property
    def curve(self) -> Curve:
        """The curve."""
        return Curve[self.name]


class InclusionChoice(StrEnum):
    """When a CAM carries the whole certificate."""

    ETSI = "etsi"
    ALWAYS = "always"
    NEVER = "never"
    CONGESTION = "congestion"

    @property
    def policy(self) -> CertificateInclusion:
        """The policy."""
        return CertificateInclusion[self.name]


INCLUSIONS = {
    InclusionChoice.ETSI.value: "ETSI: once a second, on request",
    InclusionChoice.ALWAYS.value: "Always",
    InclusionChoice.NEVER.value: "Never",
    InclusionChoice.CONGESTION.value: "The more rarely, the busier the channel",
}


class Order(StrEnum):
    """The order of a receiver's checks."""

    CHEAP_FIRST = "cheap-first"
    SIGNATURE_FIRST = "signature-first"

    @property
    def order(self) -> CheckOrder:
        """The order."""
        return CheckOrder[self.name]


class ChangeChoice(StrEnum):
    """When stations change their identity; on request they do in any case."""

    NONE = "none"
    START = "start"
    PERIODIC = "periodic"
    TOGETHER = "together"
    """Periodically, and all stations at the same time, within an interval of CAMs."""


CHANGING = (ChangeChoice.PERIODIC, ChangeChoice.TOGETHER)
"""Stations change while they send."""
CHANGE_JITTER = 0.2
"""A periodic interval is up to this share shorter or longer, of each station for itself."""
CHANGES = {
    ChangeChoice.NONE.value: "On request only",
    ChangeChoice.START.value: "Each time a station starts",
    ChangeChoice.PERIODIC.value: "Periodically",
    ChangeChoice.TOGETHER.value: "Periodically, all at once",
}


class Unchanged(StrEnum):
    """What stations leave unchanged when they change their identity."""

    NONE = "none"
    TICKET = "ticket"
    MAC_ADDRESS = "mac-address"
    GN_ADDRESS = "gn-address"
    STATION_ID = "station-id"
    PATH_HISTORY = "path-history"
    SEQUENCE_NUMBERS = "sequence-numbers"

    @property
    def changed_layers(self) -> frozenset[Layer]:
        """What they change."""
        return ALL_LAYERS if self is Unchanged.NONE else ALL_LAYERS - {Layer[self.name]}


UNCHANGED = {
    Unchanged.NONE.value: "Nothing",
    Unchanged.TICKET.value: "Ticket",
    Unchanged.MAC_ADDRESS.value: "MAC address",
    Unchanged.GN_ADDRESS.value: "GeoNetworking address",
    Unchanged.STATION_ID.value: "Station ID",
    Unchanged.PATH_HISTORY.value: "Path history",
}


class Attack(StrEnum):
    """What attackers send (`preserve-d3.2.txt`, Tables 2.1 to 2.5 and 2.9)."""

    NONE = "none"
    INVALID_SIGNATURE = "a-sig-01"
    INVALID_DENM_SIGNATURE = "a-sig-02"
    NO_SIGNATURE = "a-sig-03"
    OVERLOAD = "a-sig-04"
    """Invalid signatures at a higher rate than a station may send at."""
    REPLAY = "a-sig-05"
    OLD_TIMESTAMP = "a-sig-06"
    EXPIRED_CERTIFICATE = "a-cer-03"
    IMPLAUSIBLE_CONTENT = "a-con-01"
    TRACKING = "a-psn-01"
    """Attackers listen, and send nothing."""


ATTACKS = {
    Attack.NONE.value: "No attack",
    Attack.INVALID_SIGNATURE.value: "A-SIG-01: invalid signature",
    Attack.INVALID_DENM_SIGNATURE.value: "A-SIG-02: DENM with invalid signature",
    Attack.NO_SIGNATURE.value: "A-SIG-03: no signature",
    Attack.OVERLOAD.value: "A-SIG-04: overload",
    Attack.REPLAY.value: "A-SIG-05: replay",
    Attack.OLD_TIMESTAMP.value: "A-SIG-06: old timestamp",
    Attack.EXPIRED_CERTIFICATE.value: "A-CER-03: expired certificate",
    Attack.IMPLAUSIBLE_CONTENT.value: "A-CON-01: implausible content",
    Attack.TRACKING.value: "A-PSN-01: tracking",
}


class Falsehood(StrEnum):
    """What is false about the content of rightly signed CAMs."""

    MIXED = "mixed"
    """One after the other."""
    POSITION = "position"
    SPEED = "speed"
    DUPLICATE = "duplicate"


FALSEHOODS = {
    Falsehood.MIXED.value: "Position, speed and station ID in turn",
    Falsehood.POSITION.value: "Position jumps",
    Falsehood.SPEED.value: "Speed",
    Falsehood.DUPLICATE.value: "Station ID of another station",
}
CURVE_TITLES = {choice.value: choice.curve.title for choice in CurveChoice}
BACKENDS = {
    Backend.OPENSSL.value: "Software: OpenSSL, by cryptography",
    Backend.AWS_LC.value: "Software: AWS-LC (P-256)",
    Backend.TOKEN.value: "PKCS#11 token",
}
