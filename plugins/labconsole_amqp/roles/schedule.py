"""The schedule of a sender's messages: by credit or at a rate, up to a number or a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.series import OPEN_LOOP, Phase

FULL_SPEED_WARM_UP_S: Final = 0.3
OPEN_LOOP_WARM_UP_S: Final = 0.2
_NO_END: Final = 2**62


@dataclass(frozen=True)
class SendSchedule:
    """A sender's messages from sequence `first` on, from `begin_ns` (`clock.now_ns`) on.

    `rate` is in messages per second, None in a closed loop, where a message is due when it is sent. It ends after
    `count` messages, or at `end_ns`. Messages due within `warm_up_ns` are of phase `warm_up`, the others of `phase`.
    """

    begin_ns: int
    first: int = 0
    rate: float | None = None
    count: int = _NO_END
    end_ns: int = _NO_END
    warm_up_ns: int = 0
    warm_up: Phase = Phase.WHOLE
    phase: Phase = Phase.WHOLE

    def due(self, now_ns: int) -> int:
        """The sequence up to which (exclusive) messages are due by now."""
        if self.rate is None:
            return self.first + self.count
        return self.first + min(self.count, int((now_ns - self.begin_ns) * self.rate / 1e9) + 1)

    def over(self, done: int, now_ns: int) -> bool:
        """Whether nothing is left to send once all before sequence `done` were sent."""
        return done >= self.first + self.count or now_ns >= self.end_ns

    def due_ns(self, sequences: ArrayLike) -> NDArray[np.int64]:
        """The times at which messages of an open loop are due."""
        assert self.rate is not None
        return self.begin_ns + ((np.asarray(sequences) - self.first) * (1e9 / self.rate)).astype(np.int64)

    def intended_ns(self, sequences: NDArray[np.int64], sent_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """The times at which messages sent at `sent_ns` were due."""
        return sent_ns if self.rate is None else self.due_ns(sequences)

    def phases(self, intended_ns: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The phase of each message by the time at which it was due."""
        return np.where(intended_ns < self.begin_ns + self.warm_up_ns, self.warm_up, self.phase).astype(np.uint8)


def whole_run(parameters: AmqpParameters, begin_ns: int) -> SendSchedule:
    """A run without phases: a number of messages, in a closed or an open loop."""
    rate = parameters.rate if parameters.is_steady else None
    return SendSchedule(begin_ns, rate=rate, count=parameters.per_sender)


def full_speed(parameters: AmqpParameters, begin_ns: int) -> SendSchedule:
    """The first of two phases: a closed loop for a time."""
    warm_up_ns = int(FULL_SPEED_WARM_UP_S * 1e9)
    return SendSchedule(
        begin_ns,
        end_ns=begin_ns + warm_up_ns + int(parameters.full_speed * 1e9),
        warm_up_ns=warm_up_ns,
        warm_up=Phase.FULL_SPEED_WARM_UP,
        phase=Phase.FULL_SPEED,
    )


def open_loop(begin_ns: int, first: int, rate: float, seconds: float) -> SendSchedule:
    """The second of two phases, or a step of a sweep: all messages that are due within `seconds` after the warm-up,
    from sequence `first` on."""
    return SendSchedule(
        begin_ns,
        first=first,
        rate=rate,
        count=math.ceil((OPEN_LOOP_WARM_UP_S + seconds) * rate),
        warm_up_ns=int(OPEN_LOOP_WARM_UP_S * 1e9),
        warm_up=Phase.OPEN_LOOP_WARM_UP,
        phase=Phase.OPEN_LOOP,
    )


def open_loop_command(after_ns: int, first: Sequence[int], rate: float, seconds: float) -> dict[str, Any]:
    """The command that starts the second of two phases, or a step of a sweep, `after_ns` after T0: see `open_loop`.

    The clock of a role may be another one than that of the run; both know T0. `first`: each sender's first sequence.
    """
    return {"do": OPEN_LOOP, "after_ns": after_ns, "first": list(first), "rate": rate, "seconds": seconds}


def commanded(command: Mapping[str, Any], start_ns: int, first: int) -> SendSchedule:
    """The schedule of an `open_loop_command` from sequence `first` on, in a role whose T0 is `start_ns`."""
    return open_loop(start_ns + command["after_ns"], first, command["rate"], command["seconds"])
