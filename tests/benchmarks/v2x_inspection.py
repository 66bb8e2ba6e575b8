"""Measure the inspection of a road capture: 100,000 CAMs of 50 stations, each tenth with its certificate.

Run it with `python tests/benchmarks/v2x_inspection.py`; it works in a temporary directory and leaves nothing behind.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from cryptography.hazmat.backends.openssl import backend

sys.path.insert(0, str(Path(__file__).parents[2]))

from labconsole.engine.provenance import provenance
from labconsole_v2x.inspection.capture_certificates import CaptureCertificates
from labconsole_v2x.inspection.inspection_report import write_packets_csv
from labconsole_v2x.inspection.inspector import inspect_capture
from labconsole_v2x.security.structures import CAM_PSID, Header
from labconsole_v2x.stations.capture import (
    capture_header,
    ethernet_frame,
    geonetworking_octets,
    packet_block,
    read_capture,
)
from tests.labconsole_v2x.inspection.road_capture import NOW_US, TIME_NS, Vehicle, lab

PACKETS = 100_000
STATIONS = 50
REACH_S = 15.0


def main() -> None:
    """Write the capture, then measure reading, inspection and CSV."""
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, load {said['load_average_before'][0]}, Python {said['python']}")
    print(f"cryptography {version('cryptography')} with {backend.openssl_version_text()}")
    pki = lab()
    certificates = CaptureCertificates([pki.root])
    certificates.add(pki.aa)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "road.pcapng"
        stations = [Vehicle.of(pki, number) for number in range(STATIONS)]
        _measure("create and write", lambda: _write(path, stations))
        print(f"capture: {path.stat().st_size / 1e6:.1f} MB")
        _measure("read", lambda: [geonetworking_octets(packet) for packet in read_capture(path)])
        inspected = []
        seconds = _measure("inspect", lambda: inspected.append(inspect_capture(path, certificates)))
        (inspection,) = inspected
        assert inspection.by_verdict() == {"valid": PACKETS}, inspection.by_verdict()
        _measure("write CSV", lambda: write_packets_csv(inspection, Path(name) / "packets.csv"))
    print(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    print(f"inspection: {seconds:.1f} s of {REACH_S:g} s: {'reached' if seconds <= REACH_S else 'missed'}")


def _write(path: Path, stations: list[Vehicle]) -> None:
    with path.open("wb") as file:
        file.write(capture_header(["road"]))
        for number in range(PACKETS):
            at_us = NOW_US + number * 1000
            certificate = number // STATIONS % 10 == 0
            packet = stations[number % STATIONS].signed_cam(header=Header(CAM_PSID, at_us), certificate=certificate)
            file.write(packet_block(TIME_NS + number * 1_000_000, ethernet_frame(packet, bytes(6))))


def _measure(what: str, work: Callable[[], object]) -> float:
    begun, cpu = time.perf_counter(), time.process_time()
    work()
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    print(f"{what}: {seconds:.2f} s, {seconds / PACKETS * 1e6:.1f} us a packet, {cpu / PACKETS * 1e6:.1f} us of CPU")
    return seconds


if __name__ == "__main__":
    main()
