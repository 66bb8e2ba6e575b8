"""A campaign's report has SWIM's tables, filled, with published figures next to measured ones."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from labconsole.model.plugin import Plugins
from labconsole.model.trial import Direction, Evaluation, Metric
from labconsole.output.report.document import Table
from labconsole.output.report.report_builder import build_report
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.processes import this_process
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario, RunStatus
from labconsole.store.run_store import Store
from labconsole_amqp.trial.amqp_trial import AmqpTrial

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
TABLE = "swim-within-malaysia-medium"


def test_a_campaign_fills_the_tables_of_its_source(tmp_path: Path) -> None:
    scenarios = tuple(
        NewScenario(f"Test {test}", AmqpTrial.kind, _parameters(test=test, payload="fpl-tac")) for test in (1, 2, 3, 4)
    )
    order = tuple((index, repeat) for repeat in (1, 2) for index in range(4))
    campaign = NewCampaign("swim", "SWIM: within Malaysia", "", 1, scenarios, order)
    with Store.open(tmp_path / "runs.db") as store, Reader(store.path) as reader:
        run_ids = store.add_campaign(campaign, this_process(), NOW)
        for position, run_id in enumerate(run_ids):
            store.run_started(run_id, this_process(), {}, [], NOW)
            rate = Metric("throughput", 500.0 + 20 * (position // 4), "msg/s", Direction.HIGHER, 1_000)
            store.replace_evaluation(run_id, Evaluation((rate,)))
            store.run_ended(run_id, RunStatus.FINISHED, "", NOW)
        request = ReportRequest(tuple(run_ids), ReportKind.CAMPAIGN, published=(f"{TABLE}/test-1",))
        document = build_report(reader, Plugins.discover(), request)
    tables = {
        section.title: [block for block in section.blocks if isinstance(block, Table)] for section in document.sections
    }
    shape = next(table for table in tables["In the source's own tables"] if "Within Malaysia" in table.caption)
    throughput = next(cells for cells in shape.rows if cells[0].text == "Message Throughput")
    assert throughput[1].text == "509.9 (2)"
    assert [cells.details[-1][0] for cells in throughput[1:]] == [
        "p: 522.93 msg / sec",
        "p: 347.39 msg / sec",
        "p: 196.51 msg / sec",
        "p: 130.48 msg / sec",
    ]
    [results] = tables["Results"]
    found = next(cells for cells in results.rows if cells[0].text == "Message throughput")
    assert found[3].text == "522.9*", "theirs directly right of ours"
    assert [text for text, _ in found[3].details] == ["ours −2.5 %", "inside our interval"]
    assert any("WP/16" in note for note in results.notes)


def _parameters(**values: object) -> dict[str, object]:
    return AmqpTrial.parameters.model_validate(values).model_dump(mode="json")
