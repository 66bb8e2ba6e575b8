"""Packets with a CAM or a DENM, captures of them, and what tshark reads in these."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from labconsole_v2x.messages import cam, denm
from labconsole_v2x.messages.btp import Port, encode_btp_b
from labconsole_v2x.messages.cam import Cam
from labconsole_v2x.messages.denm import Denm
from labconsole_v2x.messages.geonetworking import (
    ETHERTYPE,
    Area,
    PositionVector,
    encode_basic_header,
    encode_gbc,
    encode_shb,
)

ETHERNET = 1


def cam_packet(sender: PositionVector, message: Cam) -> bytes:
    """A packet to all neighbours."""
    return encode_basic_header(1000, 1) + encode_shb(sender, encode_btp_b(Port.CAM, cam.encode(message)))


def denm_packet(sender: PositionVector, area: Area, number: int, message: Denm) -> bytes:
    """A packet to all stations in an area."""
    payload = encode_btp_b(Port.DENM, denm.encode(message), 3)
    return encode_basic_header(60_000, 10) + encode_gbc(sender, area, number, payload)


def write_capture(path: Path, packets: list[bytes]) -> None:
    """A pcap file (draft-ietf-opsawg-pcap) of Ethernet frames to all stations."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, ETHERNET))
        for second, packet in enumerate(packets):
            frame = b"\xff" * 6 + bytes.fromhex("02000000002a") + ETHERTYPE.to_bytes(2, "big") + packet
            file.write(struct.pack("<IIII", second, 0, len(frame), len(frame)) + frame)


def dissected(path: Path, *fields: str, occurrence: str = "f") -> list[list[str]]:
    """The values of these fields, a row for each packet: the first of each, or all with `occurrence` "a"."""
    named = [part for field in fields for part in ("-e", field)]
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-E", f"occurrence={occurrence}", *named]
    rows = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [row.split("\t") for row in rows]
