"""Figures beside published ones, and in the shape of a source's own table."""

from __future__ import annotations

from labconsole.analysis.comparison import compare, group_repeats
from labconsole.analysis.intervals import Interval
from labconsole.analysis.published import PublishedFigure
from labconsole.analysis.table_shape import FilledTable, ShapeCell, ShapeColumn, ShapeRow, TableShape
from labconsole.report.document import Tone
from labconsole.report.result_tables import comparison_tables, published_tables, shape_table
from tests.helpers.post import SCENARIOS, PostTrial, published, repeats, run

RATES = (100.0, 104.0, 96.0, 102.0, 98.0)


def test_a_published_figure_stands_beside_what_was_measured_and_whether_that_holds_it() -> None:
    columns = [
        *group_repeats([*repeats(1, "open", "rate", RATES), *repeats(6, "sealed", "rate", RATES)]),
        published({"rate": 99.0}, SCENARIOS["sealed"]),
        published({"rate": 70.0}, SCENARIOS["open"], title="Gazette, open"),
        published({"rate": 70.0}, SCENARIOS["stamped"], title="Gazette, stamped"),
    ]
    inside, outside, nowhere = published_tables(compare(columns, PostTrial()))
    assert inside.caption == "Gazette, sealed (Table 1); measured: sealed"
    [[name, measured, printed, holds]] = inside.rows
    assert (name.text, measured.text, printed.text) == ("Rate", "99.96", "99 letters/s")
    assert measured.details[0][0].startswith("96.") and (holds.text, holds.tone) == ("yes", Tone.STRONG)
    assert outside.rows[0][3].text == "no, outside"
    assert nowhere.caption.endswith("not measured here") and nowhere.rows[0][3].text == "not measured"


def test_one_run_has_no_interval_that_could_hold_a_figure() -> None:
    columns = [*group_repeats([run(1, "sealed", {"rate": 99.0})]), published({"rate": 99.0}, SCENARIOS["sealed"])]
    [table] = published_tables(compare(columns, PostTrial()))
    assert [cell.text for cell in table.rows[0]] == ["Rate", "99", "99 letters/s", "no interval"]


def test_a_difference_that_is_not_judged_has_no_mark() -> None:
    runs = [*repeats(1, "open", "rate", RATES[:2]), *repeats(6, "sealed", "rate", [rate * 2 for rate in RATES[:2]])]
    [table] = comparison_tables(compare(group_repeats(runs), PostTrial()))
    name, _, other = table.rows[0]
    assert other.details[-1] == ("+100.0 %", Tone.MUTED)
    assert name.details[-1] == ("fewer than 5 repeats", Tone.MUTED), "and the same line says why"


def test_no_significant_change_has_a_mark_of_its_own() -> None:
    runs = [*repeats(1, "open", "rate", RATES), *repeats(6, "sealed", "rate", [rate * 1.01 for rate in RATES])]
    [table] = comparison_tables(compare(group_repeats(runs), PostTrial()))
    assert table.rows[0][2].details[-1] == ("≈ +1.0 %", Tone.MUTED)


def test_a_sources_own_table_shows_measured_and_printed_figures() -> None:
    shape = TableShape(
        "gazette",
        "Gazette",
        (PostTrial.kind,),
        "Table 1",
        {},
        (ShapeColumn("Open", {}), ShapeColumn("Sealed", {})),
        (ShapeRow("Speed", "rate"),),
        "",
    )
    printed = PublishedFigure(70.0, "letters/s", "70 letters / sec", "Table 1")
    cells = (
        ShapeCell(100.0, "letters/s", 5, Interval(96.0, 104.0), printed),
        ShapeCell(None, "letters/s", 0, None, printed),
    )
    table = shape_table(FilledTable(shape, (cells,), ("Letters: 10 here, 100 in the source.",)))
    assert table.caption == "Gazette (Table 1)"
    title, measured, empty = table.rows[0]
    assert (title.text, measured.text, empty.text) == ("Speed", "100 (5)", "–")
    assert [text for text, _ in measured.details] == ["96 – 104", "p: 70 letters / sec"]
    assert [text for text, _ in empty.details] == ["p: 70 letters / sec"]
    assert table.notes[-1] == "Letters: 10 here, 100 in the source."
