"""Each fault of a packet leads to its verdict, and leaves the other checks as they are."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from labconsole.cli.main import main
from labconsole.errors import UserError
from labconsole_v2x.inspection.capture_certificates import CaptureCertificates, read_certificate
from labconsole_v2x.inspection.inspect_operation import InspectCapture
from labconsole_v2x.inspection.inspection_report import MOST_ROWS, report, report_data, time_text, write_packets_csv
from labconsole_v2x.inspection.inspector import inspect_capture
from labconsole_v2x.inspection.verdicts import Inspection, PacketRow
from labconsole_v2x.messages.geonetworking import encode_basic_header, parse_packet
from labconsole_v2x.messages.its_time import unix_ns
from labconsole_v2x.security.issuing import TICKET_PERMISSIONS, LabPki, issue
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.scanning import scan_signed_data
from labconsole_v2x.security.structures import (
    CAM_PSID,
    GN_MANAGEMENT_PSID,
    Circle,
    Curve,
    Header,
    IssuePermission,
    Permission,
    Validity,
)
from labconsole_v2x.stations.capture import CaptureError, capture_header, ethernet_frame, packet_block
from tests.helpers.mutations import mutations
from tests.helpers.vectors import recorded
from tests.labconsole_v2x.inspection.road_capture import (
    DAY_S,
    LATITUDE,
    LONGITUDE,
    NOW_S,
    NOW_US,
    TIME_NS,
    Vehicle,
    lab,
    write_capture,
)
from tests.labconsole_v2x.messages.random_messages import random_cam


@pytest.fixture(scope="module")
def vehicle(pki: LabPki) -> Vehicle:
    return Vehicle.of(pki, 42)


def judged(path: Path, pki: LabPki | None = None, *, with_aa: bool = True) -> Inspection:
    """The inspection with the root of `pki` trusted, and its AA known."""
    certificates = CaptureCertificates([pki.root] if pki else [])
    if pki and with_aa:
        certificates.add(pki.aa)
    return inspect_capture(path, certificates)


def only(path: Path, pki: LabPki, *packets: bytes) -> PacketRow:
    """The last row of a capture of these packets."""
    return judged(write_capture(path, *packets), pki).rows[-1]


def findings(row: PacketRow) -> tuple[str, ...]:
    """The checks of a row: signature, chain, profile, time, verdict."""
    checks = row.checks
    return tuple(map(str, (checks.signature, checks.chain, checks.profile, checks.time, row.verdict)))


def signed_payload(packet: bytes) -> bytes:
    """What is signed in a packet: common header, extended header and payload."""
    secured = parse_packet(packet).secured
    assert secured is not None
    payload = scan_signed_data(secured).payload
    assert payload is not None
    return payload


def test_packets_before_the_first_certificate_are_judged_with_it(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    asked = Header(CAM_PSID, NOW_US, requested_certificate=pki.aa.octets)
    packets = [vehicle.signed_cam(), vehicle.signed_cam(certificate=True), vehicle.signed_cam(header=asked)]
    inspection = judged(write_capture(tmp_path / "road.pcapng", *packets), pki, with_aa=False)
    assert [findings(row) for row in inspection.rows] == [("valid", "complete", "kept", "valid", "valid")] * 3
    first = inspection.rows[0]
    assert (first.number, first.message, first.station_id, first.reason) == (1, "CAM", 42, "")
    assert first.signer == vehicle.ticket.hashed_id8 and first.root == "Lab root CA"
    assert first.address is not None and first.address.mac == b"\2\0\0\0\0\x2a"
    assert inspection.certificates == 2 and inspection.by_verdict() == {"valid": 3}


def test_without_root_or_authority_chains_are_incomplete(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    path = write_capture(tmp_path / "road.pcapng", vehicle.signed_cam(certificate=True))
    (row,) = judged(path).rows
    assert findings(row) == ("valid", "incomplete", "kept", "valid", "chain incomplete")
    assert row.reason == f"issuer {pki.aa.hashed_id8.hex()} is not known"
    certificates = CaptureCertificates([lab().root])
    certificates.add(pki.aa)
    certificates.add(pki.root)
    (row,) = inspect_capture(path, certificates).rows
    assert (row.root, row.reason) == ("Lab root CA", "root Lab root CA is not trusted")


def test_a_wrong_signature_is_invalid_and_the_rest_is_judged(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    packet = vehicle.signed_cam(certificate=True)
    spoiled = packet[:-1] + bytes((packet[-1] ^ 1,))
    row = only(tmp_path / "road.pcapng", pki, spoiled)
    assert findings(row) == ("invalid", "complete", "kept", "valid", "signature invalid")
    assert row.reason == "the signature does not verify with the signer's key"


def test_an_unknown_signer_is_not_checked(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    row = only(tmp_path / "road.pcapng", pki, vehicle.signed_cam())
    assert findings(row) == ("not checked", "not checked", "kept", "not checked", "signer unknown")
    assert (row.signer, row.station_id) == (vehicle.ticket.hashed_id8, 42)
    assert row.reason == "the signer's certificate is not in the capture"


def test_an_expired_ticket_is_not_valid_at_the_time_of_the_capture(tmp_path: Path, pki: LabPki) -> None:
    key = SoftwareKey.generate()
    for start_s, reason in (
        (NOW_S - 2 * DAY_S, "the ticket had expired"),
        (NOW_S + 60, "the ticket was not yet valid"),
    ):
        vehicle = Vehicle(7, pki.ticket(key.public_key, start_s, duration_s=DAY_S), key)
        row = only(tmp_path / "road.pcapng", pki, vehicle.signed_cam(certificate=True))
        assert findings(row) == ("valid", "complete", "kept", "not valid", "not valid at the capture's time")
        assert row.reason == reason


@pytest.mark.parametrize(
    ("offset_us", "reason"),
    [
        (0, ""),
        (-1_990_000, ""),
        (190_000, ""),
        (-2_010_000, "generated too long before it was captured"),
        (210_000, "generated after it was captured"),
    ],
)
def test_generation_times_are_compared_with_the_time_of_the_capture(
    tmp_path: Path, pki: LabPki, vehicle: Vehicle, offset_us: int, reason: str
) -> None:
    packet = vehicle.signed_cam(header=Header(CAM_PSID, NOW_US + offset_us), certificate=True)
    path = write_capture(tmp_path / "road.pcapng", packet)
    assert judged(path, pki).rows[0].reason == reason
    certificates = CaptureCertificates([pki.root])
    certificates.add(pki.aa)
    (row,) = inspect_capture(path, certificates, clock_tolerance_us=20_000).rows
    assert row.reason == ""


def test_another_pki_is_an_unknown_issuer(tmp_path: Path, pki: LabPki) -> None:
    other = lab()
    row = only(tmp_path / "road.pcapng", pki, Vehicle.of(other, 9).signed_cam(certificate=True))
    assert findings(row) == ("valid", "incomplete", "kept", "valid", "chain incomplete")
    assert row.reason == f"issuer {other.aa.hashed_id8.hex()} is not known"


def test_a_ticket_that_its_authority_did_not_sign_has_an_invalid_chain(tmp_path: Path, pki: LabPki) -> None:
    key = SoftwareKey.generate()
    validity = Validity(NOW_S - 60, NOW_S + 60)
    forged = issue(key, key.public_key, validity, issuer=pki.aa, permissions=TICKET_PERMISSIONS)
    row = only(tmp_path / "road.pcapng", pki, Vehicle(9, forged, key).signed_cam(certificate=True))
    assert findings(row) == ("valid", "invalid", "kept", "valid", "chain invalid")
    assert row.reason.startswith("signature invalid") and row.root == ""


def test_a_ticket_with_more_permissions_than_its_authority_has_an_invalid_chain(tmp_path: Path, pki: LabPki) -> None:
    wide = Vehicle.of(pki, 9, permissions=(*TICKET_PERMISSIONS, Permission(GN_MANAGEMENT_PSID)))
    row = only(tmp_path / "road.pcapng", pki, wide.signed_cam(certificate=True))
    assert findings(row) == ("valid", "invalid", "kept", "valid", "chain invalid")
    assert "141" in row.reason


def test_a_cam_with_a_broken_profile(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    header = Header(CAM_PSID, NOW_US, location=(LATITUDE, LONGITUDE, 0))
    row = only(tmp_path / "road.pcapng", pki, vehicle.signed_cam(header=header, certificate=True))
    assert findings(row) == ("valid", "complete", "broken", "valid", "profile broken")
    assert row.reason == "generationLocation is present"


def test_a_cam_that_its_ticket_does_not_permit(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    """Special vehicles, toll zones and zones of roadside units need a bit of the SSP (EN 302 637-2, 6.2.2.2)."""
    random = Random(5)
    kinds = ("vehicle", "special vehicle", "toll zone", "roadside unit") * 25
    contents = [random_cam(random, kind)._replace(station_type=15 if kind == "roadside unit" else 5) for kind in kinds]
    packets = [vehicle.signed_cam(content) for content in contents]
    path = write_capture(tmp_path / "road.pcapng", vehicle.signed_cam(certificate=True), *packets)
    rows = judged(path, pki).rows[1:]
    expected = [
        "the ticket's SSP does not permit rescueContainer"
        if content.special
        else "the ticket's SSP does not permit cenDsrcTollingZone"
        if content.zones or (content.motion and content.motion.toll_zone)
        else ""
        for content in contents
    ]
    assert [row.reason for row in rows] == expected


def test_a_ticket_without_permission_for_the_message(tmp_path: Path, pki: LabPki) -> None:
    denm_only = Vehicle.of(pki, 9, permissions=TICKET_PERMISSIONS[1:])
    row = only(tmp_path / "road.pcapng", pki, denm_only.signed_cam(certificate=True))
    assert findings(row) == ("valid", "complete", "broken", "valid", "profile broken")
    assert row.reason == "the ticket has no permission for ITS-AID 36"


def test_a_position_outside_the_region_of_the_ticket(tmp_path: Path, pki: LabPki) -> None:
    for north, reason in ((0, ""), (200_000, "generated outside the ticket's region")):
        local = Vehicle.of(pki, 9, region=Circle(LATITUDE + north, LONGITUDE, 1000))
        assert only(tmp_path / "road.pcapng", pki, local.signed_cam(certificate=True)).reason == reason


def test_a_denm_is_judged_with_its_cause(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    row = only(tmp_path / "road.pcapng", pki, vehicle.signed_denm())
    assert findings(row) == ("valid", "complete", "kept", "valid", "valid")
    assert (row.message, row.station_id) == ("DENM", 42)
    ssp = Permission(TICKET_PERMISSIONS[1].psid, bytes.fromhex("01000000"))
    silent = Vehicle.of(pki, 9, permissions=(ssp,))
    row = only(tmp_path / "road.pcapng", pki, silent.signed_denm(97))
    assert row.verdict == "profile broken" and "97" in row.reason


def test_a_denm_signed_as_cam_is_found(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    payload = signed_payload(vehicle.signed_denm())
    row = only(tmp_path / "road.pcapng", pki, vehicle.secured(payload, Header(CAM_PSID, NOW_US), certificate=True))
    assert findings(row) == ("valid", "complete", "broken", "valid", "profile broken")
    assert row.reason == "the message is not a CAM, as its ITS-AID says"


def test_other_its_aids_are_named_and_verified(tmp_path: Path, pki: LabPki) -> None:
    permissions = (Permission(GN_MANAGEMENT_PSID), Permission(139), Permission(5000))
    station = Vehicle.of(pki, 9, permissions=permissions)
    body = station.signed_cam()
    packets = [
        station.secured(signed_payload(body), Header(psid, NOW_US), certificate=True)
        for psid in (GN_MANAGEMENT_PSID, 139, 5000)
    ]
    rows = judged(write_capture(tmp_path / "road.pcapng", *packets), pki).rows
    assert [row.message for row in rows] == ["beacon", "IVIM", "ITS-AID 5000"]
    assert {str(row.checks.signature) for row in rows} == {"valid"}


def test_curves_are_mixed_along_a_chain(tmp_path: Path) -> None:
    mixed = LabPki.create(NOW_S - DAY_S, root_curve=Curve.BRAINPOOL_P384R1, authority_curve=Curve.P256)
    key = SoftwareKey.generate(Curve.BRAINPOOL_P256R1, compressed_r=True)
    vehicle = Vehicle(3, mixed.ticket(key.public_key, NOW_S - 60), key)
    row = only(tmp_path / "road.pcapng", mixed, vehicle.signed_cam(certificate=True))
    assert findings(row) == ("valid", "complete", "kept", "valid", "valid")


def test_packets_without_signature_are_listed(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    basic = encode_basic_header(60_000, 1, secured=True)
    packets = [vehicle.unsigned_cam(), basic + b"\x03\x82\x01\x02", basic + b"\x03\x80\x02\0\0", b"garbage", basic]
    rows = judged(write_capture(tmp_path / "road.pcapng", *packets), pki).rows
    verdicts = ["not secured", "encrypted", "not secured", "malformed", "malformed"]
    assert [findings(row) for row in rows] == [("not checked",) * 4 + (verdict,) for verdict in verdicts]
    assert (rows[0].message, rows[0].station_id, rows[0].reason) == ("CAM", 42, "")
    assert all(row.reason for row in rows[2:])


def test_frames_that_are_cut_or_of_other_protocols(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    path, frame = tmp_path / "road.pcapng", ethernet_frame(vehicle.signed_cam(certificate=True), b"\2\0\0\0\0\1")
    block = bytearray(packet_block(TIME_NS, frame[:100]))
    block[24:28] = len(frame).to_bytes(4, "little")
    other = packet_block(TIME_NS, bytes(12) + b"\x08\x00" + bytes(60))
    path.write_bytes(capture_header(["road"]) + other + block + other + packet_block(TIME_NS, frame))
    inspection = judged(path, pki)
    assert [(row.number, str(row.verdict)) for row in inspection.rows] == [(2, "malformed"), (4, "valid")]
    assert inspection.other_frames == 2
    assert inspection.rows[0].reason == "the capture has not kept the whole frame"


def test_a_broken_capture_is_judged_up_to_the_fault(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    path = write_capture(tmp_path / "road.pcapng", *[vehicle.signed_cam(certificate=True)] * 3)
    path.write_bytes(path.read_bytes()[:-7])
    inspection = judged(path, pki)
    assert len(inspection.rows) == 2
    assert "road.pcapng is broken after packet 2" in inspection.fault
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(CaptureError, match="broken before its first packet"):
        judged(path, pki)


def test_cancelling_keeps_the_packets_so_far(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    path = write_capture(tmp_path / "road.pcapng", *[vehicle.signed_cam(certificate=True)] * 1100)
    answers = iter([False] * 6 + [True] * 100)
    reports: list[tuple[int, int]] = []
    inspection = inspect_capture(
        path,
        CaptureCertificates([pki.root]),
        stopped=lambda: next(answers),
        progress=lambda done, total: reports.append((done, total)),
    )
    assert len(inspection.rows) == 768 and "Cancelled after frame 768" in inspection.fault
    assert reports[-1] == (768, 1100)
    assert [row.number for row in inspection.rows] == list(range(1, 769))


def test_mutated_packets_give_a_row_each(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    packets = [vehicle.signed_cam(certificate=True), vehicle.signed_denm(), vehicle.unsigned_cam()]
    mutated = [one for number, packet in enumerate(packets) for one in mutations(packet, 700, number)]
    inspection = judged(write_capture(tmp_path / "road.pcapng", *mutated), pki)
    assert len(inspection.rows) + inspection.other_frames == len(mutated)
    assert {"malformed", "signature invalid", "not secured"} <= set(inspection.by_verdict())


def test_long_chains_are_invalid() -> None:
    certificates, issuer, key = CaptureCertificates(), None, SoftwareKey.generate()
    unlimited = IssuePermission(None, chain_range=-1)
    chain = []
    for _ in range(2000):
        validity = Validity(NOW_S - DAY_S, NOW_S + DAY_S)
        issuer = issue(key, key.public_key, validity, issuer=issuer, issue_permissions=[unlimited])
        certificates.add(issuer)
        chain.append(issuer)
    found = [certificates.find(chain[number].hashed_id8) for number in (1999, 7, 8)]
    assert [one and (str(one.state), len(one.chain)) for one in found] == [
        ("invalid", 0),
        ("incomplete", 8),
        ("invalid", 0),
    ]
    assert found[2] is not None and found[2].reason == "the chain has more than 8 certificates"


def test_packets_of_a_production_car_are_valid_with_an_incomplete_chain(tmp_path: Path) -> None:
    packets = [recorded("gn_digest"), recorded("gn_fullcert")]
    secured = parse_packet(packets[0]).secured
    assert secured is not None
    generated_us = scan_signed_data(secured).header.generation_time
    assert generated_us is not None
    path = write_capture(tmp_path / "golf.pcapng", *packets, time_ns=unix_ns(generated_us) + 1_000_000_000)
    certificates = CaptureCertificates()
    rows = inspect_capture(path, certificates, clock_tolerance_us=2_000_000).rows
    assert [findings(row) for row in rows] == [("valid", "incomplete", "kept", "valid", "chain incomplete")] * 2
    assert [row.station_id for row in rows] == [1289795728] * 2
    assert rows[0].reason == "issuer 56dfd6d627a362dc is not known"


@pytest.fixture
def road(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> Iterator[tuple[Path, list[str | Path]]]:
    """A capture of four packets, and the options with the certificates of its PKI."""
    other = Vehicle.of(pki, 7)
    packets = [vehicle.signed_cam(certificate=True), vehicle.unsigned_cam(), other.signed_denm(), other.signed_cam()]
    packets[3] = packets[3][:-1] + bytes((packets[3][-1] ^ 1,))
    path = write_capture(tmp_path / "road.pcapng", *packets)
    (tmp_path / "root.oer").write_bytes(pki.root.octets)
    (tmp_path / "aa.oer").write_bytes(pki.aa.octets)
    yield path, ["--root", tmp_path / "root.oer", "--issuer", tmp_path / "aa.oer"]


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command without a process of its own, whose start takes most of the time."""
    monkeypatch.setattr(InspectCapture, "isolated", False)


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    """Exit code and output of `labconsole v2x inspect`."""
    code = main(["v2x", "inspect", *map(str, words)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.mark.usefixtures("in_this_process")
def test_the_command_prints_a_summary(
    own_home: Path, road: tuple[Path, list[str | Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, options = road
    code, out, err = run(capsys, path, *options)
    assert code == 0 and "Warning" not in err
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0].startswith("road.pcapng: 4 GeoNetworking packets of 2 stations, 0 other frames, 3 certificates")
    assert "valid 2 50.0%" in lines and "signature invalid 1 25.0%" in lines and "not secured 1 25.0%" in lines
    assert any("02:00:00:00:00:2a 42 2 CAM 2 1 50.0%" in line for line in lines)


def test_the_command_prints_json_and_writes_csv(
    own_home: Path, road: tuple[Path, list[str | Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, options = road
    target = path.with_name("packets.csv")
    code, out, _ = run(capsys, path, *options, "--json", "--csv", target)
    data: dict[str, Any] = json.loads(out)
    assert code == 0 and data["complete"] and data["fault"] is None and data["roots"] == ["Lab root CA"]
    assert data["verdicts"] == {"valid": 2, "signature invalid": 1, "not secured": 1}
    (finding,) = data["findings"]
    assert (finding["verdict"], finding["packets"], finding["first_packet"]) == ("signature invalid", 1, 4)
    assert [(one["address"], one["station_ids"], one["valid_signatures"]) for one in data["stations"]] == [
        ("02:00:00:00:00:2a", [42], 1),
        ("02:00:00:00:00:07", [7], 1),
    ]
    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["valid", "not secured", "valid", "signature invalid"]
    assert rows[0]["time"] == "2023-11-14T22:13:20.000000000Z"
    assert rows[2]["message"] == "DENM" and rows[2]["chain up to"] == "Lab root CA"
    assert rows[3]["reason"] == "the signature does not verify with the signer's key"


@pytest.mark.usefixtures("in_this_process")
def test_the_command_warns_where_no_root_is_given_and_of_broken_files(
    own_home: Path, road: tuple[Path, list[str | Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = road
    code, out, err = run(capsys, path)
    assert code == 0 and "every chain is incomplete" in err and "chain incomplete" in out
    path.write_bytes(path.read_bytes()[:-5])
    code, out, err = run(capsys, path)
    assert code == 1 and "broken after packet 3" in " ".join(err.split()) and "3 GeoNetworking packets" in out


@pytest.mark.usefixtures("in_this_process")
def test_the_command_refuses_files_that_are_not_what_they_should_be(
    own_home: Path, road: tuple[Path, list[str | Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, options = road
    for words, sentence in (
        ((path, "--root", path), "road.pcapng is not a certificate"),
        ((path, "--root", path.with_name("missing.oer")), "missing.oer cannot be read"),
        ((path, "--root", options[3]), "Lab AA cannot be a trusted root"),
        ((options[1],), "root.oer is not a capture file"),
        ((path.with_name("missing.pcap"),), "missing.pcap cannot be read"),
    ):
        code, out, err = run(capsys, *words)
        assert (code, out) == (1, "") and sentence in " ".join(err.split()), err


def test_texts_of_certificates_cannot_inject_anything(tmp_path: Path, vehicle: Vehicle) -> None:
    key = SoftwareKey.generate()
    kinds = LabPki.create(NOW_S - DAY_S).root.issue_permissions
    validity = Validity(NOW_S - DAY_S, NOW_S + DAY_S)
    root = issue(key, key.public_key, validity, name="=1+1\x1b[31m", issue_permissions=kinds)
    path = write_capture(tmp_path / "road.pcapng", vehicle.secured(b"", Header(CAM_PSID, NOW_US)))
    inspection = inspect_capture(path, CaptureCertificates([root]))
    row = inspection.rows[0]._replace(root=inspection.roots[0])
    inspection.rows = [row]
    text = write_packets_csv(inspection, tmp_path / "rows.csv").read_text()
    assert ",'=1+1<U+001B>[31m," in text


def test_long_tables_are_cut_for_a_person_and_whole_in_json(tmp_path: Path, pki: LabPki, vehicle: Vehicle) -> None:
    stations = [replace(vehicle, number=number) for number in range(MOST_ROWS + 3)]
    path = write_capture(tmp_path / "road.pcapng", *[one.signed_cam(certificate=True) for one in stations])
    inspection = judged(path, pki)
    assert "3 more stations: the JSON output lists them." in report(inspection)
    assert len(report_data(inspection)["stations"]) == MOST_ROWS + 3


def test_times_that_no_calendar_has_are_empty() -> None:
    assert time_text(0) == "" and time_text(10**30) == ""
    assert time_text(TIME_NS + 1) == "2023-11-14T22:13:20.000000001Z"


def test_a_certificate_file_must_exist_and_be_whole(tmp_path: Path, pki: LabPki) -> None:
    path = tmp_path / "root.oer"
    path.write_bytes(pki.root.octets)
    assert read_certificate(path) == pki.root
    path.write_bytes(pki.root.octets[:-1])
    with pytest.raises(UserError, match=r"root\.oer is not a certificate \("):
        read_certificate(path)
