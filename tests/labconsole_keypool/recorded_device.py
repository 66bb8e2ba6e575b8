"""An emulated device that records when its operations end for it, which does not depend on how busy the computer is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from labconsole.clock import now_ns
from labconsole_keypool.device.emulation import Device, DeviceOperation, Timing


@dataclass
class RecordedOperation:
    """The times of an operation, of `clock.now_ns`."""

    operation: DeviceOperation
    asked_ns: int
    """Before the device was asked for it."""
    entered_ns: int
    """When the device had begun it."""
    ends_ns: int
    """When it ends for the device."""
    worked_ns: int = 0
    """When the real operation was done."""
    left_ns: int = 0
    """When its thread continued."""

    def began_within(self, duration_ns: int, first_ns: int, last_ns: int) -> bool:
        """Whether the device needed exactly this long for it, if it began it between these two times."""
        return first_ns <= self.ends_ns - duration_ns <= last_ns and self.ends_ns <= self.left_ns

    @property
    def free_ns(self) -> tuple[int, int]:
        """The earliest and the latest time from which the device may have been free for another one."""
        return self.ends_ns, max(self.ends_ns, self.worked_ns)


class RecordedDevice(Device):
    """Emulates `timing` as `Device` does; `operations` are in the order of their ends."""

    def __init__(self, timing: Timing | None = None) -> None:
        super().__init__(timing)
        self.operations: list[RecordedOperation] = []

    @contextmanager
    def busy(self, operation: DeviceOperation, since_ns: int | None = None) -> Iterator[int]:
        """The block is this operation."""
        asked_ns = now_ns()
        with super().busy(operation, since_ns) as ends_ns:
            recorded = RecordedOperation(operation, asked_ns, now_ns(), ends_ns)
            yield ends_ns
            recorded.worked_ns = now_ns()
        recorded.left_ns = now_ns()
        self.operations.append(recorded)
