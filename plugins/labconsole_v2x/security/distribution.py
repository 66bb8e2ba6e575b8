"""Certificate distribution between stations: which CAM includes which certificate, and what is requested from peers.

TS 103 097 v2.1.1, 7.1.1; IEEE 1609.2, clause 8 (peer-to-peer certificate distribution, P2PCD). Congestion-based
omission as in the source's references [2] and [3]: the busier the channel, the more messages without a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from labconsole_v2x.security.structures import CAM_PSID, Certificate, Header
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import Outcome, Reason

MAX_REQUESTS = 8
"""HashedId3s in one inlineP2pcdRequest, and requests of peers that wait for an answer; the oldest make room."""


class CertificateInclusion(StrEnum):
    """When a CAM has the station's certificate as signer instead of its digest."""

    ETSI = "once a second, on request and for a new neighbour"
    ALWAYS = "always"
    NEVER = "never"
    CONGESTION = "the more rarely, the busier the channel"


MOST_OMITTED, FULL_AT_RATIO = 10, 0.6
"""Congestion-based omission: from this channel busy ratio on, so many CAMs in a row have no certificate; on a free
channel each has one, and in between their number grows linearly. The references control it so and give other numbers.
"""


def omitted_at(channel_ratio: float) -> int:
    """CAMs in a row without certificate at this channel busy ratio, by congestion-based omission."""
    return round(MOST_OMITTED * min(1.0, channel_ratio / FULL_AT_RATIO))


@dataclass(frozen=True, slots=True)
class Inclusion:
    """What the next CAM includes for distribution."""

    certificate: bool
    """Whether the signer is the certificate; its digest otherwise."""
    inline_p2pcd_request: tuple[bytes, ...] = ()
    requested_certificate: bytes | None = None


class Distribution:
    """One station's part in certificate distribution for one ticket: note each outcome, ask before each CAM.

    The station's own authority must be in `trust`, so that peers who request it get an answer.
    """

    def __init__(
        self,
        ticket: Certificate,
        trust: TrustStore,
        policy: CertificateInclusion = CertificateInclusion.ETSI,
        interval_us: int = 1_000_000,
    ) -> None:
        self._ticket = ticket
        self._trust = trust
        self._policy = policy
        self._interval_us = interval_us
        self._due_us = 0
        self._omitted = 0
        self._missing: dict[bytes, None] = {}
        self._requested: dict[bytes, None] = {}

    def change_ticket(self, ticket: Certificate) -> None:
        """Distribute another ticket: its first CAM includes it, and nothing of what was heard before is requested."""
        with self._trust.turn:
            self._ticket = ticket
            self._due_us = self._omitted = 0
            self._missing.clear()
            self._requested.clear()

    def note(self, outcome: Outcome) -> None:
        """Note what a received packet misses, requests, or answers in place of this station.

        Packets that are rejected for another reason than a missing certificate count for nothing.
        """
        if not outcome.for_distribution or outcome.reason not in _CREDIBLE or (header := outcome.header) is None:
            return
        with self._trust.turn:
            self._note(outcome, header)

    def _note(self, outcome: Outcome, header: Header) -> None:
        if outcome.missing is not None:
            _remember(self._missing, outcome.missing)
        if header.psid != CAM_PSID:
            return
        if outcome.new_signer or outcome.reason is Reason.UNKNOWN_SIGNER:
            self._due_us = 0
        for hashed_id3 in header.inline_p2pcd_request:
            if hashed_id3 == self._ticket.hashed_id3:
                self._due_us = 0
            elif self._trust.find_authority(hashed_id3) is not None:
                _remember(self._requested, hashed_id3)
        if header.requested_certificate is not None:
            answered = self._trust.find_octets(header.requested_certificate)
            if answered is not None:
                self._requested.pop(answered.certificate.hashed_id3, None)

    def next_cam(self, now_us: int, channel_ratio: float = 0.0) -> Inclusion:
        """Return what the CAM sent at this ITS time in us includes; an answer never goes with the own certificate.

        `channel_ratio`: the channel busy ratio, for congestion-based omission.
        """
        with self._trust.turn:
            return self._next_cam(now_us, channel_ratio)

    def _next_cam(self, now_us: int, channel_ratio: float) -> Inclusion:
        match self._policy:
            case CertificateInclusion.ALWAYS:
                wanted = True
            case CertificateInclusion.NEVER:
                wanted = False
            case CertificateInclusion.ETSI:
                wanted = now_us >= self._due_us
            case CertificateInclusion.CONGESTION:
                wanted = self._omitted >= omitted_at(channel_ratio) or self._due_us == 0
        # A requested authority's certificate and the own one take turns, so that neither waits for ever.
        with_certificate = wanted and not (self._requested and self._omitted == 0)
        self._omitted = 0 if with_certificate else self._omitted + 1
        if with_certificate:
            self._due_us = now_us + self._interval_us
        answer = None
        while self._requested and not with_certificate and answer is None:
            hashed_id3 = next(iter(self._requested))
            del self._requested[hashed_id3]
            answer = self._trust.find_authority(hashed_id3)
        lacking = (i for i in self._missing if (known := self._trust.find(i)) is None or not known.chain)
        requests = tuple(dict.fromkeys(hashed_id8[5:] for hashed_id8 in lacking))
        self._missing.clear()
        return Inclusion(with_certificate, requests, None if answer is None else answer.octets)


_CREDIBLE = (Reason.ACCEPTED, Reason.UNKNOWN_SIGNER, Reason.UNKNOWN_ISSUER)


def _remember(store: dict[bytes, None], key: bytes) -> None:
    store[key] = None
    if len(store) > MAX_REQUESTS:
        del store[next(iter(store))]
