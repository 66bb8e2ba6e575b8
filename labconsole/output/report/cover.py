"""Facts of a report's cover: when, where, on which computers, and which runs of which database."""

from __future__ import annotations

from collections.abc import Iterator

from labconsole.analysis.change import origin_words
from labconsole.output.report.document import Fact
from labconsole.output.report.report_data import RunData
from labconsole.output.report.report_request import ReportRequest
from labconsole.output.report.run_details import run_span


def cover_facts(data: RunData, request: ReportRequest, database: str) -> Iterator[Fact]:
    """The facts that every report has, behind those on its trials."""
    rows = data.rows
    if request.author:
        yield Fact("Prepared by", request.author)
    started = [row.started for row in rows if row.started is not None]
    ended = [row.ended for row in rows if row.ended is not None]
    if started and ended:
        first, last = min(started), max(ended)
        end = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
        yield Fact(origin_label(data), f"{first:%Y-%m-%d %H:%M:%S} – {end} UTC")
    yield Fact("Place", request.place or _places(data))
    hosts = dict.fromkeys(str(detail.provenance["host"]) for detail in data.details if "host" in detail.provenance)
    if hosts:
        yield Fact("Computer", ", ".join(hosts))
    yield Fact("Database", f"{database}, {run_span([row.id for row in rows])}")


def origin_label(data: RunData) -> str:
    """How the figures came about, as a label: "Measured", "Simulated"."""
    return origin_words(origin for group in data.groups for origin in group.origins).capitalize()


def runs_in_short(data: RunData) -> str:
    """The runs' numbers, as far as a footer has room for them; all of them are on the title page."""
    run_ids = [row.id for row in data.rows]
    span = run_span(run_ids)
    return span if len(span) <= 30 else f"{len(run_ids)} runs from {min(run_ids)} to {max(run_ids)}"


def _places(data: RunData) -> str:
    """The sites that the profile names."""
    names = dict.fromkeys(str(site["name"]) for detail in data.details for site in detail.sites if "name" in site)
    return ", ".join(names) or "not stated"
