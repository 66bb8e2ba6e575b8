"""Prints how long a comparison of 60 runs takes, and reports as PDF of a run, of a comparison and of a campaign.

Run it with `python tests/benchmarks/report.py`; it works in a temporary directory and leaves nothing behind.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from export import append_messages

from labconsole.analysis.comparison import compare, group_repeats
from labconsole.analysis.findings import findings
from labconsole.clock import wall_now
from labconsole.model.plugin import Plugins
from labconsole.output.report.pdf import Paper, write_pdf
from labconsole.output.report.report_builder import build_report
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.processes import this_process
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import Store

TESTS, PAYLOADS, REPEATS, MESSAGES = (1, 2, 3, 4), ("small", "fpl-tac", "fpl-fixm"), 5, 10_000


def fill(path: Path, plugins: Plugins) -> list[int]:
    """Store a campaign of 12 scenarios with five repeats each; the runs differ by noise and scenario."""
    trial = plugins.trial("amqp.messaging")
    chosen = [{"test": test, "payload": payload, "count": MESSAGES} for payload in PAYLOADS for test in TESTS]
    models = [trial.parameters.model_validate(parameters) for parameters in chosen]
    scenarios = tuple(
        NewScenario(f"Test {model['test']}, {model['payload']}", trial.kind, one.model_dump(mode="json"))
        for model, one in zip(chosen, models, strict=True)
    )
    order = tuple((scenario, repeat) for repeat in range(1, REPEATS + 1) for scenario in range(len(scenarios)))
    with Store.open(path) as store:
        runs = store.add_campaign(
            NewCampaign("bench", "Benchmark", "", 1, scenarios, order), this_process(), wall_now()
        )
        with Reader(path) as reader:
            for run, (scenario, _) in zip(runs, order, strict=True):
                store.run_started(run, this_process(), {}, [], wall_now())
                append_messages(store, run, trial.series, MESSAGES, gap_ns=10_000 * (scenario + 1) + run * 37)
                store.replace_evaluation(run, trial.evaluate(models[scenario], reader.samples(run), ()))
                store.run_ended(run, RunStatus.FINISHED, "", wall_now())
    return runs


def measure(title: str, work: Callable[[], Any]) -> Any:
    """Do it twice and print how long each took; returns the last result."""
    readings = []
    for _ in range(2):
        begin = time.perf_counter()
        result = work()
        readings.append((time.perf_counter() - begin) * 1e3)
    print(f"{title:60} {readings[0]:8.0f} ms, again {readings[1]:6.0f} ms")
    return result


def main() -> None:
    """Fill a database and print the figures."""
    plugins = Plugins.discover()
    trial = plugins.trial("amqp.messaging")
    with tempfile.TemporaryDirectory() as folder:
        database, pdf = Path(folder) / "runs.db", Path(folder) / "report.pdf"
        runs = fill(database, plugins)
        with Reader(database) as reader:
            rows = measure(f"read {len(runs)} runs with all metrics", lambda: reader.comparable(runs))
            table = measure("compare them as 12 columns", lambda: compare(group_repeats(rows), trial))
            measure("findings in words", lambda: findings(table, trial))
            four = tuple(run for place, run in enumerate(runs) if place % 12 < 4)
            for title, chosen, kind in (
                ("one run", tuple(runs[:1]), ReportKind.RUN),
                ("a comparison of 4 columns, 20 runs", four, ReportKind.COMPARISON),
                ("a campaign of 60 runs", tuple(runs), ReportKind.CAMPAIGN),
            ):
                request = ReportRequest(chosen, kind)
                document = measure(f"report on {title}: built", lambda: build_report(reader, plugins, request))  # noqa: B023
                result = measure(f"report on {title}: set as PDF", lambda: write_pdf(document, pdf, Paper.A4))  # noqa: B023
                print(f"{'':60} {result.pages} pages, {pdf.stat().st_size / 1e3:.0f} kB, {result.standard}")


if __name__ == "__main__":
    main()
