"""Takes the pictures of the V2X pages: scenario, a run, its packets, an inspected capture, and the use cases."""

from __future__ import annotations

import tempfile
from pathlib import Path

from camera import BOTH, Camera
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from labconsole_ui.shell.docks import toggle_bottom
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.widgets.layouts import ScrollPage
from labconsole_v2x.panel.inspection_page import InspectionPage
from labconsole_v2x.panel.live_panel import PACKETS, SCENARIO, STATIONS, LivePanel
from labconsole_v2x.panel.packet_view import PacketView
from labconsole_v2x.panel.run_capture import write_run_capture
from labconsole_v2x.panel.use_cases.use_case_panel import UseCasePanel
from labconsole_v2x.stations.capture import capture_header, packet_block, read_capture
from labconsole_v2x.use_cases.catalogue import CODES

KIND = "v2x.live"
CLICKED = 0x4D
"""An octet of the CAM's referencePosition."""
PICTURED = "A-SIG-04"
SPOILED = 40
"""Of so many packets, the signature of one is changed in the capture that is inspected."""


def take_v2x(camera: Camera, window: MainWindow) -> None:
    """The tabs of the live trial around a run, then the capture of that run, inspected."""
    page = window.open_trial(KIND)
    assert isinstance(page, LivePanel)
    page.building.finish()
    toggle_bottom(window)
    page.tabs.setCurrentIndex(SCENARIO)
    camera.settle(1.0)
    camera.take("v2x-scenario")
    page.tabs.setCurrentIndex(STATIONS)
    queue, area = window.services.bridge.queue, page.findChild(ScrollPage)
    content = area.widget() if area is not None else None
    assert area is not None and content is not None
    bar = area.verticalScrollBar()
    for mode in BOTH:
        camera.theme(mode)
        page.run_bar.run_button.click()
        camera.wait(lambda: page.monitor.running and page.monitor.board.pairs >= 15)
        toggle_bottom(window)
        camera.settle(0.5)
        bar.setValue(page.plots.mapTo(content, QPoint(0, 0)).y() - 8)
        camera.settle(8.5)
        camera.take("v2x-plots", (mode,))
        bar.setValue(0)
        camera.take("v2x-live", (mode,))
        if not page.monitor.running:
            raise SystemExit("the run was over before its pictures were taken: the computer is too busy")
        queue.pause()  # the run is not repeated, if the computer was busy
        camera.wait(lambda: not page.monitor.running)
        queue.cancel_all()
        queue.resume()
        camera.wait_for_runs()
        camera.settle(1.0)
        for entry in window.messages.entries():
            window.messages.withdraw(entry.message)
    page.tabs.setCurrentIndex(PACKETS)
    click_octet(camera, page.packets)
    camera.take("v2x-packets")
    with tempfile.TemporaryDirectory() as folder:
        take_inspection(camera, window, Path(folder))
    take_use_cases(camera, window)


def take_use_cases(camera: Camera, window: MainWindow) -> None:
    """The check list after a run of all cases, one of them selected."""
    page = window.open_trial("v2x.use-cases")
    assert isinstance(page, UseCasePanel)
    page.building.finish()
    camera.settle(1.0)
    page.run_bar.run_button.click()
    camera.wait(lambda: page.monitor.shown.running)
    toggle_bottom(window)
    camera.wait_for_runs()
    camera.wait(lambda: len(page.monitor.shown.results) == len(CODES))
    for entry in window.messages.entries():
        window.messages.withdraw(entry.message)
    page.list.select(PICTURED)
    camera.take("use-cases")


def take_inspection(camera: Camera, window: MainWindow, folder: Path) -> None:
    """The capture of the newest run, of which some packets are spoiled, with its verdicts."""
    capture = write_run_capture(window.services.bridge.queue.store.path, None, KIND, folder)
    assert capture.path is not None and capture.run_id is not None
    road, root = folder / "road.pcapng", folder / "root.oer"
    with window.services.reader() as reader:
        root.write_bytes(reader.artefact(capture.run_id, "root.oer"))
    blocks = [capture_header(("road",))]
    for number, packet in enumerate(read_capture(capture.path), 1):
        octets = packet.octets if number % SPOILED else packet.octets[:-1] + bytes((packet.octets[-1] ^ 1,))
        blocks.append(packet_block(packet.time_ns, octets))
    road.write_bytes(b"".join(blocks))
    page = window.plugin_pages.open("page:v2x:inspection")
    assert isinstance(page, InspectionPage)
    page.building.finish()
    page.open_files([root, road])
    camera.wait(lambda: page.capture_box.count() > 0)
    dialog = page.inspect()
    camera.wait(dialog.start_button.isEnabled)
    dialog.start_button.click()
    camera.wait(lambda: page.result.isVisible() and page.result.tabs.isVisible())
    camera.settle(1.0)
    camera.take("v2x-inspection")
    page.result.tabs.setCurrentIndex(page.result.tabs.count() - 1)
    page.result.packets.set_filter('"signature invalid"')
    click_octet(camera, page.result.packets)
    camera.take("v2x-inspected-packets")


def click_octet(camera: Camera, packets: PacketView) -> None:
    """Click an octet of the packet that is shown: its field is selected in the tree."""
    camera.wait(lambda: bool(packets.octets.octets))
    camera.settle(1.0)
    place = packets.octets.place_of(CLICKED).center()
    QTest.mouseClick(packets.octets.viewport(), Qt.MouseButton.LeftButton, pos=place)
    camera.settle(0.5)
