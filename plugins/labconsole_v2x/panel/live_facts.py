"""The facts of a live scenario before it is run: its load, how stations are spread, and whether this computer can."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.number_format import format_number
from labconsole_ui.panels.trial_panel import Fact
from labconsole_v2x.choices import Generation, Receivers
from labconsole_v2x.live.live_parameters import LiveParameters

_translate = QCoreApplication.translate
_CONTEXT = "LivePanel"
_FULL = 0.8
"""Share of a core from which on queues grow."""
_HANDLING = 3.0
"""What a packet costs its sender (encoded, sent, recorded), or its receiver (read, queued, recorded), as a multiple of
what the benchmark needs to read and decode it, without the signature: both are work of the interpreter. Measured on an
AMD EPYC as the CPU time of both processes, 1,500 to 4,500 messages a second, with full security and without it: 2.3 to
4.1."""


@dataclass(frozen=True)
class Speed:
    """What one core does a second by a benchmark; None: not measured yet."""

    verify: float | None = None
    """Packets verified and decoded."""
    raw_verify: float | None = None
    """Signatures verified."""
    sign: float | None = None
    """Packets signed."""


def live_facts(parameters: LiveParameters, speed: Speed) -> list[Fact]:
    """Messages, signatures and verifications a second, processes, and whether a computer of this speed carries them."""
    return list(_facts(parameters, speed))


def _facts(parameters: LiveParameters, speed: Speed) -> Iterator[Fact]:
    messages = parameters.most_messages
    most = "" if parameters.generation is Generation.FIXED and not parameters.dcc else "≤ "
    yield Fact(
        _translate(_CONTEXT, "Messages"),
        f"{most}{format_number(messages)} msg/s",
        _translate(_CONTEXT, "CAMs a second of all sending stations together"),
    )
    if parameters.security.signs:
        yield Fact(
            _translate(_CONTEXT, "Signatures"),
            f"{most}{format_number(messages)} /s",
            _translate(_CONTEXT, "Each CAM is signed by itself"),
        )
    verified = verifications(parameters)
    if verified:
        yield Fact(
            _translate(_CONTEXT, "Verifications"),
            f"{most}{format_number(verified)} /s",
            _translate(_CONTEXT, "Of all receivers together: each verifies what all others send"),
        )
    groups = parameters.station_groups
    each = "–".join(map(str, sorted({len(group) for group in groups})))
    stations = _translate(_CONTEXT, "{0} × 1 station") if each == "1" else _translate(_CONTEXT, "{0} × {1} stations")
    yield Fact(
        _translate(_CONTEXT, "Processes"),
        stations.format(len(groups), each)
        + ("" if parameters.receivers is Receivers.ALL else _translate(_CONTEXT, " + receiver")),
        _translate(_CONTEXT, "Sending stations are spread over processes; the receiver is one of its own"),
    )
    yield Fact(_translate(_CONTEXT, "This computer"), *_carries(parameters, len(groups[0]), speed))


def verifications(parameters: LiveParameters) -> float:
    """Verifications a second of all receivers together."""
    return parameters.messages_on_air * parameters.receptions_a_message if parameters.security.verifies else 0.0


def core_share(parameters: LiveParameters, stations: int, speed: Speed) -> float | None:
    """The share of its core that the busiest process needs, or that all need of all cores, whichever is larger.

    `stations`: the most in one process. None where a benchmark is missing.
    """
    if speed.verify is None or speed.raw_verify is None or speed.sign is None:
        return None
    handling_s = _HANDLING * max(0.0, 1 / speed.verify - 1 / speed.raw_verify)
    sent_s = handling_s + (1 / speed.sign if parameters.security.signs else 0.0)
    received_s = handling_s + (1 / speed.verify if parameters.security.verifies else 0.0)
    sending = parameters.most_messages * sent_s
    receiving = parameters.messages_on_air * parameters.receptions_a_message * received_s
    largest = stations / parameters.senders
    if parameters.receivers is Receivers.ALL:
        busiest = (sending + receiving) * largest
    else:
        busiest = max(sending * largest, receiving)
    return max(busiest, (sending + receiving) / (os.cpu_count() or 1))


def _carries(parameters: LiveParameters, stations: int, speed: Speed) -> tuple[str, str]:
    """Whether this computer carries the load, by its newest benchmark, and how that was reckoned."""
    share = core_share(parameters, stations, speed)
    if share is None:
        return (
            _translate(_CONTEXT, "not measured yet"),
            _translate(_CONTEXT, "Run the V2X benchmark with this backend and curve: the load is compared with it"),
        )
    meaning = _translate(
        _CONTEXT, "Share of a core that the busiest process needs; estimated from the packets a second"
    )
    if speed.verify is not None:
        benchmark = _translate(
            _CONTEXT,
            "by the newest benchmark of this backend and curve one core verifies and decodes {0} packets a second",
        ).format(format_number(round(speed.verify)))
        meaning = f"{meaning}: {benchmark}"
    verdict = (
        _translate(_CONTEXT, "carries it ({0:.0%})") if share <= _FULL else _translate(_CONTEXT, "too much ({0:.0%})")
    )
    return verdict.format(share), meaning
