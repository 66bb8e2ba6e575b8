"""The two ends of a clock comparison: the sender's console asks, the receiver's answers.

The asking end sends `ping` on one queue, the other one `pong` on the other queue: before T0, and after the last
message. The asking end also sends each `offset`, so that both runs have it. An end that leaves early sends `gone`.
Messages of other sessions, from runs before, are ignored.
"""

from __future__ import annotations

import platform
import secrets
import time
from collections.abc import Iterator
from typing import Any

from labconsole.clock import now_ns, wall_offset_ns
from labconsole.clock_comparison import AFTER, BEFORE, COMPARED, Exchange, Offset, best_offset
from labconsole.errors import UserError
from labconsole.model.role import RoleContext
from labconsole.model.trial import Level
from labconsole_amqp.clocks.clock_link import ClockLink
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.preflight.checks import Check, compared_clocks_check, trial_id_check

RUN_OVER = {"do": "run over"}
"""The command to a clock role that its senders have sent, or its receivers received, everything."""
_PING_S, _SLOW_PING_S, _QUICK_FOR_S = 0.2, 1.0, 10.0
"""Between pings until the other console answers: after a while fewer, since they stay in the queue."""
_FEWEST, _MOST, _MEASURE_S = 8, 200, 0.5
"""Exchanges of one measurement, which lasts this time unless they are too few."""
_REPLY_S = 5.0
_QUIET_S, _LONGEST_CLEARING_S = 0.2, 2.0
_LEAVE_S = 20.0
"""How long the receiver's console waits for the measurement after the run."""
_POLL_S = 0.1


_TEXTS = {"kind": 10, "session": 32, "trial": 64, "host": 255, "phase": 10}
"""The longest texts of messages, which another program may have sent."""
_OF_KIND = {
    "ping": ("n",),
    "pong": ("n", "t2", "t3", "over"),
    "offset": ("phase", *Offset.__dataclass_fields__),
    "gone": (),
}
_LARGEST = 2**62


class WrongTrialError(UserError):
    """The two consoles have different trial ids: the run must not begin."""


def longest_after_s(parameters: AmqpParameters) -> float:
    """How long the measurement after the run may take: the receiver may still wait for messages."""
    return parameters.longest_gap + _LEAVE_S


class _ClockEnd:
    """What both ends share."""

    def __init__(self, context: RoleContext, link: ClockLink, parameters: AmqpParameters) -> None:
        self.context = context
        self.link = link
        self.parameters = parameters
        self.trial = parameters.trial_id
        self.session = ""
        self.wall_offset_ns = wall_offset_ns()
        self.run_is_over = False
        self.known: set[str] = set()
        """The phases in which the offset was measured."""

    def send(self, kind: str, **content: Any) -> int:
        """Send a message of this session; returns when, 0 where the broker accepts none now. Raises UserError."""
        about = {"session": self.session, "trial": self.trial, "host": platform.node(), "wall": self.wall_offset_ns}
        return self.link.send({"kind": kind, **about, **content})

    def leave(self) -> None:
        """Tell the other end that nothing more will come. Raises UserError."""
        self.send("gone")
        self.link.receive(0)

    def messages(self, timeout_s: float) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield what has come, with the time, and do what a role does at intervals. Raises UserError."""
        self.context.tick()
        if self.context.take_command() == RUN_OVER:
            self.run_is_over = True
        yield from ((at_ns, one) for at_ns, one in self.link.receive(timeout_s) if _is_well_formed(one))

    def same_trial(self, theirs: str) -> bool:
        """Whether the other console's trial id, which may be empty, is not another one."""
        return not theirs or not self.trial or theirs == self.trial

    def refuse(self, theirs: str) -> None:
        """Raises WrongTrialError."""
        check = trial_id_check(self.trial, theirs)
        self.context.event("preflight", f"Preflight failed: {check.sentence}", Level.ERROR, checks=[check.to_json()])
        raise WrongTrialError(check.sentence)

    def record(self, phase: str, offset: Offset, host: str) -> list[Check]:
        """Record an offset; returns the checks that it gives, before the run."""
        checks = [trial_id_check(self.trial, self.trial), compared_clocks_check(offset)] if phase == BEFORE else []
        about = {"phase": phase, "trial": self.trial, "host": host, "checks": [check.to_json() for check in checks]}
        sentence = f"Clocks compared {phase} the run, with {host}: {compared_clocks_check(offset).sentence}"
        self.context.event(COMPARED, sentence, Level.INFO, **about, **offset.to_json())
        self.known.add(phase)
        return checks


class AskingEnd(_ClockEnd):
    """The sender's console."""

    def __init__(self, context: RoleContext, link: ClockLink, parameters: AmqpParameters) -> None:
        super().__init__(context, link, parameters)
        self.session = secrets.token_hex(8)
        self.trial = self.trial or secrets.token_hex(6)
        self._pings = 0

    def before(self) -> list[Check] | None:
        """Wait for the other console and measure; None where it does not answer in time. Raises UserError."""
        wait_s = self.parameters.wait_for_peer
        self.context.event("waiting", f"Waiting up to {wait_s:g} s for the receiver's console, to compare the clocks.")
        return self._compare(BEFORE, wait_s)

    def after(self) -> bool:
        """Once the run is over here, wait until it is over there and measure; whether it was possible.

        Raises UserError.
        """
        while not self.run_is_over:
            if self.context.stop_requested:
                self.leave()
                return False
            for _, message in self.messages(_POLL_S):
                if self._is_mine(message, "gone"):
                    return False
        return self._compare(AFTER, longest_after_s(self.parameters)) is not None

    def _compare(self, phase: str, longest_s: float) -> list[Check] | None:
        answer = self._contact(phase, longest_s)
        if answer is None:
            return None
        exchanges: list[Exchange] = []
        began = time.monotonic()
        while len(exchanges) < _MOST and (len(exchanges) < _FEWEST or time.monotonic() - began < _MEASURE_S):
            if self.context.stop_requested or (exchange := self._exchange(phase, _REPLY_S)) is None:
                return None
            exchanges.append(exchange[0])
        offset = best_offset(exchanges, self.wall_offset_ns, answer["wall"])
        if offset is None:
            return None
        self.send("offset", phase=phase, **offset.to_json())
        self.link.receive(0)
        return self.record(phase, offset, answer["host"])

    def _contact(self, phase: str, longest_s: float) -> dict[str, Any] | None:
        """Ping until the other end answers, after the run until it is over there; its answer, None: it did not come."""
        began = time.monotonic()
        while (passed_s := time.monotonic() - began) < longest_s and not self.context.stop_requested:
            found = self._exchange(phase, _PING_S if passed_s < _QUICK_FOR_S else _SLOW_PING_S)
            if found is not None:
                answer = found[1]
                if answer["kind"] == "gone":
                    return None
                if not self.same_trial(answer["trial"]):
                    self.refuse(answer["trial"])
                if phase == BEFORE or answer["over"]:
                    return answer
                time.sleep(_POLL_S)
        if self.context.stop_requested:
            self.leave()
        return None

    def _exchange(self, phase: str, timeout_s: float) -> tuple[Exchange, dict[str, Any]] | None:
        """One ping with its answer, or `gone` with an exchange of zeros; None without any in time."""
        self._pings += 1
        sent_ns = self.send("ping", n=self._pings, phase=phase)
        until = time.monotonic() + timeout_s
        while (left := until - time.monotonic()) > 0:
            for received_ns, message in self.messages(min(left, _POLL_S)):
                if self._is_mine(message, "gone"):
                    return Exchange(0, 0, 0, 0), message
                if self._is_mine(message, "pong") and message["n"] == self._pings and sent_ns:
                    return Exchange(sent_ns, message["t2"], message["t3"], received_ns), message
            if self.context.stop_requested:
                return None
        return None

    def _is_mine(self, message: dict[str, Any], kind: str) -> bool:
        return (message["kind"], message["session"]) == (kind, self.session)


class AnsweringEnd(_ClockEnd):
    """The receiver's console."""

    def __init__(self, context: RoleContext, link: ClockLink, parameters: AmqpParameters) -> None:
        super().__init__(context, link, parameters)
        self._left = False

    def answer(self) -> None:
        """Answer until the run is over at both ends. Raises UserError."""
        self._clear()
        leave_at = None
        while not (self._left or AFTER in self.known or self._overdue(leave_at)):
            if self.context.stop_requested:
                self.leave()
                break
            for received_ns, message in self.messages(_POLL_S):
                self._handle(received_ns, message)
            if self.run_is_over and leave_at is None:
                leave_at = time.monotonic() + (_LEAVE_S if BEFORE in self.known else 0)

    def _overdue(self, leave_at: float | None) -> bool:
        return leave_at is not None and time.monotonic() > leave_at

    def _clear(self) -> None:
        """Discard what runs before have left in the queue."""
        until = time.monotonic() + _LONGEST_CLEARING_S
        while time.monotonic() < until and any(True for _ in self.messages(_QUIET_S)):
            pass

    def _handle(self, received_ns: int, message: dict[str, Any]) -> None:
        session, kind = message["session"], message["kind"]
        if self.known and session != self.session:
            return
        if kind == "ping":
            self.session = session
            theirs = message["trial"]
            self.send("pong", n=message["n"], t2=received_ns, t3=now_ns(), over=self.run_is_over)
            if not self.same_trial(theirs):
                self.link.receive(0)
                self.refuse(theirs)
            self.trial = self.trial or theirs
        elif kind == "offset" and session == self.session and message["phase"] not in self.known:
            self.record(message["phase"], Offset.from_json(message), message["host"])
        elif kind == "gone" and session == self.session:
            self._left = True


def _is_well_formed(message: dict[str, Any]) -> bool:
    """Whether a message has what one of its kind has: short printable texts, integers of 8 bytes, a possible offset."""
    if str(message.get("kind")) not in _OF_KIND:
        return False
    for name in ("kind", "session", "trial", "host", "wall", *_OF_KIND[str(message["kind"])]):
        value = message.get(name)
        if name in _TEXTS:
            if not isinstance(value, str) or len(value) > _TEXTS[name] or not value.isprintable():
                return False
        elif not isinstance(value, int) or isinstance(value, bool) != (name == "over") or abs(value) > _LARGEST:
            return False
    if message["kind"] != "offset":
        return True
    return message["phase"] in (BEFORE, AFTER) and min(message["uncertainty_ns"], message["exchanges"]) >= 1
