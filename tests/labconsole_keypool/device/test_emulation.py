"""An emulated device: the times of its profile, and its capacity."""

from __future__ import annotations

import threading
import time

import pytest

from labconsole.clock import now_ns
from labconsole.profiles.timing_profile import Duration, load_timing
from labconsole.security.token.errors import TokenFullError
from labconsole_keypool.choices import SignTime
from labconsole_keypool.device.emulation import Device, DeviceOperation, Timing

LUNA = load_timing("luna-sa-1700")
TOLERANCE_NS = 60_000_000
"""Time by which a busy machine oversleeps."""


def taken_ns(device: Device, operation: DeviceOperation, times: int = 1) -> int:
    began_ns = now_ns()
    for _ in range(times):
        with device.busy(operation):
            pass
    return now_ns() - began_ns


@pytest.mark.parametrize(
    ("operation", "ms"),
    [
        (DeviceOperation.GENERATE, 588),
        (DeviceOperation.WRAP, 121),
        (DeviceOperation.UNWRAP, 70),
        (DeviceOperation.SIGN, 38),
    ],
)
def test_operation_takes_the_time_of_the_profile(operation: DeviceOperation, ms: int) -> None:
    timing = Timing(LUNA.model_copy(update={"warm_up": None}), SignTime.STOCKHOLM_BASE_RATE, speed=10)
    taken = taken_ns(Device(timing), operation)
    assert ms * 1e5 <= taken < ms * 1e5 + TOLERANCE_NS


def test_the_real_operation_is_inside() -> None:
    device = Device(Timing(LUNA, speed=0.5))
    began_ns = now_ns()
    with device.busy(DeviceOperation.UNWRAP):
        time.sleep(0.1)
    assert 140e6 <= now_ns() - began_ns < 140e6 + TOLERANCE_NS


def test_one_that_takes_longer_than_the_device_is_not_slowed() -> None:
    device = Device(Timing(LUNA, speed=100))
    began_ns = now_ns()
    with device.busy(DeviceOperation.UNWRAP):
        time.sleep(0.02)
    assert now_ns() - began_ns < 20e6 + TOLERANCE_NS


def test_the_first_signature_warms_the_device_up() -> None:
    device = Device(Timing(LUNA, SignTime.MALMO, speed=4))
    first, second = (taken_ns(device, DeviceOperation.SIGN) for _ in range(2))
    assert first >= 148e6 and second < 5e6 + TOLERANCE_NS


def test_a_device_that_is_warm_signs_as_fast_the_first_time() -> None:
    device = Device(Timing(LUNA, SignTime.MALMO, speed=4))
    began_ns = now_ns()
    device.warm_up()
    assert now_ns() - began_ns >= 143e6
    assert taken_ns(device, DeviceOperation.SIGN) < 5e6 + TOLERANCE_NS


def test_the_connection_s_set_up_passes_once() -> None:
    began_ns = now_ns()
    Device(Timing(LUNA, speed=50)).connect()
    assert 54.4e6 <= now_ns() - began_ns < 54.4e6 + TOLERANCE_NS


@pytest.mark.parametrize("operation", [DeviceOperation.GENERATE, DeviceOperation.UNWRAP])
def test_operations_that_take_turns(operation: DeviceOperation) -> None:
    ms = Timing(LUNA).duration_ns(operation) / 1e6
    assert together(Device(Timing(LUNA, speed=ms / 20)), operation, threads=3) >= 60e6


@pytest.mark.parametrize(("threads", "ms_a_signature"), [(2, 15), (4, 6.9)])
def test_threads_together_sign_as_fast_as_in_table_2_10(threads: int, ms_a_signature: float) -> None:
    device = Device(Timing(LUNA.model_copy(update={"warm_up": None}), SignTime.STOCKHOLM, speed=0.5))
    device.threads = threads
    expected_ns = threads * 3 * 2 * ms_a_signature * 1e6
    taken_ns = together(device, DeviceOperation.SIGN, threads, times=3)
    assert expected_ns <= taken_ns < 1.9 * expected_ns, "in turns they would take as many times longer as they are"


def together(device: Device, operation: DeviceOperation, threads: int, times: int = 1) -> int:
    """How long `threads` need for `times` operations each, ns."""
    workers = [threading.Thread(target=taken_ns, args=(device, operation, times)) for _ in range(threads)]
    began_ns = now_ns()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return now_ns() - began_ns


def test_signing_continues_during_unwrapping() -> None:
    device = Device(Timing(LUNA.model_copy(update={"warm_up": None}), SignTime.MALMO, speed=0.5))
    unwrapping = threading.Thread(target=taken_ns, args=(device, DeviceOperation.UNWRAP))
    unwrapping.start()
    assert taken_ns(device, DeviceOperation.SIGN) < 40e6 + TOLERANCE_NS
    unwrapping.join()


def test_time_between_two_operations_counts_as_part_of_the_second() -> None:
    device = Device(Timing(LUNA.model_copy(update={"warm_up": None}), SignTime.MALMO))
    since_ns = now_ns()
    time.sleep(0.01)
    with device.busy(DeviceOperation.SIGN, since_ns) as ends_ns:
        pass
    assert ends_ns == since_ns + 20_000_000
    assert 20e6 <= now_ns() - since_ns < 20e6 + TOLERANCE_NS


def test_preparations_are_not_slowed() -> None:
    device = Device(Timing(LUNA))
    with device.hurrying():
        assert taken_ns(device, DeviceOperation.GENERATE, times=100) < 500e6
    assert taken_ns(Device(), DeviceOperation.GENERATE, times=100) < 500e6


def test_a_profile_without_a_value_is_as_fast_as_the_token() -> None:
    bare = LUNA.model_copy(update={"wrap": None, "warm_up": None, "connection_set_up": None})
    timing = Timing(bare)
    assert (timing.duration_ns(DeviceOperation.WRAP), timing.warm_up_ns, timing.connection_set_up_ns) == (0, 0, 0)
    distant = Timing(bare.model_copy(update={"one_way": Duration(ms=10, reference="none")}))
    assert distant.duration_ns(DeviceOperation.SIGN) - timing.duration_ns(DeviceOperation.SIGN) == 20_000_000


def test_the_ram_holds_so_many_keys_and_no_more() -> None:
    device = Device(ram=2)
    for _ in range(2):
        device.take_room()
    assert device.room == 0
    with pytest.raises(TokenFullError, match=r"^The token is full: it holds 2 key pairs"):
        device.take_room()
    device.give_room()
    assert device.room == 1
    device.take_room()
