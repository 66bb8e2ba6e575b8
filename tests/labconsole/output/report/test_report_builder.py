"""What a report says: built from a real store, read as a document before anything is set."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from labconsole import __version__
from labconsole.engine.provenance import surroundings
from labconsole.errors import UserError
from labconsole.model.placement import Placement, RoleRequest
from labconsole.model.plugin import Plugins
from labconsole.output.report.document import (
    Block,
    Bullets,
    Callout,
    Document,
    Facts,
    Figure,
    Gallery,
    Paragraph,
    Table,
    TextCell,
    Tone,
)
from labconsole.output.report.report_builder import build_report
from labconsole.output.report.report_request import ReportKind, ReportRequest, kind_for, whole_campaign
from labconsole.store import schema
from labconsole.store.edits import set_note, set_tags
from labconsole.store.reader import Reader
from labconsole.store.records import RunStatus
from labconsole.store.run_store import Store
from tests.helpers.stored_post_trial import PLUGINS, WARNING, end, queue_post, store_post
from tests.labconsole.output.conftest import SPRING

WHEN = datetime(2026, 11, 20, 18, 30, tzinfo=UTC)


def built(reader: Reader, run_ids: list[int], kind: ReportKind, plugins: Plugins = PLUGINS, **more: object) -> Document:
    return build_report(reader, plugins, ReportRequest(tuple(run_ids), kind, generated=WHEN, **more))  # type: ignore[arg-type]


def blocks(document: Document, title: str) -> list[Block]:
    return [block for section in document.sections if section.title == title for block in section.blocks]


def tables(document: Document, title: str) -> list[Table]:
    return [block for block in blocks(document, title) if isinstance(block, Table)]


def row(table: Table, name: str) -> tuple[TextCell, ...]:
    return next(cells for cells in table.rows if cells[0].text == name)


def figures(document: Document) -> Iterator[Figure]:
    for block in blocks(document, "Charts"):
        yield from block.figures if isinstance(block, Gallery) else (block,) if isinstance(block, Figure) else ()


def test_comparison_report_has_intervals_marks_and_findings(spring_reader: Reader) -> None:
    document = built(spring_reader, SPRING, ReportKind.COMPARISON)
    (findings, notice) = blocks(document, "Summary")
    assert isinstance(findings, Bullets) and isinstance(notice, Callout)
    assert findings.items[0].text.startswith("sealed against open: rate is lower by a factor 2.00 (95 % interval")
    assert any(WARNING.removesuffix(".") in sentence for sentence in notice.sentences)
    [table] = tables(document, "Results")
    assert [head.detail for head in table.heads] == ["", "", "baseline, 5 runs", "5 runs"]
    _, unit, baseline, other = row(table, "Rate")
    assert unit.text == "letters/s ↑"
    assert baseline.text == "1,020" and len(baseline.details) == 1
    assert other.details[1] == ("▼ −50.0 % worse", Tone.BAD)
    assert row(table, "CPU per letter (role sender)")[3].details[1][1] is Tone.BAD
    assert row(table, "Wait p99")[0].details[0] == (
        "not judged, p99 needs 5,000 samples (there are 500): all columns",
        Tone.MUTED,
    )
    assert not row(table, "Lost")[3].details, "what is zero everywhere has neither interval nor difference"


def test_many_metrics_that_are_not_judged_are_one_sentence_of_the_summary(store: Store, reader: Reader) -> None:
    document = built(reader, store_post(store, ["open", "sealed", "a", "b", "c"], repeats=5), ReportKind.COMPARISON)
    [found, _] = blocks(document, "Summary")
    assert isinstance(found, Bullets)
    [folded] = [item.text for item in found.items if "p99" in item.text]
    assert folded.startswith("Not judged: 1 metric and ") and folded.endswith(" findings (p99 needs 5,000 samples).")


def test_the_baseline_is_the_one_asked_for(spring_reader: Reader) -> None:
    document = built(spring_reader, SPRING, ReportKind.COMPARISON, baseline=SPRING[1])
    [table] = tables(document, "Results")
    assert table.heads[2].title == "sealed"
    assert row(table, "Rate")[3].details[1] == ("▲ +100 % better", Tone.GOOD)


def test_wide_comparison_is_split_into_tables_that_repeat_the_baseline(store: Store, reader: Reader) -> None:
    run_ids = store_post(store, [f"scenario {number}" for number in range(12)], repeats=1)
    titles = [
        [head.title for head in table.heads[2:]]
        for table in tables(built(reader, run_ids, ReportKind.COMPARISON), "Results")
    ]
    assert titles == [
        [f"scenario {number}" for number in range(9)],
        ["scenario 0", "scenario 9", "scenario 10", "scenario 11"],
    ]


def test_hosts_are_with_the_parameters(store: Store, reader: Reader) -> None:
    obu = Placement(roles=(RoleRequest(role="sender-*", tag="obu"),)).stored()
    run_ids = store_post(store, repeats=1, sealed=obu)
    [differing] = tables(built(reader, run_ids, ReportKind.COMPARISON), "Scenario and parameters")
    assert [cell.text for cell in row(differing, "Hosts")] == ["Hosts", "this computer", "sender-*: tag obu"]
    for run_id, shown in zip(run_ids, ([], ["sender-*: tag obu"]), strict=True):
        parts = blocks(built(reader, [run_id], ReportKind.RUN), "Scenario and parameters")
        facts = [fact for part in parts if isinstance(part, Facts) for fact in part.rows]
        assert [fact.value for fact in facts if fact.name == "Hosts"] == shown


def test_differing_parameters_are_listed_first(spring_reader: Reader) -> None:
    document = built(spring_reader, SPRING, ReportKind.COMPARISON)
    [table] = tables(document, "Scenario and parameters")
    assert [[cell.text for cell in cells] for cells in table.rows] == [["Sealed", "no", "yes"]]
    [defaults] = [block for block in blocks(document, "Scenario and parameters") if isinstance(block, Facts)]
    assert [(fact.name, fact.value, fact.tone) for fact in defaults.rows] == [
        ("Letters", "10 letters", Tone.PLAIN),
        ("Stamped", "no", Tone.PLAIN),
    ]


def test_changed_parameter_of_a_run_is_emphasised(spring_reader: Reader) -> None:
    document = built(spring_reader, SPRING[1:2], ReportKind.RUN)
    changed = next(block for block in blocks(document, "Scenario and parameters") if isinstance(block, Facts))
    assert [(fact.name, fact.value, fact.tone) for fact in changed.rows] == [("Sealed", "yes", Tone.STRONG)]


def test_a_run_has_its_figures_with_samples_and_origin(spring_reader: Reader) -> None:
    document = built(spring_reader, SPRING[:1], ReportKind.RUN)
    [table] = tables(document, "Results")
    assert [cell.text for cell in row(table, "Rate")] == ["Rate", "1,000", "letters/s", "2,000", "measured"]
    assert row(table, "Wait p99")[0].details == (("not judged: p99 needs 5,000 samples (there are 500)", Tone.MUTED),)
    [notice] = blocks(document, "Summary")
    assert isinstance(notice, Callout) and notice.sentences[0] == WARNING
    assert "no interval" in notice.sentences[-1]
    assert (document.title, document.kind) == ("Spring trial: open", "Run report")


def test_report_has_charts_of_figures_and_samples_with_alt_texts(spring_reader: Reader) -> None:
    drawn = list(figures(built(spring_reader, SPRING, ReportKind.COMPARISON)))
    assert [figure.caption.partition(",")[0].partition(":")[0] for figure in drawn] == [
        "Rate",
        "Waiting",
        "Wait",
    ]
    assert "open 1,020 letters/s; sealed 510.0 letters/s" in drawn[0].alt
    assert "open: 10,000, sealed: 10,000" in drawn[-1].caption, "the samples of all five runs"
    assert all(figure.alt for figure in drawn)


def test_report_is_written_and_notes_damaged_samples(spring_store: Store, changed_reader: Reader) -> None:
    with spring_store.writer.transaction() as connection:
        connection.execute(update(schema.chunk).values(payload=b"not what was hashed"))
    document = built(changed_reader, SPRING, ReportKind.COMPARISON)
    [notice] = [block for block in blocks(document, "Charts") if isinstance(block, Callout)]
    assert "Samples of run 1 are damaged" in notice.sentences[0]
    assert tables(document, "Results")


def test_hosts_of_a_run_are_in_its_provenance(spring_store: Store, changed_reader: Reader) -> None:
    alpha = {**surroundings(), "cpu": "Host CPU 1", "clock_domain": "boot-7", "clock_source": "tsc, synchronised"}
    spring_store.amend_provenance(SPRING[0], hosts={"alpha": alpha})
    document = built(changed_reader, SPRING, ReportKind.COMPARISON)
    [environment] = [block for block in blocks(document, "Environment and provenance") if isinstance(block, Facts)]
    (host,) = (fact.value for fact in environment.rows if fact.name == "Host alpha")
    assert "Host CPU 1" in host and "clock boot-7, tsc, synchronised" in host and __version__ in host


def test_provenance_and_evidence_of_every_run(spring_store: Store, changed_reader: Reader) -> None:
    spring_store.amend_provenance(SPRING[0], cpu="Another CPU")
    document = built(changed_reader, SPRING, ReportKind.COMPARISON)
    [environment] = [block for block in blocks(document, "Environment and provenance") if isinstance(block, Facts)]
    facts = {fact.name: fact.value for fact in environment.rows}
    assert facts["OpenSSL (Python: TLS)"] == "OpenSSL 3.0.19"
    assert facts["CPU"] == "Another CPU (run 1); Test CPU 3000 (runs 2–10)"
    assert facts["Peer (AMQP container)"] == "test-broker"
    assert "seed" not in facts
    [runs] = tables(document, "Runs")
    assert [cells[0].text for cells in runs.rows] == [str(run_id) for run_id in SPRING]
    assert runs.rows[0][-1].text == str(changed_reader.run(SPRING[0]).row.seed)
    [evidence] = tables(document, "Evidence")
    sealed = changed_reader.evidence(SPRING[2])
    assert sealed is not None and len(sealed.digest) == 64
    assert evidence.rows[2][1].text == sealed.digest
    assert evidence.rows[2][1].details[0][0] == changed_reader.run(SPRING[2]).row.uuid
    [sites] = tables(document, "Environment and provenance")
    assert [head.title for head in sites.heads] == ["Site", "Kuala Lumpur", "Singapore"]
    assert {fact.name: fact.value for fact in document.cover}["Place"] == "Kuala Lumpur, Singapore"


def test_run_changed_after_sealing_is_marked_as_not_evidence(spring_store: Store, changed_reader: Reader) -> None:
    with closing(sqlite3.connect(spring_store.path)) as raw, raw:
        raw.execute("UPDATE metric SET value = value * 2 WHERE run_id = ? AND position = 0", (SPRING[2],))
    document = built(changed_reader, SPRING, ReportKind.COMPARISON)
    [evidence] = tables(document, "Evidence")
    marked = [cells[0].text for cells in evidence.rows if cells[2].details]
    assert marked == [str(SPRING[2])]
    [callout] = [block for block in blocks(document, "Summary") if isinstance(block, Callout)]
    assert callout.sentences[0] == f"Run {SPRING[2]} is not as it was sealed: it proves nothing."


def test_verdicts_are_counted_over_repeats(spring_store: Store, changed_reader: Reader) -> None:
    with spring_store.writer.transaction() as connection:
        bad = schema.verdict.c.run_id == SPRING[1]
        connection.execute(update(schema.verdict).where(bad).values(result="fail", reason="One is missing."))
    document = built(changed_reader, SPRING, ReportKind.COMPARISON)
    [table] = tables(document, "Verdicts")
    _, first, second = table.rows[0]
    assert (first.text, first.tone) == ("✓ 5 of 5 pass", Tone.GOOD)
    assert (second.text, second.tone) == ("✗ 1 of 5 fail, 4 of 5 pass", Tone.BAD)
    assert second.details == (("One is missing.", Tone.MUTED),)


def test_a_verdict_that_is_unknown_is_not_marked_as_failed(spring_store: Store, changed_reader: Reader) -> None:
    with spring_store.writer.transaction() as connection:
        open_one = schema.verdict.c.run_id == SPRING[1]
        connection.execute(update(schema.verdict).where(open_one).values(result="unknown", reason="It was cut short."))
    [compared] = tables(built(changed_reader, SPRING, ReportKind.COMPARISON), "Verdicts")
    assert (compared.rows[0][2].text, compared.rows[0][2].tone) == ("1 of 5 unknown, 4 of 5 pass", Tone.MUTED)
    [single] = tables(built(changed_reader, SPRING[1:2], ReportKind.RUN), "Verdicts")
    assert (single.rows[0][1].text, single.rows[0][1].tone) == ("unknown", Tone.MUTED)


def test_notes_and_tags_are_printed_as_written(spring_store: Store, changed_reader: Reader) -> None:
    set_note(spring_store, SPRING[3], "Rain all morning.")
    set_tags(spring_store, SPRING[3], ["wet"])
    heading, note = blocks(built(changed_reader, SPRING, ReportKind.CAMPAIGN), "Notes of the operator")
    assert heading.title == "Run 4: sealed [wet]"  # type: ignore[union-attr]
    assert isinstance(note, Paragraph) and note.text == "Rain all morning."


def test_an_interrupted_run_is_allowed_and_marked(store: Store, reader: Reader) -> None:
    [run_id] = queue_post(store, ["open"])
    end(store, run_id, RunStatus.INTERRUPTED, "The console was ended.")
    document = built(reader, [run_id], ReportKind.RUN)
    [runs] = tables(document, "Runs")
    assert (runs.rows[0][3].text, runs.rows[0][3].tone) == ("interrupted", Tone.BAD)
    assert runs.rows[0][3].details == (("The console was ended.", Tone.MUTED),)
    [notice] = blocks(document, "Summary")
    assert isinstance(notice, Callout) and any("Run 1 is interrupted" in sentence for sentence in notice.sentences)


def test_runs_of_a_trial_that_is_not_installed_are_reported_from_stored_data(spring_reader: Reader) -> None:
    document = built(spring_reader, SPRING, ReportKind.COMPARISON, plugins=Plugins(()))
    [table] = tables(document, "Results")
    assert row(table, "rate")[2].text == "1,020"
    assert document.lead == "Trial post"


def test_the_footer_names_the_runs_as_far_as_there_is_room(store: Store, reader: Reader) -> None:
    run_ids = store_post(store, repeats=15)
    assert built(reader, run_ids[2:7], ReportKind.COMPARISON).identity == "runs.db · runs 3–7"
    odd = built(reader, run_ids[::2], ReportKind.COMPARISON)
    assert odd.identity == "runs.db · 15 runs from 1 to 29"
    assert {fact.name: fact.value for fact in odd.cover}["Database"].startswith("runs.db, runs 1, 3, 5, 7, 9, 11, 13,")


def test_the_same_request_gives_the_same_document_as_plain_json(spring_reader: Reader) -> None:
    first, second = (built(spring_reader, SPRING, ReportKind.COMPARISON) for _ in range(2))
    assert json.dumps(first.as_json()) == json.dumps(second.as_json())
    assert first.as_json()["generated"] == "2026-11-20 18:30 UTC"


def test_what_cannot_be_reported_is_refused_in_one_sentence(spring_store: Store, changed_reader: Reader) -> None:
    going = queue_post(spring_store, ["open"])
    for asked, more, said in (
        ([], {}, "There is no run to report on"),
        ([99], {}, "There is no run 99"),
        (going, {}, f"Run {going[0]} is still running: create the report once it has ended."),
        (SPRING, {"baseline": 99}, "The baseline, run 99, is none of the runs of the report"),
        (SPRING, {"published": ("gazette",)}, "There are no published figures gazette"),
    ):
        with pytest.raises(UserError, match=said):
            built(changed_reader, asked, ReportKind.COMPARISON, **more)


def test_which_report_runs_make(spring_store: Store, changed_reader: Reader) -> None:
    others = store_post(spring_store, repeats=1)
    assert kind_for(changed_reader, SPRING[:1]) is ReportKind.RUN
    assert kind_for(changed_reader, SPRING[:2]) is ReportKind.COMPARISON
    assert kind_for(changed_reader, SPRING[::-1]) is ReportKind.CAMPAIGN
    assert kind_for(changed_reader, [*SPRING, *others]) is ReportKind.COMPARISON
    assert whole_campaign(changed_reader, SPRING[4:6]) == tuple(SPRING)
    with pytest.raises(UserError, match="several campaigns"):
        whole_campaign(changed_reader, [SPRING[0], others[0]])
