"""Seals messages in threads ahead of the link, and returns them in their order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event
from types import TracebackType

from labconsole_amqp.envelopes.message_envelope import SealedMessage


class SealingPool:
    """Threads that call `make(sequence)` for each ordered sequence, from `first` on. All methods belong to one thread.

    `on_ready` is called, on any thread, when the next message in order is ready.
    """

    def __init__(
        self, make: Callable[[int], SealedMessage], threads: int, on_ready: Callable[[], None], *, first: int = 0
    ) -> None:
        self._make = make
        self._on_ready = on_ready
        self._orders: SimpleQueue[int | None] = SimpleQueue()
        self._ready: dict[int, SealedMessage] = {}
        self._ordered = first
        self._taken = first
        self._gathered, self._enough = 0, Event()
        """How many messages `gather` waits for."""
        self._threads = ThreadPoolExecutor(threads)
        self._working = [self._threads.submit(self._work) for _ in range(threads)]

    def order(self, until: int) -> None:
        """Order all messages before sequence `until`."""
        for sequence in range(self._ordered, until):
            self._orders.put(sequence)
        self._ordered = max(self._ordered, until)

    def take(self, limit: int) -> list[SealedMessage]:
        """The next messages in order that are ready, at most `limit`. Raises what `make` raised."""
        taken: list[SealedMessage] = []
        while len(taken) < limit and (sealed := self._ready.pop(self._taken, None)) is not None:
            taken.append(sealed)
            self._taken += 1
        if not taken:
            for thread in self._working:
                if thread.done():
                    thread.result()
        return taken

    def gather(self, count: int, timeout_s: float) -> None:
        """Wait until so many messages are ready, but this long at most."""
        self._gathered = count
        self._enough.clear()
        if len(self._ready) < count:
            self._enough.wait(timeout_s)

    def __enter__(self) -> SealingPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _ in self._working:
            self._orders.put(None)
        self._threads.shutdown()

    def _work(self) -> None:
        try:
            while (sequence := self._orders.get()) is not None:
                self._ready[sequence] = self._make(sequence)
                if sequence == self._taken:
                    self._on_ready()
                if len(self._ready) >= self._gathered:
                    self._enough.set()
        except BaseException:
            self._on_ready()
            raise
