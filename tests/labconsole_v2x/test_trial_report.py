"""The report of the whole V2X trial by the outline `preserve`: pages, answers, chapters and origins."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import geometric_mean

import pytest

from labconsole.analysis.report_outline import report_outline
from labconsole.cli.main import main
from labconsole.model.plugin import Plugins
from labconsole.output.report.document import Document, Paragraph, Table, TextCell, Tone
from labconsole.output.report.pdf import ARCHIVAL, Paper, PdfResult, write_pdf
from labconsole.output.report.report_builder import build_report
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.profiles.profile import save_profile
from labconsole.store.reader import Reader
from labconsole.store.records import NewCampaign, NewScenario
from labconsole.store.run_store import Store
from labconsole_v2x.simulation.simulation_parameters import SimulationParameters
from labconsole_v2x.simulation.stack_timing import STACK_TIMINGS
from labconsole_v2x.simulation.timing_from_benchmark import neighbours_with
from tests.labconsole_v2x.stored_trial import FAILED, PROFILES, store_campaign, store_runs

WHEN = datetime(2026, 11, 20, 18, 30, tzinfo=UTC)
MOST_PAGES = 12
UNIT = {"senders": 150, "receiver_cores": 1, "inclusion": "etsi", "generation": "fixed", "dcc": False}


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins.discover()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trial") / "runs.db"


@pytest.fixture(scope="module")
def runs(plugins: Plugins, database: Path) -> dict[str, list[int]]:
    """The runs of each profile of the trial."""
    with Store.open(database) as store:
        return {profile: store_campaign(store, profile, plugins) for profile in PROFILES}


@pytest.fixture(scope="module")
def reader(database: Path, runs: dict[str, list[int]]) -> Iterator[Reader]:
    with Reader(database) as opened:
        yield opened


def built(reader: Reader, plugins: Plugins, *campaigns: list[int]) -> Document:
    run_ids = tuple(run_id for campaign in campaigns for run_id in campaign)
    return build_report(reader, plugins, ReportRequest(run_ids, ReportKind.OUTLINE, generated=WHEN, outline="preserve"))


@pytest.fixture(scope="module")
def document(reader: Reader, plugins: Plugins, runs: dict[str, list[int]]) -> Document:
    return built(reader, plugins, *runs.values())


@pytest.fixture(scope="module")
def written(document: Document, tmp_path_factory: pytest.TempPathFactory) -> PdfResult:
    return write_pdf(document, tmp_path_factory.mktemp("pdf") / "trial.pdf")


def tables(document: Document, title: str) -> list[Table]:
    return [
        block
        for section in document.sections
        if section.title == title
        for block in section.blocks
        if isinstance(block, Table)
    ]


def row(table: Table, name: str) -> tuple[TextCell, ...]:
    return next(cells for cells in table.rows if cells[0].text == name)


def mean(reader: Reader, run_ids: list[int], metric: str, **parameters: object) -> float:
    """The mean over the stored runs of one scenario."""
    chosen = [run for run in reader.comparable(run_ids) if parameters.items() <= run.parameters.items()]
    assert len({run.scenario for run in chosen}) == 1
    return geometric_mean(run.metrics[metric].value for run in chosen)


def text_of(path: Path, *pages: str) -> str:
    command = ["pdftotext", *pages, "-layout", path, "-"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def test_all_chapters_with_300_runs_take_12_pages_at_most(
    document: Document, written: PdfResult, runs: dict[str, list[int]], tmp_path: Path
) -> None:
    assert sum(map(len, runs.values())) > 250
    assert [section.title for section in document.sections] == [
        "Use cases",
        "Benchmark",
        "Testbed",
        "Attacks",
        "How many neighbours",
        "Runs, computers and evidence",
    ]
    assert not [block for one in document.sections for block in one.blocks if "No run of this" in str(block)]
    assert written.pages <= MOST_PAGES and (written.standard, written.remarks) == (ARCHIVAL, ())
    assert write_pdf(document, tmp_path / "letter.pdf", Paper.LETTER).pages <= MOST_PAGES


def test_the_answers_are_on_the_first_page(document: Document, written: PdfResult) -> None:
    first = " ".join(text_of(written.path, "-l", "1").split())
    for card in document.cards:
        assert card.question in first and card.number in first


def test_the_use_cases_of_the_answer_are_those_of_the_verdicts(document: Document) -> None:
    card = document.cards[0]
    assert (card.number, card.tone) == ("35 of 36", Tone.BAD)
    assert card.sentence == f"36 of 36 pass in software, 35 of 36 with a token. Failed with a token: {FAILED}"
    assert card.alt.endswith("Published: in software: 20"), "as Table 2.17 counts them"


def test_the_cost_of_an_attacker_is_that_of_the_attack_that_cost_the_source_most(
    document: Document, reader: Reader, runs: dict[str, list[int]]
) -> None:
    card = document.cards[1]
    attack = {"attack": "a-sig-01", "attackers": 4, "attack_rate": 100.0}
    loss, delay = (mean(reader, runs["v2x-attacks-live"], name, **attack) for name in ("packet_loss", "latency_mean"))
    simulated = mean(reader, runs["v2x-attacks-published"], "packet_loss", **attack)
    assert card.number == f"{loss:.1f} %"
    assert card.sentence == (
        f"A-SIG-01, 4 attackers at 100 Hz: {loss:.1f} % lost, {delay:.1f} ms delay measured; {simulated:.1f} % lost, "
        f"{simulated:.1f} ms delay simulated; published 72.66 %, 59.04 msec"
    )
    assert card.tone is Tone.MUTED and card.small_print.endswith("not judged"), "one live run"


def test_an_attacker_that_was_only_simulated_is_judged_and_said_to_be_simulated(
    reader: Reader, plugins: Plugins, runs: dict[str, list[int]]
) -> None:
    cases, card, neighbours = built(reader, plugins, runs["v2x-attacks-published"]).cards
    assert "% lost" in card.sentence and "simulated; published" in card.sentence and "measured" not in card.sentence
    assert card.tone is Tone.PLAIN
    for unanswered in (cases, neighbours):
        assert (unanswered.number, unanswered.svg) == ("–", "")


def test_the_same_scenario_without_attackers_is_named_with_the_cost(plugins: Plugins, tmp_path: Path) -> None:
    attacked = {"attack": "a-sig-01", "attackers": 4, "attack_rate": 100.0}
    scenarios = tuple(
        NewScenario(name, "v2x.simulation", SimulationParameters.model_validate(given).model_dump(mode="json"))
        for name, given in (("Attacked", attacked), ("Other senders", {"senders": 7}), ("Quiet", {}))
    )
    campaign = NewCampaign("pair", "Pair", "", 1, scenarios, ((0, 1), (1, 1), (2, 1)))
    path = tmp_path / "runs.db"
    with Store.open(path) as store, Reader(path) as reader:
        card = built(reader, plugins, store_runs(store, campaign, plugins)).cards[1]
    assert "1.0 % lost, 1.0 ms delay simulated (without attackers 3.0 % lost, 3.0 ms delay); " in card.sentence
    assert "simulated: Nexcom VTC 6201" in card.small_print


def test_the_neighbours_of_the_answer_are_those_of_the_run(
    document: Document, reader: Reader, runs: dict[str, list[int]]
) -> None:
    card = document.cards[2]
    served = {
        timing: mean(reader, runs["v2x-neighbours"], "neighbours_served", **UNIT, timing=timing)
        for timing in ("epyc-p256", "nexcom-vtc6201-table42")
    }
    assert card.number == f"{math.floor(served['epyc-p256'])}"
    assert card.sentence == (
        f"AMD EPYC, one core: P-256, OpenSSL 4.0: {card.number} at 10 Hz, simulated. The source's box: "
        f"{math.floor(served['nexcom-vtc6201-table42'])}"
    )


def test_a_unit_of_the_operator_is_the_first_of_the_answer_and_of_the_tables(
    plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABCONSOLE_HOME", str(tmp_path))
    own = STACK_TIMINGS.load("epyc-p256").model_copy(update={"title": "This computer"})
    STACK_TIMINGS.save("my-box", own)
    save_profile("v2x-neighbours-my-box", neighbours_with("my-box"), replace=False)
    path = tmp_path / "runs.db"
    with Store.open(path) as store, Reader(path) as reader:
        document = built(reader, plugins, store_campaign(store, "v2x-neighbours-my-box", plugins))
    assert document.cards[2].sentence.startswith("This computer: ")
    for table in tables(document, "How many neighbours"):
        names = [cells[0].text for cells in table.rows]
        assert names[:2] == ["my-box, simulated", "my-box, 2 cores, simulated"] and len(names) == 15 + 4


def test_use_cases_are_listed_with_ours_and_theirs_and_why_one_failed(document: Document) -> None:
    [table] = tables(document, "Use cases")
    assert len(table.rows) == 46 and [head.title for head in table.heads[2:]] == ["Software", "Token", "Published"]
    code, title, software, token, theirs = row(table, FAILED)
    assert (code.text, title.text) == (FAILED, "Send CAMs without signature")
    assert title.details == (("Token: A packet without signature was accepted.", Tone.MUTED),)
    assert (software.text, token.text, theirs.text) == ("✓ pass", "✗ fail", "✓ passed")


def test_simulated_and_measured_rows_of_a_table_are_next_to_each_other(document: Document) -> None:
    [table] = tables(document, "Attacks")
    names = [cells[0].text for cells in table.rows]
    assert names[:2] == ["A-SIG-01, 2 at 10 Hz, simulated", "A-SIG-01, 2 at 10 Hz, measured"] and len(names) == 28
    [benchmark] = tables(document, "Benchmark")
    assert benchmark.notes[0].endswith("All of it measured."), "no column says so"


def test_a_chapter_without_runs_says_so_in_one_line(
    reader: Reader, plugins: Plugins, runs: dict[str, list[int]]
) -> None:
    document = built(reader, plugins, runs["v2x-benchmark"])
    testbed = next(section for section in document.sections if section.title == "Testbed")
    assert testbed.blocks[1:] == (Paragraph("No run of this report is of this chapter.", Tone.MUTED),)


def test_campaigns_are_listed_with_their_runs_as_sealed(document: Document, runs: dict[str, list[int]]) -> None:
    campaigns, computers = tables(document, "Runs, computers and evidence")
    assert [cells[-1].text for cells in campaigns.rows] == [f"{len(one)} of {len(one)}" for one in runs.values()]
    assert len(computers.rows) == 1


def test_the_terminal_takes_whole_campaigns_and_refuses_what_an_outline_has_no_place_for(
    database: Path, runs: dict[str, list[int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one_of_each = [str(runs[profile][0]) for profile in ("v2x-use-cases", "v2x-attacks-live")]
    path = tmp_path / "trial.pdf"
    command = ["report", *one_of_each, "--outline", "preserve", "--pdf", str(path), "--db", str(database)]
    assert main([*command, "--campaign"]) == 0
    assert "2 campaigns, 16 scenarios, 16 runs" in text_of(path)
    capsys.readouterr()
    assert main([*command, "--published", "preserve-table-4-2"]) == 2
    assert "an outline has its own tables: leave out --baseline and --published" in capsys.readouterr().err


def test_the_outline_takes_all_trials_of_the_plugin(plugins: Plugins) -> None:
    assert set(report_outline(plugins, "preserve").kinds) == set(plugins.of_kind("v2x.live").trials)
