"""The events by which a run keeps the offsets of its hosts' clocks."""

from __future__ import annotations

from labconsole.analysis.number_format import format_figure
from labconsole.clock import clock_domain, now_ns
from labconsole.clock_comparison import HOST_COMPARED, Offset
from labconsole.hosts.cluster import Host
from labconsole.model.series import Event, Level


def comparison(host: Host, phase: str, offset: Offset) -> Event:
    """The event that the clock of a host was compared."""
    sentence = (
        f"{phase.capitalize()} the run the clock of {host.name} is ahead by {format_figure(offset.offset_ns, 'ns')} "
        f"± {format_figure(offset.uncertainty_ns, 'ns')}."
    )
    data = {**offset.to_json(), "host": host.name, "phase": phase, **_domains(host)}
    return Event(now_ns(), "worker", Level.INFO, HOST_COMPARED, sentence, data)


def comparable(event: Event, host: Host) -> bool:
    """Whether an event is a comparison with this host by the clocks that both ends still have."""
    return event.name == HOST_COMPARED and {"host": host.name, **_domains(host)}.items() <= event.data.items()


def _domains(host: Host) -> dict[str, str]:
    return {"clock_domain": str(host.described["clock_domain"]), "console_domain": clock_domain()}
