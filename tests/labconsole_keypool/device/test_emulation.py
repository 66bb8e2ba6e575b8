"""An emulated device: the times of its profile, and its capacity.

Times are judged as those until which the device sleeps, which no busy computer changes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from labconsole.clock import now_ns
from labconsole.profiles.timing_profile import Duration, load_timing
from labconsole.security.token.errors import TokenFullError
from labconsole_keypool.choices import SignTime
from labconsole_keypool.device import emulation
from labconsole_keypool.device.emulation import Device, DeviceOperation, Timing, sleep_until
from tests.labconsole_keypool.recorded_device import RecordedDevice, RecordedOperation

LUNA = load_timing("luna-sa-1700")
COLD_LUNA = LUNA.model_copy(update={"warm_up": None})
TIMEOUT_S = 30


@dataclass(frozen=True)
class Sleep:
    """A device slept from `began_ns` until `until_ns`."""

    began_ns: int
    until_ns: int


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[Sleep]:
    """What devices have slept."""
    recorded: list[Sleep] = []

    def recording(until_ns: int) -> None:
        recorded.append(Sleep(now_ns(), until_ns))
        sleep_until(until_ns)

    monkeypatch.setattr(emulation, "sleep_until", recording)
    return recorded


def nothing() -> None:
    return


def performed(
    device: RecordedDevice, operation: DeviceOperation, work: Callable[[], object] = nothing
) -> RecordedOperation:
    """An operation of the device, around `work`."""
    with device.busy(operation):
        work()
    return device.operations[-1]


def lasts(done: RecordedOperation, duration_ms: float) -> bool:
    """Whether an operation that did not wait for its turn takes this long."""
    return done.began_within(round(duration_ms * 1e6), done.asked_ns, done.entered_ns)


@pytest.mark.parametrize(
    ("operation", "ms"),
    [
        (DeviceOperation.GENERATE, 588),
        (DeviceOperation.WRAP, 121),
        (DeviceOperation.UNWRAP, 70),
        (DeviceOperation.SIGN, 38),
    ],
)
def test_operation_takes_the_time_of_the_profile(operation: DeviceOperation, ms: int, sleeps: list[Sleep]) -> None:
    done = performed(RecordedDevice(Timing(COLD_LUNA, SignTime.STOCKHOLM_BASE_RATE, speed=10)), operation)
    assert lasts(done, ms / 10)
    assert [slept.until_ns for slept in sleeps] == [done.ends_ns]


def test_the_real_operation_is_inside() -> None:
    done = performed(RecordedDevice(Timing(LUNA, speed=0.5)), DeviceOperation.UNWRAP, lambda: time.sleep(0.05))
    assert lasts(done, 140)


def test_one_that_takes_longer_than_the_device_is_not_slowed(monkeypatch: pytest.MonkeyPatch) -> None:
    slept_s: list[float] = []
    monkeypatch.setattr(emulation, "time", SimpleNamespace(sleep=slept_s.append))
    done = performed(RecordedDevice(Timing(LUNA, speed=100)), DeviceOperation.UNWRAP, lambda: time.sleep(0.02))
    assert done.ends_ns < done.worked_ns and not slept_s


def test_the_device_sleeps_for_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    slept_s: list[float] = []
    monkeypatch.setattr(emulation, "time", SimpleNamespace(sleep=slept_s.append))
    before_ns = now_ns()
    sleep_until(until_ns := before_ns + 60_000_000_000)
    after_ns = now_ns()
    [seconds] = slept_s
    assert until_ns - after_ns <= round(seconds * 1e9) <= 60_000_000_000


def test_the_first_signature_warms_the_device_up() -> None:
    device = RecordedDevice(Timing(LUNA, SignTime.MALMO, speed=4))
    first, second = (performed(device, DeviceOperation.SIGN) for _ in range(2))
    assert lasts(first, 148) and lasts(second, 5)


def test_a_device_that_is_warm_signs_as_fast_the_first_time(sleeps: list[Sleep]) -> None:
    device = RecordedDevice(Timing(LUNA, SignTime.MALMO, speed=4))
    before_ns = now_ns()
    device.warm_up()
    [warming_up] = sleeps
    assert warming_up.until_ns - warming_up.began_ns <= 143_000_000 <= warming_up.until_ns - before_ns
    assert now_ns() >= warming_up.until_ns and lasts(performed(device, DeviceOperation.SIGN), 5)


def test_the_connection_s_set_up_passes_once(sleeps: list[Sleep]) -> None:
    before_ns = now_ns()
    Device(Timing(LUNA, speed=50)).connect()
    [connecting] = sleeps
    assert connecting.until_ns - connecting.began_ns <= 54_400_000 <= connecting.until_ns - before_ns
    assert now_ns() >= connecting.until_ns


@pytest.mark.parametrize("operation", [DeviceOperation.GENERATE, DeviceOperation.UNWRAP])
def test_operations_that_take_turns(operation: DeviceOperation) -> None:
    ms = Timing(LUNA).duration_ns(operation) / 1e6
    device = RecordedDevice(Timing(LUNA, speed=ms / 20))
    began_ns = now_ns()
    together(device, operation, threads=3)
    assert now_ns() - began_ns >= 60e6


@pytest.mark.parametrize(("threads", "ms_a_signature"), [(2, 15), (4, 6.9)])
def test_threads_together_sign_as_fast_as_in_table_2_10(threads: int, ms_a_signature: float) -> None:
    """None waits for another one's end: in each round, all of them are signing at some time."""
    device = RecordedDevice(Timing(COLD_LUNA, SignTime.STOCKHOLM))
    device.threads = threads
    signing = threading.Barrier(threads, timeout=TIMEOUT_S)
    together(device, DeviceOperation.SIGN, threads, times=3, work=signing.wait)
    assert len(device.operations) == 3 * threads and not signing.broken
    assert all(lasts(done, threads * ms_a_signature) for done in device.operations)


def together(
    device: RecordedDevice,
    operation: DeviceOperation,
    threads: int,
    times: int = 1,
    work: Callable[[], object] = nothing,
) -> None:
    """Perform `times` operations on each of `threads`."""

    def perform() -> None:
        for _ in range(times):
            performed(device, operation, work)

    workers = [threading.Thread(target=perform) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def test_signing_continues_during_unwrapping() -> None:
    device = RecordedDevice(Timing(COLD_LUNA, SignTime.MALMO, speed=0.5))
    with device.busy(DeviceOperation.UNWRAP):
        signing = threading.Thread(target=performed, args=(device, DeviceOperation.SIGN))
        signing.start()
        signing.join(TIMEOUT_S)
        assert not signing.is_alive(), "it waits for the end of the unwrapping"
    assert lasts(device.operations[0], 40)


def test_time_between_two_operations_counts_as_part_of_the_second(sleeps: list[Sleep]) -> None:
    device = RecordedDevice(Timing(COLD_LUNA, SignTime.MALMO))
    since_ns = now_ns()
    time.sleep(0.01)
    with device.busy(DeviceOperation.SIGN, since_ns) as ends_ns:
        pass
    assert ends_ns == since_ns + 20_000_000 <= now_ns()
    assert [slept.until_ns for slept in sleeps] == [ends_ns]


def test_preparations_are_not_slowed(sleeps: list[Sleep]) -> None:
    device = Device(Timing(LUNA))
    with device.hurrying(), device.busy(DeviceOperation.GENERATE):
        pass
    with Device().busy(DeviceOperation.GENERATE):
        pass
    assert not sleeps
    with Device(Timing(LUNA, speed=1000)).busy(DeviceOperation.GENERATE):
        pass
    assert sleeps


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
