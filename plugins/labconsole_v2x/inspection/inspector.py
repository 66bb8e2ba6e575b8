"""Inspects a capture: learns its certificates in a first pass, then judges each packet in a second."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from labconsole.safe_text import shown
from labconsole_v2x.inspection.capture_certificates import CaptureCertificates, JudgedCertificate, identified
from labconsole_v2x.inspection.verdicts import (
    ChainState,
    ChainUse,
    Checks,
    Inspection,
    PacketRow,
    ProfileState,
    SignatureState,
    TimeState,
    Verdict,
    cause,
)
from labconsole_v2x.messages import cam, denm
from labconsole_v2x.messages.asn1_modules import MessageError
from labconsole_v2x.messages.btp import BtpError, BtpPacket, Port, parse_btp
from labconsole_v2x.messages.geonetworking import (
    GeoNetworkingError,
    Kind,
    UnsecuredPacket,
    parse_packet,
    parse_unsecured,
)
from labconsole_v2x.messages.its_time import its_us
from labconsole_v2x.security.chain import effective_region
from labconsole_v2x.security.keys import integers, signature_digest
from labconsole_v2x.security.profiles import profile_faults, ssp_faults
from labconsole_v2x.security.regions import contains
from labconsole_v2x.security.scanning import MalformedDataError, scan_signed_data
from labconsole_v2x.security.structures import (
    CAM_PSID,
    DENM_PSID,
    GN_MANAGEMENT_PSID,
    IVIM_PSID,
    MAPEM_PSID,
    SAEM_PSID,
    SPATEM_PSID,
    Certificate,
    Header,
    SignedData,
)
from labconsole_v2x.security.verification import CheckSettings
from labconsole_v2x.stations.capture import CapturedPacket, CaptureError, geonetworking_octets, read_capture

_T = TypeVar("_T")
_PART = 256
"""Packets that a thread judges in one go."""
ITS_AIDS = {
    CAM_PSID: "CAM",
    DENM_PSID: "DENM",
    SPATEM_PSID: "SPATEM",
    MAPEM_PSID: "MAPEM",
    IVIM_PSID: "IVIM",
    140: "SREM or SSEM",
    GN_MANAGEMENT_PSID: "beacon",
    638: "VAM",
    639: "CPM",
    SAEM_PSID: "SAEM",
}
"""The messages of ITS-AIDs (TS 102 965)."""
_PORTS = {port.value: port.name.replace("_", " ") for port in Port}
_MESSAGE_IDS = {CAM_PSID: 2, DENM_PSID: 1}
"""messageID of the ITS PDU header (TS 102 894-2)."""
_UNSECURED_DATA, _ENCRYPTED_DATA = b"\x03\x80", b"\x03\x82"
"""Version and content of Ieee1609Dot2Data (IEEE 1609.2, 6.3.3 and 6.3.4)."""


class _Frame(NamedTuple):
    """A frame with a GeoNetworking packet, and its number in the capture."""

    number: int
    captured: CapturedPacket
    octets: bytes


def inspect_capture(
    path: Path,
    certificates: CaptureCertificates,
    *,
    clock_tolerance_us: int = 0,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Inspection:
    """Judge the packets of a capture, with the certificates given and those that it contains.

    `clock_tolerance_us`: how far the clock of the capture may be wrong. `progress` gets the frames judged, and all.
    A capture that is broken, or grows meanwhile, is judged up to the last frame that was read at first. Raises
    CaptureError where none can be read.
    """
    inspection = Inspection(path.name, roots=certificates.roots)
    total = 0
    try:
        for total, frame in enumerate(_frames(read_capture(path)), 1):
            if frame is not None:
                _learn(frame, certificates)
            if total % _PART == 0 and stopped():
                break
    except CaptureError as error:
        if not total:
            raise
        inspection.fault = f"{error} The packets before it were judged."
    inspection.certificates = len(certificates)
    judge = _Judge(certificates, clock_tolerance_us)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        pending: deque[tuple[int, Future[list[PacketRow]]]] = deque()
        for last, part in _parts(islice(_frames(read_capture(path)), total), inspection):
            pending.append((last, pool.submit(judge.rows, part)))
            if len(pending) > 2 * (os.cpu_count() or 1):
                done, rows = pending.popleft()
                inspection.extend(rows.result())
                progress(done, total)
            if stopped():
                inspection.fault = f"Cancelled after frame {last} of {shown(path.name)}."
                break
        for done, rows in pending:
            inspection.extend(rows.result())
            progress(done, total)
    inspection.chains = _chains(inspection.rows, certificates)
    return inspection


def _chains(rows: Sequence[PacketRow], certificates: CaptureCertificates) -> tuple[ChainUse, ...]:
    """The chains of the signers whose certificates are known, the most frequent first."""
    packets: Counter[tuple[tuple[str, ...], ChainState, str]] = Counter()
    tickets: Counter[tuple[tuple[str, ...], ChainState, str]] = Counter()
    for signer, count in Counter(row.signer for row in rows if row.signer).items():
        judged = certificates.find(signer)
        if judged is not None:
            chain = tuple(map(identified, judged.chain[1:])), judged.state, judged.reason
            packets[chain] += count
            tickets[chain] += 1
    return tuple(ChainUse(*chain, tickets[chain], count) for chain, count in packets.most_common())


def unjudged_rows(packets: Iterable[CapturedPacket]) -> Iterator[PacketRow]:
    """Yield the rows of frames with GeoNetworking packets: what they say of themselves, without a judgement."""
    certificates = CaptureCertificates()
    reader = _Judge(certificates, 0, judging=False)
    for frame in _frames(packets):
        if frame is not None:
            _learn(frame, certificates)
            yield from reader.rows((frame,))


def _frames(packets: Iterable[CapturedPacket]) -> Iterator[_Frame | None]:
    """The frames of a capture; None for those without GeoNetworking packet. Raises CaptureError, as `packets` does."""
    for number, captured in enumerate(packets, 1):
        octets = geonetworking_octets(captured)
        yield None if octets is None else _Frame(number, captured, octets)


def _parts(frames: Iterator[_Frame | None], inspection: Inspection) -> Iterator[tuple[int, Sequence[_Frame]]]:
    """The frames with GeoNetworking packets in parts, and the number of the last; others are counted."""
    last = 0
    while part := list(islice(frames, _PART)):
        last += len(part)
        found = [frame for frame in part if frame is not None]
        inspection.other_frames += len(part) - len(found)
        yield last, found


def _learn(frame: _Frame, certificates: CaptureCertificates) -> None:
    """Add the certificates of a packet: its signer's, and that of an authority that another station asked for."""
    try:
        secured = parse_packet(frame.octets).secured
        if secured is None:
            return
        data = scan_signed_data(secured)
    except (GeoNetworkingError, MalformedDataError):
        return
    for octets in data.certificates:
        certificates.add_octets(octets)
    if data.header.requested_certificate is not None:
        certificates.add_octets(data.header.requested_certificate)


class _Judge:
    """Judges packets; several threads may use one."""

    def __init__(self, certificates: CaptureCertificates, clock_tolerance_us: int, *, judging: bool = True) -> None:
        """Without `judging` signed packets are read only, and their verdict says so."""
        self._certificates = certificates
        self._tolerance_us = clock_tolerance_us
        self._judging = judging
        self._settings = CheckSettings()
        self._known: dict[Any, Any] = {}

    def rows(self, frames: Sequence[_Frame]) -> list[PacketRow]:
        """The verdicts on these packets."""
        return [self._row(frame) for frame in frames]

    def _same(self, value: _T) -> _T:
        """An equal value that an earlier row has, so that a long capture needs less memory."""
        found: _T = self._known.setdefault(value, value)
        return found

    def _row(self, frame: _Frame) -> PacketRow:
        if frame.captured.cut:
            return _unsigned(frame, Verdict.MALFORMED, "the capture has not kept the whole frame")
        try:
            packet = parse_packet(frame.octets)
            if packet.unsecured is not None:
                return _unsigned(frame, Verdict.UNSECURED, "", packet.unsecured)
            secured = packet.secured or b""
            if secured[:2] == _ENCRYPTED_DATA:
                return _unsigned(frame, Verdict.ENCRYPTED, "")
            if secured[:2] == _UNSECURED_DATA:
                return _unsigned(frame, Verdict.UNSECURED, "the secured packet contains unsecured data")
            return self._signed(frame, scan_signed_data(secured))
        except GeoNetworkingError as error:
            return _unsigned(frame, Verdict.MALFORMED, str(error))
        except MalformedDataError as error:
            return _unsigned(frame, Verdict.MALFORMED, cause(error))

    def _signed(self, frame: _Frame, data: SignedData) -> PacketRow:
        signer = data.digest
        if signer is None and data.certificates:
            signer = self._certificates.id_of(data.certificates[0])
        judged = None if signer is None else self._certificates.find(signer)
        faults = list(profile_faults(data))
        inner = btp = None
        try:
            inner = parse_unsecured(data.payload or b"")
            btp = _btp(inner)
        except GeoNetworkingError as error:
            faults.append(str(error))
        if not self._judging:
            checks = Checks()
        elif judged is None:
            reason = "the signer's certificate is not in the capture" if data.digest else "the signer cannot be read"
            checks = Checks(profile=_profile(faults), reasons=(reason, *faults))
        else:
            fault = _signature_fault(data, judged)
            faults += _permission_faults(data.header, judged, inner)
            if not fault:
                faults += _content_faults(data.header.psid, judged.certificate, btp)
            checks = self._checks(frame.captured.time_ns, data.header, judged, fault, faults)
        message = ITS_AIDS.get(data.header.psid) or f"ITS-AID {data.header.psid}"
        return PacketRow(
            frame.number,
            frame.captured.time_ns,
            len(frame.octets),
            message,
            _station_id(btp),
            None if inner is None else self._same(inner.sender.address),
            signer or b"",
            "" if judged is None else judged.root,
            self._same(checks),
            checks.verdict if self._judging else Verdict.NOT_JUDGED,
        )

    def _checks(
        self, time_ns: int, header: Header, judged: JudgedCertificate, signature_fault: str, faults: list[str]
    ) -> Checks:
        time, late = self._time(time_ns, header, judged)
        reasons = [signature_fault] if signature_fault else []
        if judged.state is not ChainState.COMPLETE:
            reasons.append(judged.reason)
        return Checks(
            SignatureState.INVALID if signature_fault else SignatureState.VALID,
            judged.state,
            _profile(faults),
            time,
            (*reasons, *late, *faults),
        )

    def _time(self, time_ns: int, header: Header, judged: JudgedCertificate) -> tuple[TimeState, list[str]]:
        """Judge message and certificates by the capture's time, or the time of generation where that is unknown."""
        generated_us, tolerance_us = header.generation_time, self._tolerance_us
        if not time_ns and generated_us is None:
            return TimeState.NOT_CHECKED, []
        now_us = its_us(time_ns) if time_ns else generated_us or 0
        earliest_us, latest_us = now_us - tolerance_us, now_us + tolerance_us
        late: list[str] = []
        if latest_us < judged.validity.start_s * 1_000_000 or earliest_us >= judged.validity.end_s * 1_000_000:
            late += judged.validity_faults(earliest_us, latest_us)
        if generated_us is not None:
            window, validity = self._settings.window(header.psid), judged.certificate.validity
            if generated_us > latest_us + window.future_us:
                late.append("generated after it was captured")
            elif generated_us < earliest_us - window.past_us:
                late.append("generated too long before it was captured")
            if not late and not validity.start_s * 1_000_000 <= generated_us < validity.end_s * 1_000_000:
                late.append("generated outside the ticket's validity")
        if header.expiry_time is not None and earliest_us >= header.expiry_time:
            late.append("the message had expired")
        return (TimeState.NOT_VALID if late else TimeState.VALID), late


def _unsigned(frame: _Frame, verdict: Verdict, reason: str, packet: UnsecuredPacket | None = None) -> PacketRow:
    """The row of a packet without signature."""
    btp = None if packet is None else _btp(packet)
    message = "" if packet is None else packet.kind.value
    if btp is not None:
        message = _PORTS.get(btp.destination_port) or f"port {btp.destination_port}"
    return PacketRow(
        frame.number,
        frame.captured.time_ns,
        len(frame.octets),
        message,
        _station_id(btp),
        None if packet is None else packet.sender.address,
        b"",
        "",
        Checks(reasons=(reason,) if reason else ()),
        verdict,
    )


def _btp(packet: UnsecuredPacket) -> BtpPacket | None:
    try:
        return None if packet.kind is Kind.BEACON else parse_btp(packet.next_header, packet.payload)
    except BtpError:
        return None


def _station_id(btp: BtpPacket | None) -> int | None:
    """The station ID of the ITS PDU header (TS 102 894-2): protocolVersion, messageID, stationID in 4 octets."""
    if btp is None or btp.destination_port not in _PORTS or len(btp.payload) < 6:
        return None
    return int.from_bytes(btp.payload[2:6], "big")


def _profile(faults: Sequence[str]) -> ProfileState:
    return ProfileState.BROKEN if faults else ProfileState.KEPT


def _signature_fault(data: SignedData, judged: JudgedCertificate) -> str:
    """Why the signature is not valid; empty if it is."""
    certificate, curve = judged.certificate, judged.certificate.verification_key.curve
    if judged.verify is None:
        return judged.reason
    if data.signature.curve is not curve or data.hash_name != curve.hash_name:
        return "the signature's curve or hash is not that of the signer's key"
    if not judged.verify(*integers(data.signature), signature_digest(curve.hash_name, data.tbs, certificate.canonical)):
        return "the signature does not verify with the signer's key"
    return ""


def _permission_faults(header: Header, judged: JudgedCertificate, packet: UnsecuredPacket | None) -> Iterator[str]:
    """What the ticket does not permit: ITS-AID, and the place of the event or the station."""
    if not any(permission.psid == header.psid for permission in judged.certificate.permissions):
        yield f"the ticket has no permission for ITS-AID {header.psid}"
    region = effective_region(judged.chain or (judged.certificate,))
    if packet is not None and region is not None:
        place = header.location[:2] if header.location else (packet.sender.latitude, packet.sender.longitude)
        if contains(region, place) is False:
            yield "generated outside the ticket's region"


def _content_faults(psid: int, ticket: Certificate, btp: BtpPacket | None) -> Iterator[str]:
    """What a CAM or DENM contains although the ticket's SSP does not permit it."""
    permission = next((one for one in ticket.permissions if one.psid == psid), None)
    if psid not in _MESSAGE_IDS or permission is None:
        return
    octets = b"" if btp is None else btp.payload
    if octets[1:2] != bytes((_MESSAGE_IDS[psid],)):
        yield f"the message is not a {ITS_AIDS[psid]}, as its ITS-AID says"
    elif psid != CAM_PSID or _needs_permission(octets):
        try:
            message = cam.decode(octets) if psid == CAM_PSID else denm.decode(octets)
        except MessageError:
            yield f"the {ITS_AIDS[psid]} cannot be decoded"
        else:
            yield from (f"the ticket's SSP does not permit {content}" for content in ssp_faults(permission, message))


def _needs_permission(octets: bytes) -> bool:
    """Whether a CAM may contain what needs a permission, without decoding it.

    In UPER, the flags are at fixed places behind the header (6 octets) and generationDeltaTime (2): in octet 8 those of
    an extension and the special vehicle container, in octets 24 and 25 those of another kind of station than a vehicle
    and, as the last of seven, of the toll zone (EN 302 637-2 and TS 103 900, annex A).
    """
    return len(octets) < 26 or bool(octets[8] & 0xA0 or octets[24] & 0x01 or octets[25] & 0x81)
