"""The summary of a campaign's samples as a result: a table of measures and hosts, and all figures as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from typing import Any, Final

from labconsole.analysis.number_format import format_figure
from labconsole.hosts.samples.campaign_summary import CampaignSummary, Hosts
from labconsole.hosts.samples.sample_summaries import LARGEST_ERROR, Measure, Summaries, Summary
from labconsole.model.operation import Result, TextTable

_PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
_HEADINGS = ("Measure", "Host", "Samples", "Mean", *_PERCENTILES, "Largest")


def summary_result(found: CampaignSummary | None) -> Result:
    """The result of `hosts.summarise`; None: it was cancelled."""
    if found is None:
        return Result(("Cancelled: nothing was summarised.",))
    data = {
        "campaign": found.campaign,
        "largest_error": LARGEST_ERROR,
        "scenarios": {
            scenario: {"runs": found.runs[scenario], **_data(hosts)} for scenario, hosts in found.scenarios.items()
        },
    }
    rows = tuple(row for scenario in found.scenarios for row in _rows(found, scenario))
    if not rows:
        return Result((f"The runs of {found.campaign} have no samples to summarise.",), data, found.missing, False)
    note = (
        f"{found.campaign}: percentiles are within {LARGEST_ERROR * 100:.3f} % of the sample that has the rank; all "
        "other figures are exact."
    )
    return Result((note, TextTable(_HEADINGS, rows)), data, found.missing)


def _rows(found: CampaignSummary, scenario: str) -> Iterator[tuple[str, ...]]:
    """The rows of a scenario after one with its name; without measures whose values are all 0."""
    hosts, runs = found.scenarios[scenario], found.runs[scenario]
    title = [f"{scenario}, {runs} runs" if runs > 1 else f"{scenario}, 1 run", *[""] * (len(_HEADINGS) - 1)]
    for measure, total in sorted(_together(hosts).items()):
        if not total.smallest and not total.largest:
            continue
        if title:
            yield tuple(title)
            title.clear()
        of_hosts = {host: hosts[host][measure] for host in sorted(hosts) if measure in hosts[host]}
        shown = {**of_hosts, "All hosts": total} if len(of_hosts) > 1 else of_hosts
        for name, (host, one) in zip(chain([str(measure)], repeat("")), shown.items(), strict=False):
            yield (name, host, *_figures(one, measure.unit))


def _together(hosts: Mapping[str, Summaries]) -> Summaries:
    everything = Summaries()
    for summaries in hosts.values():
        everything.merge(summaries)
    return everything


def _figures(summary: Summary, unit: str) -> tuple[str, ...]:
    if not summary.count:
        return ("0", *[""] * (len(_HEADINGS) - 3))
    values = (summary.mean, *map(summary.percentile, _PERCENTILES.values()), summary.largest)
    return (f"{summary.count:,}", *(format_figure(value, unit) for value in values))


def _data(hosts: Hosts) -> dict[str, Any]:
    return {
        "hosts": {host: _plain(summaries) for host, summaries in sorted(hosts.items())},
        "all": _plain(_together(hosts)),
    }


def _plain(summaries: Summaries) -> dict[str, Any]:
    return {str(measure): _plain_figures(measure, summary) for measure, summary in sorted(summaries.items())}


def _plain_figures(measure: Measure, summary: Summary) -> dict[str, Any]:
    figures: dict[str, Any] = {"unit": measure.unit, "samples": summary.count}
    if summary.count:
        figures |= {"mean": summary.mean, "smallest": summary.smallest, "largest": summary.largest}
        figures |= {name: summary.percentile(fraction) for name, fraction in _PERCENTILES.items()}
    return figures
