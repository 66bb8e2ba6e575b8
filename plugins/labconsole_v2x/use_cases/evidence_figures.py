"""Figures that are counted in the evidence of a use case, each by the name under which a criterion asks for it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from operator import attrgetter

from labconsole_v2x.attacks.tracking import (
    Link,
    Observation,
    Track,
    link_by_identifiers,
    link_by_motion,
    observe,
    score,
    tracks_of,
)
from labconsole_v2x.messages.asn1_modules import MessageError
from labconsole_v2x.messages.btp import BtpError
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.denm import Denm
from labconsole_v2x.messages.geonetworking import GeoNetworkingError, secured_octets
from labconsole_v2x.security.chain import link_fault
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.structures import Certificate, PointForm, SignedData
from labconsole_v2x.security.trust import TrustStore, software_verifier
from labconsole_v2x.security.verification import Verifier, decode_message
from labconsole_v2x.stations.capture import ETHERNET_HEADER
from labconsole_v2x.stations.receiving import IMPLAUSIBLE
from labconsole_v2x.stations.vehicle_bus import DataId, VehicleFrame
from labconsole_v2x.use_cases.evidence import Evidence, Kind, Record

_DETECTED_WITHIN_US = 1_000_000
_COMPRESSED = (PointForm.COMPRESSED_Y0, PointForm.COMPRESSED_Y1)


def figures_of(evidence: Evidence, label: str) -> list[float]:
    """The values of a figure: counted in the evidence, or as recorded; none where it is neither."""
    count = _COUNTED.get(label)
    if count is None:
        return evidence.measured(label)
    value = count(evidence)
    return [] if value is None else [value]


def signed_data(frame: bytes) -> SignedData | None:
    """The signed data in a frame; None where it is not secured, or cannot be read."""
    try:
        secured = secured_octets(frame[ETHERNET_HEADER:])
        return None if secured is None else scan_signed_data(secured)
    except (GeoNetworkingError, MalformedDataError):
        return None


def _rate(times_us: list[int]) -> float:
    return (len(times_us) - 1) / (max(times_us) - min(times_us)) * 1e6 if len(set(times_us)) > 1 else 0.0


def _sent_rate(evidence: Evidence) -> float:
    return _rate([one.at_us for one in evidence.of(Kind.SENT, "CAM at a high rate")])


def _rate_kept(evidence: Evidence) -> float | None:
    """Rate of the verdicts over that of what was sent."""
    sent = _sent_rate(evidence)
    return _rate([one.at_us for one in evidence.received("CAM at a high rate")]) / sent if sent else None


def _rate_offered(evidence: Evidence) -> float | None:
    asked = evidence.measured("rate asked for")
    return _sent_rate(evidence) / asked[0] if asked else None


def _requests_for_authority(evidence: Evidence) -> float:
    """CAMs of the receiver that ask for a certificate which another receiver knows."""
    known = {scan_certificate(one.octets).hashed_id3 for one in evidence.of(Kind.KNOWN)}
    asking = (signed_data(one.octets) for one in evidence.of(Kind.SENT, "CAM of the receiver"))
    return sum(1 for data in asking if data is not None and known & set(data.header.inline_p2pcd_request))


def _accepted_too_early(evidence: Evidence) -> float | None:
    """Packets whose first verdict was "accepted", although the receiver had no certificate of the AA yet."""
    first: dict[bytes, str] = {}
    for one in evidence.of(Kind.RECEIVED, "CAM before the AA is known"):
        first.setdefault(one.octets, one.result)
    return sum(1 for result in first.values() if result == "accepted") if first else None


def _compressed_keys(evidence: Evidence) -> float:
    tickets = (scan_certificate(one.octets) for one in evidence.of(Kind.CERTIFICATE, "station"))
    return sum(1 for ticket in tickets if ticket.verification_key.point.form in _COMPRESSED)


def _found(wanted: Sequence[bytes], searched: Sequence[Record]) -> float | None:
    """How often any of these octets is in records; None where there is nothing to find, or nothing to search."""
    if not (wanted and searched):
        return None
    return sum(one.octets.count(octets) for octets in wanted for one in searched)


def _credential_at_aa(evidence: Evidence) -> float | None:
    credentials = _certificates(evidence, Kind.CERTIFICATE, "credential")
    names = [octets for one in credentials for octets in (one.hashed_id8, one.verification_key.point.x)]
    return _found(names, evidence.of(Kind.OPENED, "AA"))


def _ticket_keys_at_ea(evidence: Evidence) -> float | None:
    return _found(_ticket_keys(evidence), evidence.of(Kind.OPENED, "EA"))


def _ticket_keys_at_rsu(evidence: Evidence) -> float | None:
    return _found(_ticket_keys(evidence), evidence.of(Kind.MESSAGE, "frame by the RSU"))


def _ticket_keys(evidence: Evidence) -> list[bytes]:
    return [ticket.verification_key.point.x for ticket in _certificates(evidence, Kind.CERTIFICATE, "ticket")]


def _its_id_in_clear(evidence: Evidence) -> float | None:
    return _found([b"use-case-station"], evidence.of(Kind.MESSAGE))


def _valid(evidence: Evidence, label: str) -> float:
    """Certificates that are valid under the root and authority of the PKI (number 0)."""
    root = next(scan_certificate(one.octets) for one in evidence.of(Kind.ROOT) if not one.number)
    authorities = {one.hashed_id8: one for one in _certificates(evidence, Kind.KNOWN)}
    return sum(
        1
        for one in _certificates(evidence, Kind.CERTIFICATE, label)
        if (issuer := authorities.get(one.issuer or b""))
        and not link_fault(issuer, (root,), software_verifier(root.verification_key))
        and not link_fault(one, (issuer, root), software_verifier(issuer.verification_key))
    )


def _certificates(evidence: Evidence, kind: Kind, label: str | None = None) -> list[Certificate]:
    return [scan_certificate(one.octets) for one in evidence.of(kind, label)]


def _tickets_beyond(evidence: Evidence) -> float | None:
    """Tickets that permit the emergency container."""
    tickets = _certificates(evidence, Kind.CERTIFICATE, "ticket")
    return sum(any(p.ssp and p.ssp[1] & 0x02 for p in one.permissions) for one in tickets) if tickets else None


def _reports_verified(evidence: Evidence) -> float:
    """Signed data that the centre has decrypted, accepted by another receiver at its time."""
    trust = TrustStore()
    trust.add_root(_certificates(evidence, Kind.ROOT)[0])
    for authority in _certificates(evidence, Kind.KNOWN):
        trust.add(authority)
    verifier = Verifier(trust)
    return sum(1 for one in evidence.of(Kind.OPENED, "centre") if verifier.verify(one.octets, one.at_us).accepted)


def _plaintexts(evidence: Evidence) -> float | None:
    payloads = (scan_signed_data(one.octets).payload for one in evidence.of(Kind.OPENED, "centre"))
    return _found([payload for payload in payloads if payload], evidence.of(Kind.MESSAGE))


def encode_vehicle_frame(frame: VehicleFrame) -> bytes:
    """A frame of the in-vehicle network as it is recorded: data id, freshness, payload, MAC."""
    return struct.pack(">HI", frame.data_id, frame.freshness) + frame.payload + frame.mac


def _wrong_positions(evidence: Evidence) -> float | None:
    """CAMs whose position is not that of the frame before them."""
    wrong, position = 0, b""
    if not evidence.of(Kind.SENT):
        return None
    for one in evidence.records:
        if one.kind is Kind.MESSAGE and one.octets[:2] == DataId.POSITION.to_bytes(2, "big"):
            position = one.octets[6:14]
        elif one.kind is Kind.SENT:
            message = _message(one.octets)
            place = message.position[:2] if message is not None else (0, 0)
            wrong += struct.pack(">ii", *place) != position
    return wrong


def _message(frame: bytes) -> Cam | Denm | None:
    """The CAM or DENM in a frame, whether its signature is valid or not."""
    data = signed_data(frame)
    if data is None or data.payload is None:
        return None
    try:
        return decode_message(data.header.psid, data.payload)
    except (GeoNetworkingError, BtpError, MessageError):
        return None


def _of_label(evidence: Evidence, label: str) -> list[Observation]:
    """What frames of this label say of their sender, of those that have a CAM."""
    seen = (observe(one.octets, one.at_us) for one in evidence.of(Kind.SENT, label))
    return [one for one in seen if one is not None and one.station_id is not None]


def _common_identifiers(evidence: Evidence) -> float | None:
    """Identifiers of any layer that are the same before and after the change."""
    before, after = _of_label(evidence, "CAM before the change"), _of_label(evidence, "CAM after the change")
    if not (before and after):
        return None
    common = 0
    for get in map(attrgetter, ("mac", "digest", "gn_mac", "station_id")):
        common += len({get(one) for one in before} & {get(one) for one in after})
    paths = [{point[1:] for one in ones for point in one.path} for ones in (before, after)]
    return common + len(paths[0] & paths[1])


def _tickets_before(evidence: Evidence) -> float:
    return len({one.digest for one in _of_label(evidence, "CAM before the change")})


def _first_has_certificate(evidence: Evidence) -> float:
    after = evidence.of(Kind.SENT, "CAM after the change")
    data = signed_data(after[0].octets) if after else None
    return float(data is not None and bool(data.certificates))


ALL_CHANGED = "all layers changed"
"""The label of packets of a complete change; those of others say what was left."""


def _tracked(evidence: Evidence, link: Callable[[Sequence[Track]], list[Link]]) -> dict[str, float]:
    """How many changes a tracker links, in %, by what was changed."""
    return {what: _success_rate(stations, link) for what, stations in _observed(evidence).items()}


@lru_cache(maxsize=1)  # three figures need it, and to decode the packets takes most of their time
def _observed(evidence: Evidence) -> dict[str, dict[Observation, str]]:
    """What a tracker sees, and of which station, by what was changed."""
    seen: dict[str, dict[Observation, str]] = {}
    for one in evidence.of(Kind.SENT):
        what, _, station = one.label.rpartition("/")
        observation = observe(one.octets, one.at_us)
        if observation is not None:
            seen.setdefault(what, {})[observation] = station
    return seen


def _success_rate(stations: Mapping[Observation, str], link: Callable[[Sequence[Track]], list[Link]]) -> float:
    """How many changes are linked, in %; `stations` has the station of each packet."""
    tracks = tracks_of(stations)
    return score(tracks, link(tracks), lambda track: stations[track.first]).success_rate


def _linked_complete(evidence: Evidence) -> float | None:
    return _tracked(evidence, link_by_identifiers).get(ALL_CHANGED)


def _linked_incomplete(evidence: Evidence) -> float | None:
    """The lowest rate of all layers."""
    rates = _tracked(evidence, link_by_identifiers)
    rates.pop(ALL_CHANGED, None)
    return min(rates.values(), default=None)


def _linked_by_motion(evidence: Evidence) -> float | None:
    return _tracked(evidence, link_by_motion).get(ALL_CHANGED)


def _attackers_detected(evidence: Evidence) -> float | None:
    """Senders of implausible CAMs of which a CAM was rejected as such within a second of the first one, in %."""
    begun: dict[bytes, int] = {}
    detected = set()
    signers = {one.octets[ETHERNET_HEADER:]: one.octets[6:12] for one in evidence.of(Kind.SENT, "implausible CAM")}
    for one in evidence.of(Kind.RECEIVED, "implausible CAM"):
        mac = signers.get(one.octets, b"")
        if one.result == IMPLAUSIBLE and one.at_us - begun.setdefault(mac, one.at_us) <= _DETECTED_WITHIN_US:
            detected.add(mac)
    return len(detected) / len(begun) * 100 if begun else None


_COUNTED: Mapping[str, Callable[[Evidence], float | None]] = {
    "rate processed, of the rate sent": _rate_kept,
    "rate sent, of the rate asked for": _rate_offered,
    "CAMs of the receiver that ask for the AA": _requests_for_authority,
    "packets accepted before the AA was known": _accepted_too_early,
    "tickets whose key is compressed": _compressed_keys,
    "tickets beyond the credential": _tickets_beyond,
    "credentials valid under the root CA": partial(_valid, label="credential"),
    "tickets valid under the root CA": partial(_valid, label="ticket"),
    "octets of the itsId in messages as sent": _its_id_in_clear,
    "reports that verify again": _reports_verified,
    "plaintexts found in what was sent": _plaintexts,
    "CAMs whose position is not that of the sensors": _wrong_positions,
    "identifiers common to before and after": _common_identifiers,
    "tickets before the change": _tickets_before,
    "first packet after the change carries the certificate": _first_has_certificate,
    "changes linked by an identifier": _linked_complete,
    "changes linked by an identifier, one left unchanged": _linked_incomplete,
    "changes linked by motion": _linked_by_motion,
    "attackers detected within a second": _attackers_detected,
    "enrolment credential in what the AA has read": _credential_at_aa,
    "keys of tickets in what the EA has read": _ticket_keys_at_ea,
    "keys of tickets in what the RSU has carried": _ticket_keys_at_rsu,
}
