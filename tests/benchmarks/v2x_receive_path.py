"""Measure the whole receive path of a secured CAM on one core, next to Vanetza's on the same packets.

Run it with `python tests/benchmarks/v2x_receive_path.py [--vanetza PROGRAM]`. PROGRAM is not part of this project. It
is called with a folder that contains `ticket.cert`, `authority.cert`, `digest.packets` and `certificate.packets` (each
packet after its length in two octets), and prints a line with name and us for each of `digest`, `certificate`,
`digest_cam` and `certificate_cam`; lines that begin with # are printed. Ratios are medians of five interleaved rounds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

from cryptography.hazmat.backends.openssl import backend

sys.path.insert(0, str(Path(__file__).parents[2]))

from labconsole.engine.provenance import provenance
from labconsole_v2x.messages.geonetworking import parse_packet
from labconsole_v2x.security.issuing import LabPki
from labconsole_v2x.security.keys import SoftwareKey
from labconsole_v2x.security.structures import CAM_PSID, Header
from labconsole_v2x.security.trust import TrustStore
from labconsole_v2x.security.verification import CheckSettings, Verifier, its_now
from tests.labconsole_v2x.inspection.road_capture import DAY_S, Vehicle

PACKETS = 2000
ROUNDS = 5
AIM = 2.0
SIGNERS = ("digest", "certificate")
CASES = {
    "digest": "digest, CAM not decoded",
    "certificate": "certificate, CAM not decoded",
    "digest_cam": "digest, CAM decoded",
    "certificate_cam": "certificate, CAM decoded",
}


def main() -> None:
    """Measure both in turn, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vanetza", metavar="PROGRAM", help="a program that measures Vanetza's receive path")
    program = parser.parse_args().vanetza
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, load {said['load_average_before'][0]}, Python {said['python']}")
    print(f"cryptography {version('cryptography')} with {backend.openssl_version_text()}")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the program inherits it

    start_s = its_now() // 1_000_000 - DAY_S
    pki, key = LabPki.create(start_s), SoftwareKey.generate()
    car = Vehicle(1, pki.ticket(key.public_key, start_s), key)
    now_us = its_now()
    packets = {
        signer: [
            car.signed_cam(header=Header(CAM_PSID, now_us + number), certificate=signer == "certificate")
            for number in range(PACKETS)
        ]
        for signer in SIGNERS
    }
    sizes = ", ".join(f"{len(octets[0])} B with {signer}" for signer, octets in packets.items())
    print(f"{PACKETS} CAMs of one station: {sizes}; its ticket and the AA are known")
    ours: dict[str, list[float]] = {case: [] for case in CASES}
    theirs: dict[str, list[float]] = {case: [] for case in CASES}
    with tempfile.TemporaryDirectory() as name:
        _write(Path(name), pki, car, packets)
        for number in range(ROUNDS):
            for signer, octets in packets.items():
                ours[signer].append(_receive(pki, car, octets, now_us, decode=False))
                ours[f"{signer}_cam"].append(_receive(pki, car, octets, now_us, decode=True))
            if program:
                for case, us in _vanetza(program, name, print_versions=number == 0).items():
                    theirs[case].append(us)
    for case, title in CASES.items():
        line = f"{title}: {median(ours[case]):.1f} us"
        if theirs[case]:
            ratio = median(other / own for own, other in zip(ours[case], theirs[case], strict=True))
            reached = "reached" if ratio >= AIM else "missed"
            line += f", Vanetza {median(theirs[case]):.1f} us, ratio {ratio:.2f} of {AIM:g}: {reached}"
        print(line)


def _receive(pki: LabPki, car: Vehicle, packets: list[bytes], now_us: int, *, decode: bool) -> float:
    """Us per packet from the GeoNetworking header to the outcome, in a new receiver that knows ticket and AA."""
    trust = TrustStore()
    trust.add_root(pki.root)
    assert trust.add(pki.aa) is None
    assert trust.add(car.ticket) is None
    verifier = Verifier(trust, CheckSettings(decode_content=decode))
    accepted = 0
    begun = time.perf_counter()
    for octets in packets:
        secured = parse_packet(octets).secured
        accepted += verifier.verify(secured or b"", now_us).accepted
    seconds = time.perf_counter() - begun
    assert accepted == len(packets)
    return seconds / len(packets) * 1e6


def _write(folder: Path, pki: LabPki, car: Vehicle, packets: dict[str, list[bytes]]) -> None:
    (folder / "ticket.cert").write_bytes(car.ticket.octets)
    (folder / "authority.cert").write_bytes(pki.aa.octets)
    for signer, octets in packets.items():
        parts = (len(packet).to_bytes(2, "big") + packet for packet in octets)
        (folder / f"{signer}.packets").write_bytes(b"".join(parts))


def _vanetza(program: str, folder: str, *, print_versions: bool) -> dict[str, float]:
    """Us per packet by case, as the program prints them."""
    lines = subprocess.run([program, folder], capture_output=True, text=True, check=True).stdout.splitlines()
    if print_versions:
        print(*(line.removeprefix("#").strip() for line in lines if line.startswith("#")), sep="\n")
    figures = (line.split() for line in lines if line and not line.startswith("#"))
    return {case: float(us) for case, us in figures if case in CASES}


if __name__ == "__main__":
    main()
