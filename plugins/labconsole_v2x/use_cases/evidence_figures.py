"""Figures that are counted in the evidence of a use case, each by the name under which a criterion asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from labconsole_v2x.messages.geonetworking import GeoNetworkingError, secured_octets
from labconsole_v2x.security.chain import link_fault
from labconsole_v2x.security.reading import MalformedDataError
from labconsole_v2x.security.scanning import scan_certificate, scan_signed_data
from labconsole_v2x.security.structures import Certificate, PointForm, SignedData
from labconsole_v2x.security.trust import software_verifier
from labconsole_v2x.use_cases.evidence import Evidence, Kind

_COMPRESSED = (PointForm.COMPRESSED_Y0, PointForm.COMPRESSED_Y1)


def figures_of(evidence: Evidence, label: str) -> list[float]:
    """The values of a figure: counted in the evidence, or as recorded; none where it is neither."""
    count = _COUNTED.get(label)
    if count is None:
        return evidence.measured(label)
    value = count(evidence)
    return [] if value is None else [value]


def signed_data(packet: bytes) -> SignedData | None:
    """The signed data of a packet; None where it is not secured, or cannot be read."""
    try:
        secured = secured_octets(packet)
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


def _accepted_too_early(evidence: Evidence) -> float:
    """Packets whose first verdict was "accepted", although the receiver had no certificate of the AA yet."""
    first: dict[bytes, str] = {}
    for one in evidence.of(Kind.RECEIVED, "CAM before the AA is known"):
        first.setdefault(one.octets, one.result)
    return sum(1 for result in first.values() if result == "accepted")


def _compressed_keys(evidence: Evidence) -> float:
    tickets = (scan_certificate(one.octets) for one in evidence.of(Kind.CERTIFICATE, "station"))
    return sum(1 for ticket in tickets if ticket.verification_key.point.form in _COMPRESSED)


def _found(evidence: Evidence, label: str, wanted: Iterable[bytes]) -> float:
    """How often any of these octets is in what a party has decrypted or carried."""
    contents = [one.octets for one in evidence.of(Kind.OPENED, label)]
    return sum(content.count(octets) for octets in wanted for content in contents)


def _credential_at_aa(evidence: Evidence) -> float:
    credentials = _certificates(evidence, Kind.CERTIFICATE, "credential")
    names = [octets for one in credentials for octets in (one.hashed_id8, one.verification_key.point.x)]
    return _found(evidence, "AA", names)


def _ticket_keys_at_ea(evidence: Evidence) -> float:
    return _found(
        evidence,
        "EA",
        [ticket.verification_key.point.x for ticket in _certificates(evidence, Kind.CERTIFICATE, "ticket")],
    )


def _its_id_in_clear(evidence: Evidence) -> float:
    return sum(one.octets.count(b"use-case-station") for one in evidence.of(Kind.MESSAGE))


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


def _tickets_beyond(evidence: Evidence) -> float:
    """Tickets that permit the emergency container."""
    return sum(
        1
        for ticket in _certificates(evidence, Kind.CERTIFICATE, "ticket")
        if any(p.ssp and p.ssp[1] & 0x02 for p in ticket.permissions)
    )


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
    "enrolment credential in what the AA has read": _credential_at_aa,
    "keys of tickets in what the EA has read": _ticket_keys_at_ea,
}
