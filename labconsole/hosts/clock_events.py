"""The events by which a run keeps the offsets of its hosts' clocks, and their jumps."""

from __future__ import annotations

from collections.abc import Iterator

from labconsole.analysis.number_format import format_figure
from labconsole.clock import clock_domain, now_ns
from labconsole.clock_comparison import HOST_COMPARED, HOST_JUMPED, Offset, jump_ns
from labconsole.hosts.cluster import Host
from labconsole.model.series import Event, Level


def comparisons(host: Host, phase: str, offset: Offset, before: Offset | None) -> Iterator[Event]:
    """The event of a comparison with a host, and one more where its clock jumped since the one `before`."""
    sentence = (
        f"{phase.capitalize()} the run the clock of {host.name} is ahead by {format_figure(offset.offset_ns, 'ns')} "
        f"± {format_figure(offset.uncertainty_ns, 'ns')}."
    )
    data = {**offset.to_json(), "host": host.name, "phase": phase, **_domains(host)}
    yield Event(now_ns(), "worker", Level.INFO, HOST_COMPARED, sentence, data)
    if before is not None and (jump := jump_ns(before, offset)):
        sentence = (
            f"The clock of {host.name} jumped by {format_figure(jump, 'ns')} since it was compared before: the host "
            "was suspended, or its clock was set. Times of its roles in between are uncertain by that."
        )
        yield Event(now_ns(), "worker", Level.WARNING, HOST_JUMPED, sentence, {"host": host.name, "jump_ns": jump})


def comparable(event: Event, host: Host) -> bool:
    """Whether an event is a comparison with this host by the clocks that both ends still have."""
    return event.name == HOST_COMPARED and {"host": host.name, **_domains(host)}.items() <= event.data.items()


def _domains(host: Host) -> dict[str, str]:
    return {"clock_domain": str(host.described["clock_domain"]), "console_domain": clock_domain()}
