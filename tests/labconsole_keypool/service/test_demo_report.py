"""The report of the key pool demo campaign: its first lines and its length."""

from __future__ import annotations

from pathlib import Path

import pytest

from labconsole.analysis.answers import answers
from labconsole.analysis.columns import group_repeats
from labconsole.analysis.comparison import compare
from labconsole.model.plugin import Plugins
from labconsole.output.report.document import Facts
from labconsole.output.report.pdf import write_pdf
from labconsole.output.report.report_builder import build_report
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.store.reader import Reader
from labconsole_keypool.trials.service_trial import ServiceTrial
from tests.labconsole.cli.conftest import CommandLine

pytestmark = pytest.mark.usefixtures("lab_home")


def test_the_demo_s_report_opens_with_the_service_level_and_has_four_pages(tmp_path: Path) -> None:
    """The demo itself, on a real token, with keys that take milliseconds instead of a second."""
    database, run_ids = tmp_path / "runs.db", (1, 2)
    quick = ("--set", "key_kind=p-256", "--set", "rate=40")
    # In a process: that of the tests may have loaded the token's module.
    started = CommandLine(tmp_path).start("run", "keypool-live-demo", *quick, "--db", database)
    shown, errors = started.communicate(timeout=170)
    assert started.returncode == 0, errors
    with Reader(database) as reader:
        document = build_report(reader, Plugins.discover(), ReportRequest(run_ids, ReportKind.CAMPAIGN))
        comparison = compare(group_repeats(reader.comparable(run_ids)), ServiceTrial())
        level, latency = answers(comparison, ServiceTrial(), reader.verdicts(run_ids))
    assert [card.question for card in document.cards] == [
        "Was the service level kept?",
        "How long does a request take?",
    ]
    assert document.cards[0].sentence == level.sentence and level.sentence.startswith("With pool: ")
    assert level.sentence.partition(". ")[0] in " ".join(shown.split()), "the terminal prints the same"
    assert latency.sentence.startswith("With a key pool ")
    tables = [block for section in document.sections for block in section.blocks if isinstance(block, Facts)]
    names = {fact.name for facts in tables for fact in facts.rows}
    assert "Queue limit" in names and "CSV file" not in names, "a parameter that plays no part is left out"
    assert write_pdf(document, tmp_path / "demo.pdf").pages <= 4
