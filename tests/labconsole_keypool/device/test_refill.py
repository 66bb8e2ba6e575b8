"""When keys are loaded into the token, and when they can be used."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from labconsole.clock import now_ns
from labconsole.profiles.timing_profile import load_timing
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token, open_token
from labconsole.store.errors import StoreError
from labconsole_keypool.choices import KeyOrigin, Refill
from labconsole_keypool.device.emulation import Device, DeviceOperation, Timing
from labconsole_keypool.store.key_store import KeyStore
from tests.labconsole_keypool.recorded_device import RecordedDevice
from tests.labconsole_keypool.signing_lab import PIN, RecordedReports, digest, fill, new_token, signing_engine

UNWRAP_MS = 30.0
TIMEOUT_S = 30
C, D = KeyOrigin.POOL, KeyOrigin.GENERATED


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> TokenConfiguration:
    return new_token(tmp_path_factory.mktemp("softhsm"))


@pytest.fixture
def token(configuration: TokenConfiguration) -> Iterator[Token]:
    with open_token("test", configuration, PIN) as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KeyStore]:
    with KeyStore.open(tmp_path / "keys.db", run="run") as opened:
        yield opened


@pytest.fixture
def reports() -> RecordedReports:
    return RecordedReports()


def slow_to_unwrap() -> RecordedDevice:
    """A device that unwraps in `UNWRAP_MS` and signs at once."""
    luna = load_timing("luna-sa-1700")
    sign = {time: duration.model_copy(update={"ms": 0.001}) for time, duration in luna.sign.items()}
    unwrap = luna.unwrap.model_copy(update={"ms": UNWRAP_MS})
    return RecordedDevice(Timing(luna.model_copy(update={"unwrap": unwrap, "sign": sign, "warm_up": None})))


def until(condition: Callable[[], bool]) -> None:
    deadline_ns = now_ns() + 30_000_000_000
    while not condition():
        assert now_ns() < deadline_ns, "it never came"
        time.sleep(0.005)


class PermittedDevice(Device):
    """Unwraps one key for each of its `permits`; `asked` counts the keys that it was asked to unwrap."""

    def __init__(self) -> None:
        super().__init__()
        self.permits = threading.Semaphore(0)
        self.asked = 0

    @contextmanager
    def busy(self, operation: DeviceOperation, since_ns: int | None = None) -> Iterator[int]:
        if operation is DeviceOperation.UNWRAP:
            self.asked += 1
            assert self.permits.acquire(timeout=TIMEOUT_S)
        with super().busy(operation, since_ns) as ends_ns:
            yield ends_ns


@pytest.mark.parametrize(("refill", "usable_after"), [(Refill.PARALLEL, 1), (Refill.WHEN_EMPTY, 5)])
def test_a_batch_is_usable_key_by_key_or_as_a_whole(
    token: Token, store: KeyStore, reports: RecordedReports, refill: Refill, usable_after: int
) -> None:
    fill(token, store, 5)
    device = PermittedDevice()
    with (
        signing_engine(token, store, reports, batch=5, low_water=1, refill=refill, device=device) as engine,
        ThreadPoolExecutor(1) as signer,
    ):
        engine.start_refill()
        request = signer.submit(engine.process, 0, digest(1))
        for unwrapped in range(usable_after):
            until(lambda unwrapped=unwrapped: device.asked == unwrapped + 1)
            assert not len(engine._sessions) and not request.done()
            device.permits.release()
        assert request.result(TIMEOUT_S).source is C
        if usable_after < 5:
            assert not reports.refills, "the batch is not complete"
            device.permits.release(5 - usable_after)
        until(lambda: bool(reports.refills))
    assert [keys for _, _, keys in reports.refills] == [5]


def test_keys_of_a_batch_are_unwrapped_one_after_another_in_the_device_s_time(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    fill(token, store, 5)
    device = slow_to_unwrap()
    with signing_engine(token, store, reports, batch=5, low_water=1, device=device) as engine:
        engine.start_refill()
        until(lambda: bool(reports.refills))
    unwrap_ns = round(UNWRAP_MS * 1e6)
    unwrapped = [done for done in device.operations if done.operation is DeviceOperation.UNWRAP]
    first, last = unwrapped[0], unwrapped[-1]
    assert len(unwrapped) == 5 and first.began_within(unwrap_ns, first.asked_ns, first.entered_ns)
    for before, done in itertools.pairwise(unwrapped):
        assert done.began_within(unwrap_ns, *before.free_ns), "the next one is begun when this one has ended"
    [(started_ns, finished_ns, keys)] = reports.refills
    earliest_ns, latest_ns = last.free_ns
    assert keys == 5 and started_ns <= first.asked_ns and earliest_ns <= finished_ns <= latest_ns


def test_a_refill_begins_below_the_low_water_mark_and_loads_a_batch(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    fill(token, store, 30)
    with signing_engine(token, store, reports, batch=6, low_water=4) as engine:
        engine.fill(5)
        engine.process(0, digest(1))
        engine.start_refill()
        time.sleep(0.05)
        assert reports.counts["keys_loaded"] == 5, "four are left, which are not fewer than four"
        engine.process(0, digest(2))
        until(lambda: reports.counts["keys_loaded"] == 11)
    assert [keys for _, _, keys in reports.refills] == [5, 6]


def test_a_pause_holds_while_there_are_keys(token: Token, store: KeyStore, reports: RecordedReports) -> None:
    fill(token, store, 10)
    with signing_engine(token, store, reports, batch=3, low_water=3) as engine:
        engine.fill(2)
        engine.pause_refill(True)
        engine.start_refill()
        engine.process(0, digest(1))
        time.sleep(0.05)
        assert reports.counts["keys_loaded"] == 2, "one is left, fewer than three, and it waits all the same"
        engine.process(0, digest(2))
        assert engine.process(0, digest(3)).source is C, "without any key it loads though it pauses"
        engine.pause_refill(False)
        until(lambda: reports.counts["keys_loaded"] >= 8)


def test_keys_that_are_added_while_it_runs_are_found(token: Token, store: KeyStore, reports: RecordedReports) -> None:
    with signing_engine(token, store, reports, low_water=2) as engine:
        engine.start_refill()
        assert engine.process(0, digest(1)).source is D
        fill(token, store, 3)
        until(lambda: reports.counts["keys_loaded"] == 3)
        assert [engine.process(0, digest(number)).source for number in range(2, 6)] == [C, C, C, D]


def test_keys_that_are_added_to_an_empty_store_are_waited_for_while_they_are_unwrapped(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    with signing_engine(token, store, reports, low_water=2, device=slow_to_unwrap()) as engine:
        engine.start_refill()
        assert engine.process(0, digest(1)).source is D
        fill(token, store, 3)
        until(lambda: reports.counts["keys_loaded"] >= 1)
        assert [engine.process(0, digest(number)).source for number in range(2, 5)] == [C, C, C]


def test_threads_wait_for_keys_that_are_on_their_way(token: Token, store: KeyStore, reports: RecordedReports) -> None:
    fill(token, store, 8)
    sources: list[KeyOrigin] = []
    with signing_engine(
        token, store, reports, threads=4, batch=8, low_water=1, refill=Refill.WHEN_EMPTY, device=slow_to_unwrap()
    ) as engine:
        engine.start_refill()
        threads = [
            threading.Thread(target=lambda number=number: sources.append(engine.process(number, digest(number)).source))
            for number in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sources == [C] * 4


class FullerThanItSays(Device):
    """A token that does not report its free memory, as most do not."""

    @property
    def room(self) -> int:
        return 1_000


def test_a_token_that_turns_out_to_be_full_keeps_its_claimed_keys_for_later(
    token: Token, store: KeyStore, reports: RecordedReports
) -> None:
    fill(token, store, 9)
    with signing_engine(token, store, reports, batch=9, low_water=5, device=FullerThanItSays(ram=4)) as engine:
        engine.start_refill()
        done = [engine.process(0, digest(number)) for number in range(9)]
    assert [one.source for one in done] == [C] * 9
    assert store.counts().used == 9 and store.counts().invalid == 0


def test_fault_of_a_refill_is_raised_to_waiting_threads(
    token: Token, store: KeyStore, reports: RecordedReports, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(token, store, 2)
    with signing_engine(token, store, reports) as engine:

        def locked(*arguments: object) -> None:
            raise StoreError("The key store is locked: try again.")

        monkeypatch.setattr(store, "claim", locked)
        engine.start_refill()
        with pytest.raises(StoreError, match="is locked"):
            engine.process(0, digest(1))
