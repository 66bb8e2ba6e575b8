"""The facts of a live scenario before it is run: its load, how stations are spread, and whether this computer can."""

from __future__ import annotations

import os
from collections.abc import Iterator

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.number_format import format_number
from labconsole_ui.panels.trial_panel import Fact
from labconsole_v2x.choices import Generation, Receivers
from labconsole_v2x.live.live_parameters import LiveParameters
from labconsole_v2x.live.spread import spread
from labconsole_v2x.stations.sending import SecurityMode

_translate = QCoreApplication.translate
_CONTEXT = "LivePanel"
_FULL = 0.8
"""Share of the cores from which on queues grow."""


def live_facts(parameters: LiveParameters, benchmark: float | None) -> list[Fact]:
    """Messages, signatures and verifications a second, processes; `benchmark`: packets that one core verifies."""
    return list(_facts(parameters, benchmark))


def _facts(parameters: LiveParameters, benchmark: float | None) -> Iterator[Fact]:
    messages = parameters.most_messages
    most = "" if parameters.generation is Generation.FIXED and not parameters.dcc else "≤ "
    yield Fact(
        _translate(_CONTEXT, "Messages"),
        f"{most}{format_number(messages)} msg/s",
        _translate(_CONTEXT, "CAMs a second of all sending stations together"),
    )
    signed = parameters.security in (SecurityMode.FULL, SecurityMode.SIGNED)
    if signed:
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
    groups = spread(parameters.senders, parameters.processes, messages)
    sizes = sorted({len(group) for group in groups})
    each = "–".join(map(str, sizes))
    yield Fact(
        _translate(_CONTEXT, "Processes"),
        _translate(_CONTEXT, "{0} × {1} stations").format(len(groups), each)
        + ("" if parameters.receivers is Receivers.ALL else _translate(_CONTEXT, " + receiver")),
        _translate(_CONTEXT, "Sending stations are spread over processes; the receiver is one of its own"),
    )
    yield Fact(_translate(_CONTEXT, "This computer"), *_carries(parameters, verified, benchmark))


def verifications(parameters: LiveParameters) -> float:
    """Verifications a second of all receivers together."""
    if parameters.security is not SecurityMode.FULL:
        return 0.0
    receivers = 1 if parameters.receivers is Receivers.ONE else parameters.senders - 1
    return parameters.most_messages * receivers


def _carries(parameters: LiveParameters, verified: float, benchmark: float | None) -> tuple[str, str]:
    """Whether this computer carries the load, by its newest benchmark, and how that was reckoned."""
    if benchmark is None:
        return (
            _translate(_CONTEXT, "not measured yet"),
            _translate(_CONTEXT, "Run the V2X benchmark with this backend and curve: the load is compared with it"),
        )
    cores = os.cpu_count() or 1
    # A receiver's threads share one process; several receivers are several processes.
    capacity = benchmark * (1 if parameters.receivers is Receivers.ONE else cores)
    share = verified / capacity if capacity else 0.0
    meaning = _translate(
        _CONTEXT,
        "By the newest benchmark of this backend and curve: {0} packets a second verified and decoded by one core",
    ).format(format_number(round(benchmark)))
    if share <= _FULL:
        return _translate(_CONTEXT, "carries it ({0:.0%})").format(share), meaning
    return _translate(_CONTEXT, "too much ({0:.0%})").format(share), meaning
