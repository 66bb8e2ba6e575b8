"""Airtime as IEEE 802.11 has it, the channel busy ratio, and the states of congestion control (TS 102 687)."""

from __future__ import annotations

from threading import Thread

import pytest

from labconsole_v2x.stations.channel import DCC_STATES, ChannelLoad, ReactiveDcc, airtime_us, octets_on_air

MS = 1_000_000
BEGIN_NS = 5_000 * MS

# By hand, from IEEE 802.11, 17.3 and 17.4.3, at 10 MHz: a preamble of 32 us and SIGNAL of 8 us, then symbols of 8 us
# with 48 bits each for 16 bits SERVICE, the frame, and 6 tail bits. The frame is the packet and 38 octets: QoS data
# header 26, LLC and SNAP 8, check sum 4.
AIRTIMES = {
    # octets: (bits, symbols, us)
    0: (326, 7, 96),
    1: (334, 7, 96),
    2: (342, 8, 104),
    89: (1038, 22, 216),  # the source's CAM without security
    180: (1766, 37, 336),  # with digest
    450: (3926, 82, 696),  # with certificate
    1398: (11_510, 240, 1960),  # the largest payload of GeoNetworking
}


@pytest.mark.parametrize("octets", AIRTIMES)
def test_airtime_at_6_mbit_s(octets: int) -> None:
    bits, symbols, expected_us = AIRTIMES[octets]
    assert octets_on_air(octets) == octets + 38
    assert bits == 22 + 8 * octets_on_air(octets)
    assert (symbols - 1) * 48 < bits <= symbols * 48
    assert airtime_us(octets) == 40 + 8 * symbols == expected_us


def ratios(
    load: ChannelLoad, packets_by_interval: list[int], octets: int = 450, begin_ns: int = BEGIN_NS
) -> list[float]:
    """The ratio after each interval of 100 ms with so many packets."""
    load.ratio(begin_ns)
    found = []
    for number, packets in enumerate(packets_by_interval, 1):
        for _ in range(packets):
            load.add(octets)
        found.append(load.ratio(begin_ns + number * ChannelLoad.INTERVAL_NS))
    return found


def test_ratio_is_the_airtime_of_100_ms_averaged_with_the_100_ms_before() -> None:
    # 100 packets of 696 us in 100 ms: 69.6 %.
    assert ratios(ChannelLoad(), [100, 100, 50, 0, 0]) == pytest.approx([0.348, 0.696, 0.522, 0.174, 0.0])


def test_channel_is_never_more_than_busy() -> None:
    assert ratios(ChannelLoad(), [1000, 1000]) == [0.5, 1.0]


def test_free_channel_has_ratio_0() -> None:
    assert ratios(ChannelLoad(), [0, 0, 0]) == [0.0] * 3


def test_ratio_changes_with_whole_intervals_only() -> None:
    load = ChannelLoad()
    load.ratio(BEGIN_NS)
    load.add(450)
    assert load.ratio(BEGIN_NS + ChannelLoad.INTERVAL_NS - 1) == 0.0
    assert load.ratio(BEGIN_NS + ChannelLoad.INTERVAL_NS) == pytest.approx(0.00696 / 2)
    assert load.ratio(BEGIN_NS + ChannelLoad.INTERVAL_NS * 19 // 10) == pytest.approx(0.00696 / 2)


@pytest.mark.parametrize("interval_ms", [200, 333, 1000, 5000])
def test_station_that_seldom_sends_hears_a_busy_channel_nevertheless(interval_ms: int) -> None:
    load = ChannelLoad()
    load.ratio(BEGIN_NS)
    for number in range(1, 4):
        for _ in range(interval_ms):  # a packet each ms
            load.add(450)
        assert load.ratio(BEGIN_NS + number * interval_ms * MS) == pytest.approx(0.696, rel=0.25)


@pytest.mark.usefixtures("switching_often")
def test_no_packet_of_several_threads_is_lost() -> None:
    load, each = ChannelLoad(), 20_000

    def hear() -> None:
        for _ in range(each):
            load.add(89)

    load.ratio(BEGIN_NS)
    threads = [Thread(target=hear) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert load.ratio(BEGIN_NS + 10_000 * MS) == pytest.approx(2 * each * 216 / 10_000_000, rel=1e-9)


def test_states_are_those_of_table_a_1() -> None:
    assert [(state.name, state.from_ratio, state.off_ms) for state in DCC_STATES] == [
        ("relaxed", 0.0, 100),
        ("active 1", 0.3, 200),
        ("active 2", 0.4, 400),
        ("active 3", 0.5, 500),
        ("restrictive", 0.6, 1000),
    ]


RATIOS = {0.0: 100, 0.299: 100, 0.3: 200, 0.399: 200, 0.4: 400, 0.499: 400, 0.5: 500, 0.599: 500, 0.6: 1000, 1.0: 1000}


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("before", [0.0, 1.0])
def test_state_settles_at_the_channel_busy_ratio(ratio: float, before: float) -> None:
    dcc = ReactiveDcc()
    for number in range(10):
        dcc.state(before, BEGIN_NS + number * 100 * MS)
    states = [dcc.state(ratio, BEGIN_NS + number * 100 * MS) for number in range(10, 20)]
    assert states[-1].off_ms == RATIOS[ratio]
    assert len({state.name for state in states[4:]}) == 1


def test_state_goes_up_and_down_by_one_step_each_100_ms() -> None:
    dcc = ReactiveDcc()
    states = [dcc.state(0.9 if number < 60 else 0.1, BEGIN_NS + number * 10 * MS).name for number in range(140)]
    up = ["active 1", "active 2", "active 3", "restrictive", "restrictive", "restrictive"]
    down = ["active 3", "active 2", "active 1", "relaxed", "relaxed", "relaxed", "relaxed", "relaxed"]
    assert states == [name for name in (*up, *down) for _ in range(10)]
