"""Traffic information for a centre: readable by it alone, verified, bounded, and each refusal by its reason."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from labconsole_v2x.messages import cam
from labconsole_v2x.messages.btp import encode_btp_b
from labconsole_v2x.messages.geonetworking import encode_shb, parse_packet
from labconsole_v2x.security.encoding import EncodingError
from labconsole_v2x.security.encryption import (
    DecryptionError,
    decrypt_with_certificate,
    encrypt_to_certificate,
    encrypt_with_shared_key,
)
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.signing import PacketSigner
from labconsole_v2x.security.structures import CAM_PSID, DENM_PSID, PRIVATE_PSID, Header
from labconsole_v2x.security.verification import Reason
from labconsole_v2x.stations.traffic_centre import (
    CONFIRMATION_PORT,
    BadConfirmationError,
    ReportRefusal,
    SentReport,
    read_confirmation,
)
from tests.labconsole_v2x.security.lab_certificates import (
    LATITUDE,
    LONGITUDE,
    NOW_US,
    VECTOR,
    Holder,
    cam_payload,
    root_authority,
    signed,
    spoiled,
    ticket,
    ticket_authority,
)
from tests.labconsole_v2x.stations.traffic_lab import MOVEMENT, TrafficLab

Y_SIGN = 14
"""The octet with the sign of the y of V, after the recipient's HashedId8 and the curve."""


@pytest.fixture
def lab() -> TrafficLab:
    return TrafficLab()


def secured_of(frame: bytes) -> bytes:
    packet = parse_packet(frame[14:])
    assert packet.secured is not None
    return packet.secured


def opened(lab: TrafficLab, report: SentReport) -> bytes:
    return decrypt_with_certificate(report.octets, lab.identity.ticket, lab.identity.encryption_key)


def test_centre_reads_and_confirms_a_report(lab: TrafficLab) -> None:
    report = lab.report()
    verdict, confirmation = lab.centre.receive(report.octets)
    assert verdict is Reason.ACCEPTED
    assert lab.read(confirmation, report) == "accepted"
    (information,) = lab.centre.reports
    assert lab.station.ticket is not None
    assert (information.sender, information.generated_us) == (lab.station.ticket.hashed_id8, NOW_US)
    place = (information.message.position.latitude, information.message.position.longitude)
    assert place == (MOVEMENT.latitude, MOVEMENT.longitude)
    assert cam.encode(information.message) in opened(lab, report)


def test_report_and_confirmation_on_the_radio_are_secured_packets_with_the_same_octets(lab: TrafficLab) -> None:
    """F-ENC-01: a road-side unit takes the octets from one frame, and sends the confirmation in another one."""
    report = lab.report()
    assert secured_of(report.sent.frame) == report.octets
    assert report.sent.frame[6:12] == lab.station.identity.mac
    decision = lab.centre.receive(secured_of(report.sent.frame))
    assert decision.confirmation is not None
    frame = lab.centre.confirmation_frame(decision.confirmation)
    assert lab.read(secured_of(frame), report) == "accepted"
    assert lab.station.create(MOVEMENT).frame[18:20] == b"\x03\x82", "a sender of reports sends no CAM in clear"


def test_eavesdropper_finds_nothing_of_the_report_in_clear(lab: TrafficLab) -> None:
    report = lab.report()
    confirmation = lab.centre.receive(report.octets).confirmation or b""
    data, ticket_of_station = scan_signed_data(opened(lab, report)), lab.station.ticket
    assert data.payload is not None and ticket_of_station is not None
    coordinates = MOVEMENT.latitude.to_bytes(4, "big", signed=True)
    assert coordinates in data.payload, "what must be hidden is in the plaintext"
    for secret in (coordinates, data.payload[-20:], ticket_of_station.hashed_id8, report.aes_key):
        assert secret not in report.octets
        assert secret not in confirmation
    for foreign in (SoftwareKey.generate(), lab.identity.key):
        assert isinstance(foreign, SoftwareKey)
        with pytest.raises(DecryptionError):
            decrypt_with_certificate(report.octets, lab.identity.ticket, foreign)
    assert lab.report().octets[20:] != report.octets[20:]


def sealed(lab: TrafficLab, octets: bytes) -> bytes:
    """Any octets, encrypted to the centre."""
    return encrypt_to_certificate(octets, lab.identity.ticket)


def to_another_centre(lab: TrafficLab) -> bytes:
    return lab.sender(lab.centre_identity().ticket).report(MOVEMENT).octets


def under_another_key(lab: TrafficLab) -> bytes:
    """The recipient's name of the centre, in data that is encrypted to another one."""
    other = lab.centre_identity().ticket
    octets = lab.sender(other).report(MOVEMENT).octets
    return octets.replace(other.hashed_id8, lab.identity.ticket.hashed_id8)


def of_another_root(lab: TrafficLab) -> bytes:
    foreign = ticket(ticket_authority(root_authority()))
    return sealed(lab, signed(foreign, Header(CAM_PSID, NOW_US)))


def with_spoiled_signature(lab: TrafficLab) -> bytes:
    return sealed(lab, spoiled(opened(lab, lab.report())))


def with_another_message(lab: TrafficLab) -> bytes:
    key = SoftwareKey.generate()
    denm = signed(Holder(lab.ticket(key), key), Header(DENM_PSID, NOW_US, location=(LATITUDE, LONGITUDE, 0)))
    return sealed(lab, denm)


def twice(lab: TrafficLab) -> bytes:
    """The same signed data, encrypted again: other octets."""
    report = lab.report()
    assert lab.centre.receive(report.octets).verdict is Reason.ACCEPTED
    return sealed(lab, opened(lab, report))


def too_late(lab: TrafficLab) -> bytes:
    octets = lab.report().octets
    lab.now_us += 2_000_001
    return octets


@pytest.mark.parametrize(
    ("attack", "verdict", "confirmed"),
    [
        (lambda lab: opened(lab, lab.report()), ReportRefusal.NOT_ENCRYPTED, False),
        (lambda lab: b"", ReportRefusal.NOT_ENCRYPTED, False),
        (to_another_centre, ReportRefusal.OTHER_RECIPIENT, False),
        (lambda lab: encrypt_with_shared_key(b"x", bytes(16)), ReportRefusal.OTHER_RECIPIENT, False),
        (under_another_key, ReportRefusal.NOT_DECRYPTED, False),
        (lambda lab: spoiled(lab.report().octets), ReportRefusal.NOT_DECRYPTED, False),
        (lambda lab: sealed(lab, b"\x03\x80\x01x"), Reason.UNSECURED, True),
        (lambda lab: sealed(lab, cam_payload()), Reason.UNSUPPORTED_VERSION, True),
        (with_spoiled_signature, Reason.SIGNATURE_INVALID, True),
        (of_another_root, Reason.UNKNOWN_ISSUER, True),
        (with_another_message, ReportRefusal.OTHER_MESSAGE, True),
        (twice, Reason.DUPLICATE, True),
        (too_late, Reason.TOO_OLD, True),
    ],
)
def test_reports_are_refused_by_reason(
    lab: TrafficLab, attack: Callable[[TrafficLab], bytes], verdict: Reason | ReportRefusal, *, confirmed: bool
) -> None:
    octets = attack(lab)
    kept = len(lab.centre.reports)
    decision = lab.centre.receive(octets)
    assert decision.verdict is verdict
    assert (decision.confirmation is not None) is confirmed
    assert len(lab.centre.reports) == kept
    assert lab.centre.verdicts[verdict.value] == 1


def test_report_with_any_altered_octet_is_refused(lab: TrafficLab) -> None:
    """All but one octet: the sign of the y of V is not protected by ECIES, and changes nothing that is decrypted."""
    octets = lab.report().octets
    for at in range(len(octets)):
        for bit in (1, 0x80):
            decision = lab.centre.receive(octets[:at] + bytes((octets[at] ^ bit,)) + octets[at + 1 :])
            accepted = (at, bit) == (Y_SIGN, 1)
            assert (decision.verdict is Reason.ACCEPTED) is accepted, at
            assert accepted or isinstance(decision.verdict, ReportRefusal)
    assert lab.centre.receive(octets).verdict is Reason.DUPLICATE


def test_centre_keeps_the_newest_reports_only() -> None:
    lab = TrafficLab(most_kept=5)
    for _ in range(12):
        lab.now_us += 1000
        assert lab.centre.receive(lab.report().octets).verdict is Reason.ACCEPTED
    assert [report.generated_us for report in lab.centre.reports] == [NOW_US + 1000 * number for number in range(8, 13)]
    assert lab.centre.verdicts == {"accepted": 12}


def test_several_threads_report_to_one_centre(lab: TrafficLab, switching_often: None) -> None:
    reports = [lab.report() for _ in range(60)]
    with ThreadPoolExecutor(4) as threads:
        decisions = list(threads.map(lab.centre.receive, [report.octets for report in reports]))
    assert all(
        lab.read(decision.confirmation, each) == "accepted" for decision, each in zip(decisions, reports, strict=True)
    )
    assert lab.centre.verdicts == {"accepted": 60}
    assert len(lab.centre.reports) == 60


def test_centre_without_an_encryption_key_gets_no_report(lab: TrafficLab) -> None:
    assert lab.station.ticket is not None
    with pytest.raises(EncodingError, match="has no encryption key"):
        lab.sender(lab.station.ticket).report(MOVEMENT)


def forged(lab: TrafficLab, report: SentReport, signer: Holder, *, psid: int = PRIVATE_PSID, **changes: bytes) -> bytes:
    """A confirmation by any signer, under the AES key of the report."""
    content = changes.get("report_hash", report.report_hash) + b"accepted"
    payload = encode_shb(VECTOR, encode_btp_b(CONFIRMATION_PORT, content))
    header = Header(psid, lab.now_us)
    octets = PacketSigner(signer.certificate, signer.key).sign(payload, header, include_certificate=True)
    return encrypt_with_shared_key(octets, changes.get("aes_key", report.aes_key))


def test_confirmation_is_that_of_the_centre_for_this_report(lab: TrafficLab) -> None:
    report, other = lab.report(), lab.report()
    identity, foreign = lab.identity, lab.centre_identity()
    assert isinstance(identity.key, SoftwareKey) and isinstance(foreign.key, SoftwareKey)
    centre, impostor = Holder(identity.ticket, identity.key), Holder(foreign.ticket, foreign.key)
    confirmation = lab.centre.receive(report.octets).confirmation
    assert confirmation is not None
    refused = {
        spoiled(confirmation): "not encrypted under the key",
        b"": "not encrypted under the key",
        lab.centre.receive(other.octets).confirmation or b"": "not encrypted under the key",
        forged(lab, report, centre, aes_key=bytes(16)): "not encrypted under the key",
        forged(lab, report, impostor): "not signed by the centre",
        forged(lab, report, Holder(identity.ticket, foreign.key)): "signature invalid",
        forged(lab, report, centre, psid=CAM_PSID): "ITS-AID not among",
        forged(lab, report, centre, report_hash=other.report_hash): "another report",
        encrypt_with_shared_key(b"accepted", report.aes_key): "not accepted",
    }
    for octets, reason in refused.items():
        with pytest.raises(BadConfirmationError, match=reason):
            read_confirmation(octets, report, identity.ticket, lab.receiver)
    assert lab.read(forged(lab, report, centre), report) == "accepted"
    assert lab.read(confirmation, report) == "accepted"
