"""The result of an inspection: a row for each packet, whose checks are kept apart, and the stations that were heard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from labconsole_v2x.messages.geonetworking import Address
from labconsole_v2x.security.reading import MalformedDataError


class SignatureState(StrEnum):
    """Whether the signature of a packet verifies with its signer's certificate."""

    VALID = "valid"
    INVALID = "invalid"
    NOT_CHECKED = "not checked"


class ChainState(StrEnum):
    """Whether the signer's certificate leads to a trusted root."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    INVALID = "invalid"
    NOT_CHECKED = "not checked"


class ProfileState(StrEnum):
    """Whether a packet keeps the security profile of its ITS-AID (TS 103 097, 7) and the ticket's permissions."""

    KEPT = "kept"
    BROKEN = "broken"
    NOT_CHECKED = "not checked"


class TimeState(StrEnum):
    """Whether message and certificates are valid at the time of the capture."""

    VALID = "valid"
    NOT_VALID = "not valid"
    NOT_CHECKED = "not checked"


class Verdict(StrEnum):
    """The gravest finding of a packet; the order is that of gravity, the gravest last."""

    NOT_JUDGED = "not judged"
    """Signed, and listed without an inspection."""
    VALID = "valid"
    CHAIN_INCOMPLETE = "chain incomplete"
    PROFILE_BROKEN = "profile broken"
    TIME_NOT_VALID = "not valid at the capture's time"
    CHAIN_INVALID = "chain invalid"
    SIGNATURE_INVALID = "signature invalid"
    UNKNOWN_SIGNER = "signer unknown"
    ENCRYPTED = "encrypted"
    UNSECURED = "not secured"
    MALFORMED = "malformed"


class Checks(NamedTuple):
    """The findings of a signed packet, and the reasons in words for those that are not as they should be."""

    signature: SignatureState = SignatureState.NOT_CHECKED
    chain: ChainState = ChainState.NOT_CHECKED
    profile: ProfileState = ProfileState.NOT_CHECKED
    time: TimeState = TimeState.NOT_CHECKED
    reasons: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The gravest finding of a signed packet."""
        if self.signature is not SignatureState.VALID:
            invalid = self.signature is SignatureState.INVALID
            return Verdict.SIGNATURE_INVALID if invalid else Verdict.UNKNOWN_SIGNER
        if self.chain is ChainState.INVALID:
            return Verdict.CHAIN_INVALID
        if self.time is TimeState.NOT_VALID:
            return Verdict.TIME_NOT_VALID
        if self.profile is ProfileState.BROKEN:
            return Verdict.PROFILE_BROKEN
        return Verdict.VALID if self.chain is ChainState.COMPLETE else Verdict.CHAIN_INCOMPLETE


class PacketRow(NamedTuple):
    """The verdict on one packet."""

    number: int
    """Number of the frame in the capture, from 1 on, as Wireshark counts."""
    time_ns: int
    """Unix time of the capture; 0 where the file gives none."""
    size: int
    """Octets of the GeoNetworking packet, padding included."""
    message: str
    """CAM, DENM, beacon, or the ITS-AID; empty where it cannot be read."""
    station_id: int | None
    """As the ITS PDU header gives it; None for other messages."""
    address: Address | None
    """GeoNetworking address of the source; None where it cannot be read."""
    signer: bytes
    """HashedId8 of the signer; empty where there is none."""
    root: str
    """The last certificate to which the chain leads: name or HashedId8."""
    checks: Checks
    verdict: Verdict

    @property
    def reason(self) -> str:
        """Why the verdict is not "valid", in words."""
        return "; ".join(self.checks.reasons)


@dataclass(slots=True)
class Station:
    """The packets of one GeoNetworking address."""

    address: Address
    first_ns: int
    last_ns: int
    station_ids: set[int] = field(default_factory=set)
    signers: set[bytes] = field(default_factory=set)
    messages: Counter[str] = field(default_factory=Counter)
    packets: int = 0
    valid_signatures: int = 0

    def add(self, row: PacketRow) -> None:
        """Count a packet of this station."""
        self.packets += 1
        self.first_ns, self.last_ns = min(self.first_ns, row.time_ns), max(self.last_ns, row.time_ns)
        self.messages[row.message] += 1
        self.valid_signatures += row.checks.signature is SignatureState.VALID
        if row.station_id is not None:
            self.station_ids.add(row.station_id)
        if row.signer:
            self.signers.add(row.signer)


@dataclass(frozen=True, slots=True)
class ChainUse:
    """The tickets of a capture whose chains are the same from the issuer on."""

    issuers: tuple[str, ...]
    """From the issuer up, as far as certificates are known: names with their HashedId8; empty if nothing is known."""
    state: ChainState
    reason: str
    """Why the chain is not complete; empty if it is."""
    tickets: int
    packets: int


@dataclass
class Inspection:
    """The verdicts on a capture, in the order of its packets."""

    name: str
    """Name of the file."""
    rows: list[PacketRow] = field(default_factory=list)
    stations: dict[Address, Station] = field(default_factory=dict)
    other_frames: int = 0
    """Frames without GeoNetworking packet."""
    certificates: int = 0
    """Certificates that the capture contains."""
    roots: tuple[str, ...] = ()
    """Names of the trusted roots that were given."""
    chains: tuple[ChainUse, ...] = ()
    """The chains of the signers, the most frequent first."""
    fault: str = ""
    """Why the capture was not read to its end; empty if it was."""

    def extend(self, rows: Iterable[PacketRow]) -> None:
        """Append the next packets."""
        for row in rows:
            self.rows.append(row)
            if row.address is not None:
                station = self.stations.get(row.address)
                if station is None:
                    station = self.stations[row.address] = Station(row.address, row.time_ns, row.time_ns)
                station.add(row)

    def by_verdict(self) -> dict[Verdict, int]:
        """The number of packets with each verdict that occurs, from valid to malformed."""
        counts = Counter(row.verdict for row in self.rows)
        return {verdict: counts[verdict] for verdict in Verdict if counts[verdict]}

    def findings(self) -> Iterator[tuple[Verdict, str, int, int]]:
        """Verdict, reason, number of packets, and number of the first; the most frequent first."""
        firsts: dict[tuple[Verdict, str], int] = {}
        counts: Counter[tuple[Verdict, str]] = Counter()
        for row in self.rows:
            if row.checks.reasons:
                key = (row.verdict, row.reason)
                firsts.setdefault(key, row.number)
                counts[key] += 1
        for (verdict, reason), count in counts.most_common():
            yield verdict, reason, count, firsts[verdict, reason]


def cause(error: MalformedDataError) -> str:
    """What is wrong, without the remedy."""
    return str(error).partition(". ")[0]
