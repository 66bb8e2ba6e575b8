"""Packets in the window: list, tree and octets of captures, by clicks and keys; 100,000 packets without a pause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from labconsole_ui.theme.theme import Theme
from labconsole_v2x.inspection.capture_certificates import CaptureCertificates
from labconsole_v2x.inspection.inspector import inspect_capture
from labconsole_v2x.inspection.packet_rows import PacketTable
from labconsole_v2x.inspection.verdicts import Checks, PacketRow, SignatureState, Verdict
from labconsole_v2x.messages.geonetworking import Address, encode_basic_header, encode_shb
from labconsole_v2x.panel.packet_view import PacketView
from labconsole_v2x.security.encoding import encode_signed_data, encode_signer, encode_to_be_signed_data
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.structures import CAM_PSID, Header
from labconsole_v2x.stations.capture import (
    ETHERNET,
    CapturedPacket,
    capture_header,
    ethernet_frame,
    packet_block,
    read_capture,
)
from tests.labconsole_ui.slot_watch import again_after_a_long_turn, slots_watched
from tests.labconsole_v2x.inspection.road_capture import NOW_US, TIME_NS, Vehicle, write_capture

LEFT = Qt.MouseButton.LeftButton
CONTROL = Qt.KeyboardModifier.ControlModifier
MANY = 100_000


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory, pki: LabPki) -> Path:
    """A capture of a CAM with certificate, one without signature, a DENM, and a CAM with a spoiled signature."""
    one, two = Vehicle.of(pki, 42), Vehicle.of(pki, 7)
    spoiled = two.signed_cam()
    packets = [one.signed_cam(certificate=True), one.unsigned_cam(), two.signed_denm()]
    packets.append(spoiled[:-1] + bytes((spoiled[-1] ^ 1,)))
    return write_capture(tmp_path_factory.mktemp("road") / "road.pcapng", *packets)


@pytest.fixture
def view(qtbot: QtBot, theme: Theme) -> Iterator[PacketView]:
    view = PacketView(theme)
    qtbot.addWidget(view)
    view.resize(1000, 700)
    with qtbot.waitExposed(view):
        view.show()
    yield view


def judged_rows(road: Path, pki: LabPki) -> list[PacketRow]:
    certificates = CaptureCertificates([pki.root])
    certificates.add(pki.aa)
    return inspect_capture(road, certificates).rows


def shown(view: PacketView, column: int) -> list[str]:
    """The texts of a column of the list."""
    model = view.list.model()
    return [str(model.index(row, column).data()) for row in range(model.rowCount())]


def select(qtbot: QtBot, view: PacketView, row: int) -> None:
    """Click on a packet, and wait until it is shown."""
    before = view.verdict.text()
    place = view.list.visualRect(view.list.model().index(row, 1)).center()
    qtbot.mouseClick(view.list.viewport(), LEFT, pos=place)
    qtbot.waitUntil(lambda: view.verdict.text() != before)


def press(qtbot: QtBot, widget: QWidget, *keys: Qt.Key) -> None:
    for key in keys:
        qtbot.keyClick(widget, key)


def lines(view: PacketView) -> list[str]:
    """The tree as it is copied."""
    view.tree.copy_tree()
    return QGuiApplication.clipboard().text().splitlines()


def test_first_packet_is_shown_with_tree_and_octets(qtbot: QtBot, view: PacketView, road: Path, pki: LabPki) -> None:
    view.show_packets(list(read_capture(road)), judged_rows(road, pki))
    qtbot.waitUntil(lambda: view.octets.octets != b"")
    assert shown(view, 7) == ["valid", "not secured", "valid", "signature invalid"]
    assert shown(view, 3) == ["CAM", "CAM", "DENM", "CAM"]
    assert view.octets.octets == next(read_capture(road)).octets
    assert "        headerInfo" in lines(view)
    assert view.verdict.text() == (
        "Packet 1: valid. Signature valid, chain complete up to Lab root CA, profile kept, time valid."
    )
    select(qtbot, view, 3)
    assert view.verdict.text().startswith(
        "Packet 4: signature invalid (the signature does not verify with the signer's key). Signature invalid, "
    )


def test_clicked_octet_selects_its_field_and_a_field_its_octets(qtbot: QtBot, view: PacketView, road: Path) -> None:
    view.show_capture(road)
    qtbot.waitUntil(lambda: view.octets.octets != b"")
    octet = next(read_capture(road)).octets
    psid = octet.index(b"\x40\x01\x24") + 2  # headerInfo's preamble, then the length and value of the ITS-AID
    qtbot.mouseClick(view.octets.viewport(), LEFT, pos=view.octets.place_of(psid).center())
    assert view.tree.current is not None and view.tree.current.name == "psid"
    assert view.octets.marked == b"\x24"
    press(qtbot, view.octets, Qt.Key.Key_Right)
    assert view.tree.current.name == "generationTime" and len(view.octets.marked) == 8
    press(qtbot, view.tree, Qt.Key.Key_Up)
    assert view.tree.current.name == "psid" and view.octets.marked == b"\x24"
    qtbot.keyClick(view.octets, Qt.Key.Key_C, CONTROL)
    assert QGuiApplication.clipboard().text() == "24"
    view.tree.setFocus()
    qtbot.keyClick(view.tree, Qt.Key.Key_C, CONTROL)
    assert QGuiApplication.clipboard().text() == "psid: CAM (36)\n"
    outside = QPoint(view.octets.viewport().width() - 2, view.octets.viewport().height() - 2)
    qtbot.mouseClick(view.octets.viewport(), LEFT, pos=outside)
    assert view.tree.current.name == "psid", "a click on no octet changes nothing"


def test_ascii_and_keys_lead_to_octets(qtbot: QtBot, view: PacketView, road: Path) -> None:
    view.show_capture(road)
    qtbot.waitUntil(lambda: view.octets.octets != b"")
    octets = view.octets
    chosen: list[int] = []
    octets.chosen.connect(chosen.append)
    hexadecimal = octets.place_of(16)
    ascii_left = octets.place_of(15).right() + hexadecimal.width()
    qtbot.mouseClick(octets.viewport(), LEFT, pos=QPoint(ascii_left + 4, hexadecimal.center().y()))
    press(qtbot, octets, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Up, Qt.Key.Key_End, Qt.Key.Key_Right)
    last = len(octets.octets) - 1
    assert chosen == [16, 32, 31, 15, last, last]
    assert octets.viewport().rect().contains(octets.place_of(last)), "the octet is scrolled into view"
    press(qtbot, octets, Qt.Key.Key_Home)
    assert chosen[-1] == 0 and view.tree.current is not None and view.tree.current.name == "destination"


def test_same_field_stays_selected_and_parts_stay_as_they_are(
    qtbot: QtBot, view: PacketView, road: Path, pki: LabPki
) -> None:
    view.show_packets(list(read_capture(road)), judged_rows(road, pki))
    qtbot.waitUntil(lambda: view.octets.octets != b"")
    packets = list(read_capture(road))
    psid = packets[0].octets.index(b"\x40\x01\x24") + 2
    qtbot.mouseClick(view.octets.viewport(), LEFT, pos=view.octets.place_of(psid).center())
    select(qtbot, view, 2)
    assert view.tree.current is not None and view.tree.current.value == "DENM (37)"
    assert view.octets.marked == b"\x25"
    press(qtbot, view.tree, Qt.Key.Key_Left, Qt.Key.Key_Left)  # to headerInfo, and collapse it
    header = view.tree.currentIndex()
    assert view.tree.current.name == "headerInfo" and not view.tree.isExpanded(header)
    select(qtbot, view, 3)
    assert view.tree.current.name == "headerInfo" and not view.tree.isExpanded(view.tree.currentIndex())


def test_list_is_sorted_and_filtered_by_clicks_and_keys(
    qtbot: QtBot, view: PacketView, road: Path, pki: LabPki
) -> None:
    view.show_packets(list(read_capture(road)), judged_rows(road, pki))
    qtbot.waitUntil(lambda: view.octets.octets != b"")
    header = view.list.horizontalHeader()

    def click_title(column: int) -> None:
        place = QPoint(header.sectionViewportPosition(column) + 20, header.height() // 2)
        qtbot.mouseClick(header.viewport(), LEFT, pos=place)

    click_title(4)
    sizes = [int(size) for size in shown(view, 4)]
    assert sizes == sorted(sizes) and shown(view, 0)[0] == "2"
    click_title(4)
    assert [int(size) for size in shown(view, 4)] == sizes[::-1]
    click_title(4)
    assert shown(view, 0) == ["1", "2", "3", "4"], "the third click gives the order of the capture"
    qtbot.keyClick(view.list, Qt.Key.Key_F, CONTROL)
    assert view.filter_line.hasFocus()
    qtbot.keyClicks(view.filter_line, '"not secured"')
    qtbot.waitUntil(lambda: view.count.text() == "1 of 4 packets")
    assert shown(view, 0) == ["2"]
    qtbot.waitUntil(lambda: view.verdict.text() == "Packet 2: not secured")
    view.filter_line.clear()
    qtbot.waitUntil(lambda: view.count.text() == "4 packets")
    assert view.list.currentIndex().row() == 1, "the packet stays selected"
    qtbot.keyClicks(view.filter_line, "elephant")
    press(qtbot, view.filter_line, Qt.Key.Key_Return)
    assert view.count.text() == "0 of 4 packets" and view.verdict.text() == "No packet matches the filter."
    assert view.octets.octets == b"" and view.tree.current is None


def test_selected_row_is_copied_with_its_titles(qtbot: QtBot, view: PacketView, road: Path, pki: LabPki) -> None:
    view.show_packets(list(read_capture(road)), judged_rows(road, pki))
    qtbot.waitUntil(lambda: view.octets.octets != b"")
    select(qtbot, view, 2)
    qtbot.keyClick(view.list, Qt.Key.Key_C, CONTROL)
    titles, row = (line.split("\t") for line in QGuiApplication.clipboard().text().splitlines())
    assert titles[0] == "No." and titles[-1] == "Reason"
    assert row[0] == "3" and row[2:4] == ["02:00:00:00:00:07", "DENM"]


def test_packets_without_verdicts_are_listed_without_their_columns(qtbot: QtBot, view: PacketView, road: Path) -> None:
    view.show_packets(list(read_capture(road)))
    qtbot.waitUntil(lambda: view.octets.octets != b"")
    assert view.list.isColumnHidden(6) and view.list.isColumnHidden(7)
    assert not view.verdict.isVisible()
    assert shown(view, 3) == ["CAM", "CAM", "DENM", "CAM"] and len(shown(view, 5)[0]) == 16


def test_what_cannot_be_shown_gives_a_sentence(qtbot: QtBot, view: PacketView, road: Path, tmp_path: Path) -> None:
    assert view.notice.text() == "No packets"
    view.show_capture(tmp_path / "missing.pcap")
    qtbot.waitUntil(lambda: "missing.pcap cannot be read" in view.notice.text())
    view.show_capture(road, tmp_path / "missing.npz")
    qtbot.waitUntil(lambda: "inspect the capture again" in view.notice.text())
    empty = write_capture(tmp_path / "empty.pcapng")
    view.show_capture(empty)
    qtbot.waitUntil(lambda: "no GeoNetworking packets" in view.notice.text())
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(road.read_bytes()[:-5])
    view.show_capture(cut)
    qtbot.waitUntil(lambda: view.count.text() == "3 packets")
    assert view.fault.isVisible() and "cut.pcapng is broken after packet 3" in view.fault.text()
    qtbot.waitUntil(lambda: view.octets.octets != b"")
    view.clear()
    assert view.notice.isVisible() and not view.list.isVisible()


def test_capture_that_has_changed_is_not_shown_as_the_old_one(
    qtbot: QtBot, view: PacketView, road: Path, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.npz"
    other = write_capture(tmp_path / "other.pcapng", *[bytes(60)] * 3, time_ns=TIME_NS + 1)
    PacketTable.of([_row(number) for number in range(3)]).write(rows)
    view.show_capture(other, rows)
    qtbot.waitUntil(lambda: "The capture has changed" in view.verdict.text())
    assert view.octets.octets == b""


def _row(number: int) -> PacketRow:
    verdict = list(Verdict)[1 + number % 10]
    checks = Checks(SignatureState.VALID, reasons=(f"reason {number % 7}",))
    address = Address(bytes((2, 0, 0, 0, number % 5, number % 251)), 5)
    signer = bytes((number % 250,)) * 8
    at_ns = TIME_NS + number * 1_000_000
    return PacketRow(number + 1, at_ns, 150 + number % 200, "CAM", number % 300, address, signer, "", checks, verdict)


@again_after_a_long_turn
def test_many_packets_never_block_the_window(qtbot: QtBot, view: PacketView, tmp_path: Path, pki: LabPki) -> None:
    frame = ethernet_frame(Vehicle.of(pki, 3).signed_cam(certificate=True), bytes(6))
    path, rows = tmp_path / "many.pcapng", tmp_path / "many.npz"
    blocks = (packet_block(TIME_NS + number * 1_000_000, frame) for number in range(MANY))
    path.write_bytes(capture_header(["road"]) + b"".join(blocks))
    PacketTable.of(map(_row, range(MANY))).write(rows)
    header = view.list.horizontalHeader()
    with slots_watched() as watch:
        view.show_capture(path, rows)
        qtbot.waitUntil(lambda: view.count.text() == "100,000 packets")
        for column in range(header.count()):
            place = QPoint(header.sectionViewportPosition(column) + 20, header.height() // 2)
            qtbot.mouseClick(header.viewport(), LEFT, pos=place)
        qtbot.keyClicks(view.filter_line, 'cam ="signature invalid" 02:00')
        qtbot.waitUntil(lambda: view.count.text() == "10,000 of 100,000 packets")
        view.filter_line.clear()
        qtbot.waitUntil(lambda: view.count.text() == "100,000 packets")
        qtbot.keyClick(view.list, Qt.Key.Key_End, CONTROL)
        press(qtbot, view.list, *[Qt.Key.Key_Up] * 20)
        last = view.list.row_at(view.list.currentIndex().row()).number
        qtbot.waitUntil(lambda: view.verdict.text().startswith(f"Packet {last:,}: "))
        watch.assert_short()
    assert view.octets.octets == frame


@again_after_a_long_turn
def test_packet_with_a_thousand_certificates_never_blocks_the_window(
    qtbot: QtBot, view: PacketView, pki: LabPki
) -> None:
    vehicle = Vehicle.of(pki, 3)
    header = Header(CAM_PSID, NOW_US)
    unsecured = encode_shb(vehicle.position(NOW_US), b"")
    signer = encode_signer((pki.aa.octets,) * 1024)
    signed = encode_signed_data(
        "sha256", encode_to_be_signed_data(unsecured, header), signer, vehicle.key.sign_digest(bytes(32))
    )
    octets = ethernet_frame(encode_basic_header(1000, 1, secured=True) + signed, bytes(6))
    with slots_watched() as watch:
        view.show_packets([CapturedPacket(TIME_NS, ETHERNET, octets, len(octets))])
        qtbot.waitUntil(lambda: view.octets.octets == octets)
        qtbot.mouseClick(view.octets.viewport(), LEFT, pos=view.octets.place_of(100).center())
        press(qtbot, view.octets, Qt.Key.Key_End)
        watch.assert_short()
    assert view.tree.current is not None and view.tree.current.name == "sSig"
    model = view.tree.model()
    signer = model.index(2, 0, view.tree.currentIndex().parent().parent())
    second = model.index(1, 0, model.index(0, 0, signer))
    assert str(model.index(3, 0, second).data()).startswith("toBeSigned")
    assert not view.tree.isExpanded(model.index(3, 0, second)), "of a large tree the parts on top are expanded only"
