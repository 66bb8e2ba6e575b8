"""The page on which captures are inspected, in a real window: dropped files, the dialog, and the kept result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from labconsole.engine.operation_process import OperationEnd
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.navigation import Navigation
from labconsole_ui.tables.record_table import DataTable
from labconsole_v2x.panel.inspection_page import InspectionPage
from labconsole_v2x.panel.packet_view import PacketView
from tests.labconsole_v2x.inspection.road_capture import DAY_S, TIME_NS, Vehicle, lab, write_capture

LEFT = Qt.MouseButton.LeftButton


@dataclass(frozen=True)
class Driver:
    """Clicks on the page, and files dropped on it."""

    qtbot: QtBot
    window: MainWindow
    page: InspectionPage

    def drop(self, *paths: Path) -> None:
        """Drop files on the page's area."""
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
        at, nothing = QPointF(10, 10), Qt.KeyboardModifier.NoModifier
        self.page.drop_box.dropEvent(QDropEvent(at, Qt.DropAction.CopyAction, data, LEFT, nothing))

    def click(self, button: QAbstractButton) -> None:
        """Click a button as soon as it can be clicked."""
        self.qtbot.waitUntil(lambda: button.isVisible() and button.isEnabled())
        self.qtbot.mouseClick(button, LEFT)

    def dialog(self) -> OperationDialog:
        """Open the dialog by the page's button."""
        self.click(self.page.inspect_button)
        (dialog,) = (each for each in QApplication.topLevelWidgets() if isinstance(each, OperationDialog))
        return dialog

    def inspect(self) -> None:
        """Inspect with the files that are filled in; a dialog with a fault is closed, others close themselves."""
        dialog = self.dialog()
        ends: list[OperationEnd] = []
        dialog.ended.connect(ends.append)
        self.click(dialog.start_button)
        self.qtbot.waitUntil(lambda: bool(ends))
        if not ends[0].passed:
            self.click(dialog.close_button)
        self.qtbot.waitUntil(lambda: not isValid(dialog))

    def packets(self) -> PacketView:
        """The page's packets, once the first of them is shown."""
        self.qtbot.mouseClick(bar := self.page.result.tabs.tabBar(), LEFT, pos=bar.tabRect(bar.count() - 1).center())
        view = self.page.result.packets
        self.qtbot.waitUntil(lambda: view.list.isVisible() and view.octets.octets != b"")
        return view

    def close(self, dialog: OperationDialog) -> None:
        """Close a dialog whose operation has ended."""
        self.click(dialog.close_button)
        self.qtbot.waitUntil(lambda: not isValid(dialog))

    def messages(self) -> list[str]:
        """The sentences in the window's message bar."""
        return [entry.message.sentence for entry in self.window.messages.entries()]

    def verdicts(self) -> list[str]:
        """The numbers of packets by verdict, as the page shows them."""
        labels = self.page.result.verdicts.findChildren(QLabel)
        return [label.text() for label in labels if label.isVisible()]


@pytest.fixture
def driver(qtbot: QtBot, shown_window: MainWindow, operation_threads: None) -> Driver:
    """The page, opened by its entry in the navigation; its operations are threads of the test process."""
    tree = shown_window.findChild(Navigation)
    assert tree is not None
    (entry,) = tree.findItems("Inspect captures", Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive)
    qtbot.mouseClick(tree.viewport(), LEFT, pos=tree.visualItemRect(entry).center())
    page = shown_window.pages.currentWidget()
    assert isinstance(page, InspectionPage)
    qtbot.waitUntil(lambda: page.building.complete)
    return Driver(qtbot, shown_window, page)


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a capture of two stations, its root CA and its authorization authority."""
    folder = tmp_path_factory.mktemp("road")
    pki = lab()
    one, two = Vehicle.of(pki, 42), Vehicle.of(pki, 7)
    broken = two.signed_cam()
    broken = broken[:-1] + bytes((broken[-1] ^ 1,))
    packets = (one.signed_cam(certificate=True), one.unsigned_cam(), two.signed_denm(), broken)
    write_capture(folder / "road.pcapng", *packets)
    write_capture(folder / "good.pcapng", one.signed_cam(certificate=True))
    write_capture(folder / "none.pcapng")
    (folder / "root.oer").write_bytes(pki.root.octets)
    (folder / "aa.oer").write_bytes(pki.aa.octets)
    return folder


def rows(table: DataTable) -> list[list[str]]:
    """The rows of a table, without its titles."""
    return [line.split("\t") for line in table.as_tsv().splitlines()[1:]]


def test_dropped_capture_is_inspected_and_its_result_stays(driver: Driver, road: Path) -> None:
    page = driver.page
    assert (
        page.result.body.currentWidget() is page.result.empty and "No capture inspected yet" in page.result.empty.text()
    )
    assert not page.result.head.isVisible() and not page.clear_button.isVisible()
    driver.drop(road / "root.oer", road / "road.pcapng", road / "aa.oer")
    driver.qtbot.waitUntil(lambda: page.capture_box.currentText() == "road.pcapng")
    assert page.certificates.text() == "Roots: root.oer   Authorities: aa.oer"
    assert "Not inspected yet" in page.result.empty.text()
    driver.inspect()
    assert page.result.sentence.text().startswith("road.pcapng: 4 GeoNetworking packets of 2 stations")
    assert driver.verdicts() == ["valid: 2 (50.0%)", "signature invalid: 1 (25.0%)", "not secured: 1 (25.0%)"]
    assert (
        not page.result.warnings.isVisible() and page.result.stations.isVisible() and page.result.findings.isVisible()
    )
    first, second = rows(page.result.stations)
    assert first[:6] == ["02:00:00:00:00:2a", "42", "2", "CAM 2", "1", "50.0%"]
    assert second[:3] == ["02:00:00:00:00:07", "7", "2"] and second[6] == "22:13:20.002"
    (finding,) = rows(page.result.findings)
    assert finding == ["signature invalid", "1", "4", "the signature does not verify with the signer's key"]
    (chain,) = rows(page.result.chains)
    assert chain[0].startswith("Lab AA (") and ", under Lab root CA (" in chain[0]
    assert chain[1:4] == ["complete", "2", "3"]
    assert page.result.tabs.tabText(2) == "Packets (4)"


def test_packets_of_a_finding_are_listed_with_their_verdicts(driver: Driver, road: Path) -> None:
    page = driver.page
    driver.drop(road / "root.oer", road / "road.pcapng", road / "aa.oer")
    driver.qtbot.waitUntil(lambda: page.capture_box.count() == 1)
    driver.inspect()
    view = driver.packets()
    assert [row[:1] + row[7:8] for row in rows(view.list)[:1]] == [["1", "valid"]]
    assert view.count.text() == "4 packets"
    assert "Packet 1: valid. Signature valid, chain complete up to Lab root CA, profile kept" in view.verdict.text()
    driver.qtbot.mouseClick(page.result.tabs.tabBar(), LEFT, pos=page.result.tabs.tabBar().tabRect(0).center())
    place = page.result.findings.visualRect(page.result.findings.model().index(0, 3)).center()
    driver.qtbot.mouseClick(page.result.findings.viewport(), LEFT, pos=place)
    driver.qtbot.mouseDClick(page.result.findings.viewport(), LEFT, pos=place)
    assert page.result.tabs.currentWidget() is view and view.count.text() == "1 of 4 packets"
    driver.qtbot.waitUntil(lambda: "Packet 4: signature invalid" in view.verdict.text())
    assert "chain complete up to Lab root CA" in view.verdict.text(), "each check is shown, whatever the verdict"


def test_report_and_rows_are_written_and_named(driver: Driver, road: Path, tmp_path: Path) -> None:
    driver.drop(road / "good.pcapng")
    driver.qtbot.waitUntil(lambda: driver.page.capture_box.count() == 1)
    dialog = driver.dialog()
    for name in ("csv", "pdf"):
        driver.qtbot.keyClicks(dialog.form.row(name).editor.focusProxy(), str(tmp_path / f"result.{name}"))
    driver.click(dialog.start_button)
    driver.qtbot.waitUntil(lambda: not isValid(dialog))
    assert (tmp_path / "result.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "result.csv").exists()
    assert any("result.pdf (" in each and "PDF/A-2a" in each for each in driver.messages())


def test_dialog_can_be_started_again_after_a_broken_capture(driver: Driver, road: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes((road / "road.pcapng").read_bytes()[:-5])
    driver.drop(cut)
    driver.qtbot.waitUntil(lambda: driver.page.capture_box.count() == 1)
    dialog = driver.dialog()
    ends: list[OperationEnd] = []
    dialog.ended.connect(ends.append)
    driver.click(dialog.start_button)
    driver.qtbot.waitUntil(lambda: len(ends) == 1)
    driver.click(dialog.again_button)
    driver.click(dialog.start_button)
    driver.qtbot.waitUntil(lambda: len(ends) == 2)
    assert "cut.pcapng is broken" in ends[1].result.warnings[0] if ends[1].result else False
    driver.close(dialog)
    assert driver.packets().count.text() == "3 packets"


def test_page_warns_without_a_root_and_hides_findings_where_there_are_none(driver: Driver, road: Path) -> None:
    page = driver.page
    driver.drop(road / "good.pcapng")
    driver.qtbot.waitUntil(lambda: page.capture_box.count() == 1)
    driver.inspect()
    assert "No trusted root" in page.result.warnings.text() and driver.verdicts() == ["chain incomplete: 1 (100.0%)"]
    driver.drop(road / "root.oer", road / "aa.oer")
    driver.qtbot.waitUntil(page.clear_button.isVisible)
    driver.inspect()
    assert not page.result.warnings.isVisible() and driver.verdicts() == ["valid: 1 (100.0%)"]
    assert page.result.stations.isVisible() and not page.result.findings.isVisible()
    driver.click(page.clear_button)
    assert "No trusted root" in page.certificates.text()
    assert page.result.stations.isVisible(), "the result stays"


def test_times_have_their_dates_where_a_capture_has_more_than_one(driver: Driver, tmp_path: Path) -> None:
    pki = lab()
    one, two = Vehicle.of(pki, 1), Vehicle.of(pki, 2)
    days = [write_capture(tmp_path / "first.pcapng", one.signed_cam())]
    days.append(write_capture(tmp_path / "second.pcapng", two.signed_cam(), time_ns=TIME_NS + DAY_S * 10**9))
    both = tmp_path / "both.pcapng"
    both.write_bytes(b"".join(path.read_bytes() for path in days))  # sections of pcapng can be joined
    driver.drop(both)
    driver.qtbot.waitUntil(lambda: driver.page.capture_box.count() == 1)
    driver.inspect()
    assert [row[6] for row in rows(driver.page.result.stations)] == [
        "2023-11-14 22:13:20.000",
        "2023-11-15 22:13:20.000",
    ]


def test_each_capture_keeps_its_result(driver: Driver, road: Path) -> None:
    page = driver.page
    driver.drop(road / "road.pcapng", road / "none.pcapng")
    driver.qtbot.waitUntil(lambda: page.capture_box.count() == 2)
    driver.inspect()
    assert page.result.stations.isVisible()
    driver.qtbot.keyClick(page.capture_box, Qt.Key.Key_Down)
    assert page.capture_box.currentText() == "none.pcapng" and "Not inspected yet" in page.result.empty.text()
    driver.inspect()
    assert "no GeoNetworking packets" in page.result.empty.text() and page.result.empty.isVisible()
    driver.qtbot.keyClick(page.capture_box, Qt.Key.Key_Up)
    assert page.result.stations.isVisible() and len(rows(page.result.stations)) == 2


def test_broken_files_give_a_sentence(driver: Driver, road: Path, tmp_path: Path) -> None:
    page = driver.page
    (tmp_path / "notes.pcap").write_bytes(b"not a capture")
    driver.drop(tmp_path / "notes.pcap", tmp_path / "missing.pcap")
    driver.qtbot.waitUntil(lambda: len(driver.messages()) == 2)
    assert any("notes.pcap is neither a capture" in each for each in driver.messages())
    assert any("missing.pcap cannot be read" in each for each in driver.messages())
    assert page.capture_box.count() == 0
    whole = (road / "road.pcapng").read_bytes()
    for name, octets in (("head.pcapng", whole[:10]), ("cut.pcapng", whole[:-5])):
        (tmp_path / name).write_bytes(octets)
    driver.drop(tmp_path / "head.pcapng")
    driver.qtbot.waitUntil(lambda: page.capture_box.count() == 1)
    driver.inspect()
    assert "head.pcapng is broken" in page.result.sentence.text() and not page.result.stations.isVisible()
    assert not page.result.verdicts.isVisible()
    driver.drop(tmp_path / "cut.pcapng")
    driver.qtbot.waitUntil(lambda: page.capture_box.count() == 2)
    driver.inspect()
    assert "cut.pcapng is broken after packet 3" in page.result.warnings.text(), "the packets before it are judged"
    assert page.result.stations.isVisible()


def test_csv_never_replaces_a_file(driver: Driver, road: Path, tmp_path: Path) -> None:
    target = tmp_path / "packets.csv"
    target.write_text("precious")
    driver.drop(road / "good.pcapng")
    driver.qtbot.waitUntil(lambda: driver.page.capture_box.count() == 1)
    dialog = driver.dialog()
    driver.qtbot.keyClicks(dialog.form.row("csv").editor.focusProxy(), str(target))
    driver.click(dialog.start_button)
    driver.qtbot.waitUntil(dialog.close_button.isVisible)
    driver.close(dialog)
    assert (
        "packets.csv is there already and stays as it is" in driver.page.result.sentence.text()
        and target.read_text() == "precious"
    )


def test_next_page_begins_with_the_last_files_and_takes_files_from_the_window(driver: Driver, road: Path) -> None:
    pages = driver.window.plugin_pages
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(road / name)) for name in ("good.pcapng", "root.oer")])
    pages.open_files(pages.files_in(data))
    driver.qtbot.waitUntil(lambda: driver.page.capture_box.count() == 1)
    driver.inspect()
    driver.window.pages.close_page(driver.window.pages.indexOf(driver.page))
    page = pages.open("page:v2x:inspection")
    assert isinstance(page, InspectionPage) and page is not driver.page
    page.building.finish()
    assert (page.capture_box.currentText(), page.certificates.text()) == ("good.pcapng", "Roots: root.oer")
    assert "Not inspected yet" in page.result.empty.text()
    driver.window.services.state.set("v2x/inspection", {"capture": 3, "root": ["a.oer", 4]})
    driver.window.pages.close_page(driver.window.pages.indexOf(page))
    page = pages.open("page:v2x:inspection")
    assert isinstance(page, InspectionPage)
    page.building.finish()
    assert (page.capture_box.count(), page.certificates.text()) == (0, "Roots: a.oer")
