"""Figures next to published ones, and in the shape of a source's own table."""

from __future__ import annotations

from dataclasses import replace

from labconsole.analysis.comparison import compare, group_repeats
from labconsole.analysis.confidence_intervals import Interval
from labconsole.analysis.published_figures import PublishedFigure
from labconsole.analysis.table_shape import FilledTable, ShapeCell, ShapeColumn, ShapeRow, TableShape
from labconsole.output.report.document import Tone
from labconsole.output.report.result_tables import comparison_tables, printed_tables, shape_tables
from tests.helpers.post_trial import SCENARIOS, PostTrial, metric, published, repeats, run

RATES = (100.0, 104.0, 96.0, 102.0, 98.0)


def test_a_published_figure_is_right_of_the_measured_one_with_ratio_and_whether_the_interval_holds_it() -> None:
    columns = [
        *group_repeats([*repeats(1, "open", "rate", RATES), *repeats(6, "sealed", "rate", RATES)]),
        published({"rate": 99.0}, SCENARIOS["sealed"]),
        published({"rate": 70.0}, SCENARIOS["open"], title="Gazette, open"),
        published({"rate": 70.0}, SCENARIOS["stamped"], title="Gazette, stamped"),
    ]
    [table] = comparison_tables(compare(columns, PostTrial()))
    assert [head.title for head in table.heads[2:]] == [
        "open", "Gazette, open", "sealed", "Gazette, sealed", "Gazette, stamped",
    ]  # fmt: skip
    [[_, _, _, outside, _, inside, nowhere]] = table.rows
    assert (inside.text, inside.details) == (
        "99*", (("ours +1.0 %", Tone.MUTED), ("inside our interval", Tone.MUTED)),
    )  # fmt: skip
    assert [text for text, _ in outside.details] == ["ours +42.8 %", "outside our interval"]
    assert [text for text, _ in nowhere.details] == ["−30.0 %"], "nothing was measured for it: against the baseline"
    assert "Gazette, sealed: Table 1." in table.notes


def test_one_run_has_no_interval_that_could_hold_a_figure() -> None:
    columns = [*group_repeats([run(1, "sealed", {"rate": 99.0})]), published({"rate": 33.0}, SCENARIOS["sealed"])]
    [table] = comparison_tables(compare(columns, PostTrial()))
    assert [text for text, _ in table.rows[0][3].details] == ["ours +200 %"]


def test_a_published_column_stays_with_its_scenario_where_a_table_is_broken() -> None:
    runs = [*repeats(1, "open", "rate", RATES), *repeats(6, "sealed", "rate", RATES)]
    runs += [*repeats(11, "stamped", "rate", RATES)]
    runs += [run(16 + place, f"{place}", {"rate": 1.0}, parameters={"letters": 1 + place}) for place in range(5)]
    columns = [*group_repeats(runs), published({"rate": 1.0}, SCENARIOS["stamped"])]
    columns += [published({"rate": 2.0}, {"letters": 5}), published({"rate": 2.0}, SCENARIOS["open"])]
    first, second = comparison_tables(compare(columns, PostTrial()))
    titles = [[head.title for head in table.heads[2:]] for table in (first, second)]
    assert titles == [
        ["open", "Gazette, sealed", "sealed", "stamped", "Gazette, sealed", "0", "1", "2", "3"],
        ["open", "4", "Gazette, sealed"],
    ]


def test_comparison_with_many_columns_is_on_landscape_pages() -> None:
    runs = [run(1 + place, f"{place}", {"rate": 1.0}, parameters={"letters": 1 + place}) for place in range(6)]
    [portrait] = comparison_tables(compare(group_repeats(runs[:5]), PostTrial()))
    [landscape] = comparison_tables(compare(group_repeats(runs), PostTrial()))
    assert (portrait.wide, len(portrait.heads)) == (False, 7) and (landscape.wide, len(landscape.heads)) == (True, 8)


def test_columns_of_a_sources_table_are_shared_among_tables_that_can_be_read() -> None:
    columns = tuple(ShapeColumn(f"Test {place}", {}) for place in range(14))
    rows = (ShapeRow("Speed", "rate"),)
    shape = TableShape("gazette", "Gazette", ("post.letters",), "Table 1", {}, columns, rows, "")
    cells = tuple(ShapeCell(float(place), "letters/s", 1, None, None) for place in range(14))
    tables = list(shape_tables(FilledTable(shape, (cells,), ("One run.",))))
    assert [len(table.heads) for table in tables] == [6, 6, 5]
    assert [cell.text for table in tables for cell in table.rows[0][1:]] == [f"{place} (1)" for place in range(14)]
    assert tables[1].caption == "Gazette (Table 1, 2 of 3)"
    assert [len(table.notes) for table in tables] == [0, 0, 2]


def test_figures_that_the_console_writes_otherwise_are_shown_as_printed() -> None:
    column = published({"rate": 1.0, "wait_p99": 2204.67}, SCENARIOS["open"])
    printed = {
        "rate": replace(column.figures["rate"], value=1100.0, printed="1,100 letters / sec"),
        "wait_p99": replace(column.figures["wait_p99"], printed="2204.67 ms"),
    }
    runs = repeats(1, "open", "rate", RATES)
    [table] = printed_tables(compare([*group_repeats(runs), replace(column, figures=printed)], PostTrial()))
    assert [[cell.text for cell in cells] for cells in table.rows] == [["Wait p99", "2204.67 ms"]]
    assert printed_tables(compare(group_repeats(runs), PostTrial())) == ()


def test_a_row_has_one_readable_unit_and_large_changes_are_factors() -> None:
    waits = [*repeats(1, "open", "wait_p99", (40_646.0,)), *repeats(6, "sealed", "wait_p99", (7.5,))]
    [table] = comparison_tables(compare(group_repeats(waits), PostTrial()))
    _, unit, slow, quick = table.rows[0]
    assert unit.text == "s ↓" and (slow.text, quick.text) == ("40.65", "0.007500")
    assert quick.details[-1][0] == "÷ 5,420"


def test_a_figure_that_is_not_judged_is_grey() -> None:
    grey = metric("rate", 5.0, not_judged="the computer was busy")
    [table] = comparison_tables(compare(group_repeats([run(1, "open", {}, metrics={"rate": grey})]), PostTrial()))
    _, _, value = table.rows[0]
    assert (
        value.tone is Tone.MUTED
        and "All lines: fewer than 5 repeats; not judged, the computer was busy: open." in table.notes
    )


def test_a_difference_that_is_not_judged_has_no_mark() -> None:
    runs = [*repeats(1, "open", "rate", RATES[:2]), *repeats(6, "sealed", "rate", [rate * 2 for rate in RATES[:2]])]
    [table] = comparison_tables(compare(group_repeats(runs), PostTrial()))
    _, _, _, other = table.rows[0]
    assert other.details[-1] == ("+100 %", Tone.MUTED)
    assert table.notes[0] == "All lines: fewer than 5 repeats.", "why is said once"


def test_no_significant_change_has_a_mark_of_its_own() -> None:
    runs = [*repeats(1, "open", "rate", RATES), *repeats(6, "sealed", "rate", [rate * 1.01 for rate in RATES])]
    [table] = comparison_tables(compare(group_repeats(runs), PostTrial()))
    assert table.rows[0][3].details[-1] == ("≈ +1.0 %", Tone.MUTED)


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
    [table] = shape_tables(FilledTable(shape, (cells,), ("Letters: 10 here, 100 in the source.",)))
    assert table.caption == "Gazette (Table 1)"
    title, measured, empty = table.rows[0]
    assert (title.text, measured.text, empty.text) == ("Speed", "100 (5)", "–")
    assert [text for text, _ in measured.details] == ["96 – 104", "p: 70 letters / sec"]
    assert [text for text, _ in empty.details] == ["p: 70 letters / sec"]
    assert table.notes[-1] == "Letters: 10 here, 100 in the source."
