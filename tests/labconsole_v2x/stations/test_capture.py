"""Captures are read as tshark reads them, whatever tool wrote them, and tshark reads those that are written here."""

from __future__ import annotations

import struct
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from labconsole_v2x.stations.capture import (
    ETHERNET,
    IEEE80211,
    IEEE80211_RADIOTAP,
    CapturedPacket,
    CaptureError,
    capture_header,
    ethernet_frame,
    geonetworking_octets,
    packet_block,
    read_capture,
)
from tests.helpers.mutations import mutations

TIME_NS = 1_700_000_000_123_456_789
STATION = bytes.fromhex("02000000002a")
BEACON = bytes.fromhex("11000a01 00100000 00000100 0000") + STATION + bytes(16)
"""A beacon without security, with a source position of zeros (EN 302 636-4-1, 9.8.1)."""
FRAMES = [ethernet_frame(BEACON + bytes(number), STATION) for number in (0, 1, 2, 3, 1400)]
TIMES = [TIME_NS + number * 1_000_000_001 for number in range(len(FRAMES))]


def tool(*command: str | Path) -> str:
    """What a tool of Wireshark prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def by_tshark(capture: Path, *fields: str) -> list[list[str]]:
    """A row with these fields for each packet."""
    named = [part for field in fields for part in ("-e", field)]
    return [line.split("\t") for line in tool("tshark", "-n", "-r", capture, "-T", "fields", *named).splitlines()]


def written(path: Path) -> Path:
    """The frames as a capture of this console."""
    blocks = (packet_block(at, frame) for at, frame in zip(TIMES, FRAMES, strict=True))
    path.write_bytes(capture_header(["vehicle-1"], "Lab console") + b"".join(blocks))
    return path


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return written(tmp_path / "own.pcapng")


def expect_faults(path: Path, *parts: str) -> list[CapturedPacket]:
    """The packets before the error, whose sentence has all `parts` and the file's name."""
    packets = []
    with pytest.raises(CaptureError) as raised:
        packets.extend(read_capture(path))  # extend keeps what came before the error
    assert [part for part in (path.name, *parts) if part not in str(raised.value)] == [], raised.value
    return packets


def test_tshark_reads_names_times_and_comments_of_a_written_capture(tmp_path: Path) -> None:
    path = tmp_path / "own.pcapng"
    blocks = packet_block(TIME_NS, FRAMES[0]) + packet_block(TIME_NS + 1, FRAMES[1], 1, "spoiled: größer")
    path.write_bytes(capture_header(["vehicle-1", "vehicle-2"], "Lab console") + blocks)
    fields = ("frame.time_epoch", "frame.interface_name", "frame.len", "frame.comment", "geonw.src_pos.addr.mid")
    mac = "02:00:00:00:00:2a"
    assert by_tshark(path, *fields) == [
        ["1700000000.123456789", "vehicle-1", str(len(FRAMES[0])), "", mac],
        ["1700000000.123456790", "vehicle-2", str(len(FRAMES[1])), "spoiled: größer", mac],
    ]
    assert "Lab console" in tool("capinfos", path)


def test_own_captures_are_read_as_they_were_written(capture: Path) -> None:
    packets = list(read_capture(capture))
    assert [(one.time_ns, one.link_type, one.octets, one.cut) for one in packets] == [
        (at, ETHERNET, frame, False) for at, frame in zip(TIMES, FRAMES, strict=True)
    ]


@pytest.mark.parametrize(("form", "unit_ns"), [("pcap", 1000), ("nsecpcap", 1), ("pcapng", 1)])
def test_captures_of_wireshark_are_read(capture: Path, tmp_path: Path, form: str, unit_ns: int) -> None:
    tool("editcap", "-F", form, capture, tmp_path / "tool.cap")
    packets = list(read_capture(tmp_path / "tool.cap"))
    assert [(one.time_ns, one.octets) for one in packets] == [
        (at - at % unit_ns, frame) for at, frame in zip(TIMES, FRAMES, strict=True)
    ]


def test_frames_that_wireshark_cut_are_marked(capture: Path, tmp_path: Path) -> None:
    tool("editcap", "-s", "100", capture, tmp_path / "cut.pcapng")
    packets = list(read_capture(tmp_path / "cut.pcapng"))
    assert [(one.octets, one.length, one.cut) for one in packets] == [
        (frame[:100], len(frame), len(frame) > 100) for frame in FRAMES
    ]


def test_merged_captures_have_interfaces_of_several_link_types_and_resolutions(capture: Path, tmp_path: Path) -> None:
    dump, radio, merged = tmp_path / "radio.txt", tmp_path / "radio.pcap", tmp_path / "merged.pcapng"
    frame = bytes.fromhex("0000080000000000") + in_80211(BEACON)
    dump.write_text(f"2023-11-14 22:13:21.500000 0000 {frame.hex(' ')}\n")
    tool("text2pcap", "-F", "pcap", "-l", "127", "-t", "%Y-%m-%d %H:%M:%S.%f", dump, radio)
    tool("mergecap", "-I", "none", "-w", merged, capture, radio)
    rows = by_tshark(merged, "frame.time_epoch", "frame.interface_id", "frame.len", "geonw.src_pos.addr.mid")
    packets = list(read_capture(merged))
    assert {row[1] for row in rows} == {"0", "1"}
    assert {one.link_type for one in packets} == {ETHERNET, IEEE80211_RADIOTAP}
    read = [f"{one.time_ns // 10**9}.{one.time_ns % 10**9:09}" for one in packets]
    assert read == [row[0] for row in rows]
    assert all((geonetworking_octets(one) or b"").startswith(BEACON) for one in packets)


def in_80211(packet: bytes, *, kind: int = 0x88, flags: int = 0, pad: int = 0, control: int = 0) -> bytes:
    """A data frame outside the context of a BSS (OCB), with LLC and SNAP."""
    addresses = b"\xff" * 6 + STATION + b"\xff" * 6
    more = (STATION if flags & 3 == 3 else b"") + (bytes((control, 0)) if kind & 0x80 else b"")
    more += bytes(4) if kind & 0x80 and flags & 0x80 else b""
    return (
        bytes((kind, flags, 0, 0)) + addresses + bytes(2) + more + bytes(pad) + b"\xaa\xaa\x03\0\0\0\x89\x47" + packet
    )


def radiotap(frame: bytes, flags: int) -> bytes:
    """A header with a second word of present fields, TSFT, flags and rate."""
    words = struct.pack("<II", 0x80000007, 0)
    return b"\0\0" + struct.pack("<H", 26) + words + bytes(4) + bytes(8) + bytes((flags, 12)) + frame


TAGGED = STATION * 2 + bytes.fromhex("88a80001 81000002 8947") + BEACON
FRAMES_WITH_BEACON = {
    "ethernet": (ETHERNET, FRAMES[0]),
    "two VLAN tags": (ETHERNET, TAGGED),
    "data": (IEEE80211, in_80211(BEACON, kind=0x08)),
    "QoS data": (IEEE80211, in_80211(BEACON)),
    "QoS data, four addresses": (IEEE80211, in_80211(BEACON, flags=3)),
    "QoS data with HT control": (IEEE80211, in_80211(BEACON, flags=0x80)),
    "radiotap": (IEEE80211_RADIOTAP, radiotap(in_80211(BEACON), 0)),
    "radiotap, check sum": (IEEE80211_RADIOTAP, radiotap(in_80211(BEACON) + b"\1\2\3\4", 0x10)),
    "radiotap, padded header": (IEEE80211_RADIOTAP, radiotap(in_80211(BEACON, pad=2), 0x20)),
}


def test_geonetworking_is_found_where_tshark_finds_it(tmp_path: Path) -> None:
    """Each frame is in a section of its own: tshark takes half a second to start."""
    path = tmp_path / "frames.pcapng"
    sections = (
        capture_header(["radio"], link_type=link_type) + packet_block(TIME_NS, frame)
        for link_type, frame in FRAMES_WITH_BEACON.values()
    )
    path.write_bytes(b"".join(sections))
    found = dict(zip(FRAMES_WITH_BEACON, by_tshark(path, "geonw.src_pos.addr.mid"), strict=True))
    assert found == {name: ["02:00:00:00:00:2a"] for name in FRAMES_WITH_BEACON}
    packets = zip(FRAMES_WITH_BEACON, read_capture(path), strict=True)
    assert {name: geonetworking_octets(packet) for name, packet in packets} == dict.fromkeys(FRAMES_WITH_BEACON, BEACON)


@pytest.mark.parametrize(
    ("link_type", "frame"),
    [
        (ETHERNET, STATION * 2 + b"\x08\x00" + BEACON),
        (ETHERNET, STATION * 2 + b"\x81\x00"),
        (IEEE80211, in_80211(BEACON, kind=0x80)),
        (IEEE80211, in_80211(BEACON, kind=0xC8)),
        (IEEE80211, in_80211(BEACON, flags=0x40)),
        (IEEE80211, in_80211(BEACON, control=0x80)),
        (IEEE80211_RADIOTAP, b"\1" + radiotap(in_80211(BEACON), 0)[1:]),
        (147, BEACON),
    ],
    ids=["IPv4", "empty VLAN", "management", "no data", "encrypted", "A-MSDU", "radiotap version 1", "link type 147"],
)
def test_other_frames_have_no_geonetworking(link_type: int, frame: bytes) -> None:
    assert geonetworking_octets(CapturedPacket(0, link_type, frame, len(frame))) is None


@pytest.mark.parametrize("frame", [frame for _, frame in FRAMES_WITH_BEACON.values()], ids=FRAMES_WITH_BEACON.keys())
def test_cut_frames_give_a_part_of_the_packet_or_none(frame: bytes) -> None:
    for link_type in (ETHERNET, IEEE80211, IEEE80211_RADIOTAP):
        for size in range(len(frame)):
            found = geonetworking_octets(CapturedPacket(0, link_type, frame[:size], len(frame)))
            assert found is None or BEACON.startswith(found)


@pytest.mark.parametrize(("magic", "unit_ns"), [(0xA1B2C3D4, 1000), (0xA1B23C4D, 1)])
@pytest.mark.parametrize("order", ["<", ">"])
def test_pcap_of_both_byte_orders_is_read_as_by_tshark(tmp_path: Path, order: str, magic: int, unit_ns: int) -> None:
    path, frame = tmp_path / "old.pcap", FRAMES[2]
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
    path.write_bytes(head + struct.pack(f"{order}4I", 1_700_000_000, 42, len(frame), len(frame)) + frame)
    (packet,) = read_capture(path)
    assert packet == (1_700_000_000 * 10**9 + 42 * unit_ns, ETHERNET, frame, len(frame))
    assert by_tshark(path, "frame.time_epoch") == [[f"1700000000.{42 * unit_ns:09}"]]


def block(order: str, kind: int, body: bytes) -> bytes:
    length = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + length + body + length


def section(order: str, *blocks: bytes) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1)) + b"".join(blocks)


def interface(order: str, resolution: int, options: bytes = b"") -> bytes:
    option = struct.pack(f"{order}HHB3x", 9, 1, resolution)
    return block(order, 1, struct.pack(f"{order}HHI", 1, 0, 0) + option + options + bytes(4))


def enhanced(order: str, number: int, ticks: int, frame: bytes) -> bytes:
    head = struct.pack(f"{order}5I", number, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
    return block(order, 6, head + frame + bytes(-len(frame) % 4))


def test_pcapng_with_sections_resolutions_and_unknown_blocks_is_read_as_by_tshark(tmp_path: Path) -> None:
    path = tmp_path / "mixed.pcapng"
    unknown = block(">", 0x0ABC, bytes(404))
    offset = struct.pack(">HHq", 14, 8, 1_000_000_000)
    big = [interface(">", 0x94), unknown, interface(">", 3, offset), block(">", 5, bytes(12))]
    big += [enhanced(">", 0, 1_700_000_000 << 20 | 1 << 19, FRAMES[1]), enhanced(">", 1, 700_000_000_250, FRAMES[2])]
    little = [interface("<", 9), enhanced("<", 0, TIME_NS, FRAMES[3])]
    path.write_bytes(section(">", *big) + section("<", *little))
    times = [1_700_000_000_500_000_000, 1_700_000_000_250_000_000, TIME_NS]
    assert [(one.time_ns, one.octets) for one in read_capture(path)] == list(zip(times, FRAMES[1:4], strict=True))
    assert [row[0] for row in by_tshark(path, "frame.time_epoch")] == [f"{at // 10**9}.{at % 10**9:09}" for at in times]


def test_simple_packet_blocks_have_no_time(tmp_path: Path) -> None:
    path, frame = tmp_path / "simple.pcapng", FRAMES[1]
    simple = block("<", 3, struct.pack("<I", len(frame)) + frame + bytes(-len(frame) % 4))
    path.write_bytes(section("<", interface("<", 6), simple))
    assert [tuple(one) for one in read_capture(path)] == [(0, ETHERNET, frame, len(frame))]


def test_check_sums_that_the_file_announces_are_no_part_of_the_frame(tmp_path: Path) -> None:
    path, frame = tmp_path / "fcs.pcapng", FRAMES[0]
    fcs = struct.pack("<HHB3x", 13, 1, 4)
    path.write_bytes(section("<", interface("<", 9, fcs), enhanced("<", 0, 1, frame + b"\1\2\3\4")))
    assert [one.octets for one in read_capture(path)] == [frame]
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 0x24000001)
    path.write_bytes(head + struct.pack("<4I", 1, 1, len(frame) + 4, len(frame) + 4) + frame + b"\1\2\3\4")
    assert [one.octets for one in read_capture(path)] == [frame]


def test_a_capture_cut_anywhere_keeps_the_packets_before(capture: Path, tmp_path: Path) -> None:
    whole = capture.read_bytes()
    head = len(capture_header(["vehicle-1"], "Lab console"))
    ends = [head]
    for at, frame in zip(TIMES, FRAMES, strict=True):
        ends.append(ends[-1] + len(packet_block(at, frame)))
    for size in range(head + 1, ends[4]):
        cut = tmp_path / "cut.pcapng"
        cut.write_bytes(whole[:size])
        complete = sum(end <= size for end in ends[1:])
        if size in ends:
            assert len(list(read_capture(cut))) == complete
        else:
            where = f"after packet {complete}" if complete else "before its first packet"
            assert len(expect_faults(cut, where, "cut short")) == complete


def test_a_pcap_cut_in_a_record_keeps_the_packets_before(capture: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.pcap"
    tool("editcap", "-F", "pcap", capture, old)
    whole = old.read_bytes()
    for size in (len(whole) - 1, len(whole) - len(FRAMES[-1]) - 3):
        old.write_bytes(whole[:size])
        assert [one.octets for one in expect_faults(old, "after packet 4", "cut short")] == FRAMES[:4]


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        (struct.pack("<II", 6, 13) + bytes(5), "impossible length of 13 octets"),
        (struct.pack("<II", 6, 1 << 30) + bytes(5), "impossible length of 1,073,741,824 octets"),
        (enhanced("<", 0, 1, b"1234")[:-4] + bytes(4), "two different lengths"),
        (enhanced("<", 7, 1, b"1234"), "interface 7"),
        (block("<", 6, struct.pack("<5I", 0, 0, 0, 300, 300) + bytes(8)), "longer than its block"),
        (block("<", 6, struct.pack("<5I", 0, 0, 0, 300_000, 300_000) + bytes(8)), "impossible length of 300,000"),
        (block("<", 6, bytes(4)), "too short"),
        (block("<", 1, struct.pack("<HHIHH", 1, 0, 0, 9, 40)), "too short"),
        (block("<", 0x0A0D0D0A, bytes(16)), "no byte order"),
    ],
)
def test_broken_blocks_are_named(tmp_path: Path, blocks: bytes, reason: str) -> None:
    path = tmp_path / "broken.pcapng"
    path.write_bytes(section("<", interface("<", 9), enhanced("<", 0, 1, FRAMES[0])) + blocks)
    assert len(expect_faults(path, "after packet 1", reason)) == 1


@pytest.mark.parametrize("content", [b"", b"\xd4\xc3", b"PK\x03\x04" + bytes(40), b"# Hex dump\n"])
def test_other_files_are_not_captures(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    assert expect_faults(path, "is not a capture file") == []


def test_missing_files_and_folders_are_reported(tmp_path: Path) -> None:
    assert expect_faults(tmp_path / "missing.pcap", "no such file") == []
    assert expect_faults(tmp_path, "not a file") == []
    assert expect_faults(tmp_path / ("x" * 300), "name too long") == []


@pytest.mark.parametrize("count", [250, pytest.param(1_500, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("form", ["pcap", "pcapng"])
def test_mutated_captures_give_packets_or_one_error(tmp_path: Path, form: str, order: str, count: int) -> None:
    """Nightly: 1,500 of each form alone find rare damage that raises another error."""
    path = tmp_path / "mutated.cap"
    records = (struct.pack(f"{order}4I", 1, 1, len(one), len(one)) + one for one in FRAMES[:4])
    pcap = struct.pack(f"{order}IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(records)
    packets = (enhanced(order, 0, TIME_NS, one) for one in FRAMES[:4])
    pcapng = section(order, interface(order, 9), *packets)
    outcomes = set()
    for mutated in mutations({"pcap": pcap, "pcapng": pcapng}[form], count, 7):
        path.write_bytes(mutated)
        try:
            outcomes.add(len([geonetworking_octets(one) for one in read_capture(path)]))
        except CaptureError as error:
            outcomes.add(str(error))
    assert len(outcomes) > 10


def test_reading_needs_the_memory_of_a_packet(tmp_path: Path) -> None:
    path, frame = tmp_path / "long.pcapng", FRAMES[4]
    with path.open("wb") as file:
        file.write(capture_header(["vehicle-1"]))
        file.writelines(packet_block(TIME_NS + number, frame) for number in range(4_000))
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_capture(path)) == 4_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 5_000_000
