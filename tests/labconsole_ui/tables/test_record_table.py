"""Columns that fit: cut as little as necessary, the widest first, at each width; rows that the program selects."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from labconsole_ui.tables.record_table import MIN_CUT_WIDTH, DataTable, Field, RecordModel, cut_to, selected_rows
from labconsole_ui.theme.theme import Theme


@pytest.mark.parametrize(
    ("widths", "room", "cut"),
    [
        ([100, 60, 200], 400, [100, 60, 200]),
        ([100, 60, 200], 320, [100, 60, 160]),
        ([180, 60, 200], 320, [130, 60, 130]),
        ([180, 60, 200], 100, [MIN_CUT_WIDTH, 60, MIN_CUT_WIDTH]),
        ([], 100, []),
    ],
)
def test_the_widest_columns_are_cut_first(widths: list[int], room: int, cut: list[int]) -> None:
    assert cut_to(widths, room) == cut


@pytest.mark.parametrize("fit_width", [True, False])
def test_a_table_scrolls_sideways_only_where_its_columns_may_not_be_cut(
    qtbot: QtBot, theme: Theme, fit_width: bool
) -> None:
    table = DataTable("Names", theme, fit_width=fit_width)
    qtbot.addWidget(table)
    model = RecordModel(
        [Field[str]("Name", str), Field[str]("Name again", str), Field[str]("Day", lambda _: "2026")], theme, table
    )
    table.setModel(model)
    model.set_records(["swim-gateway.air-navigation-services.example"])
    table.resize(360, 200)
    table.show()
    table.fit_columns()
    qtbot.waitUntil(lambda: (table.horizontalScrollBar().maximum() == 0) is fit_width)
    narrow = table.columnWidth(0)
    table.resize(1200, 200)
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() == 0)
    assert (table.columnWidth(0) > narrow) is fit_width
    assert table.columnWidth(0) == table.columnWidth(1)


def test_a_long_last_column_gets_its_share(qtbot: QtBot, theme: Theme) -> None:
    table = DataTable("Names", theme, fit_width=True)
    qtbot.addWidget(table)
    model = RecordModel([Field[str]("Name", str), Field[str]("Reason", str)], theme, table)
    table.setModel(model)
    model.set_records(["swim-gateway.air-navigation-services.example"])
    table.resize(360, 200)
    table.show()
    table.setColumnWidth(0, 300)
    table.fit_columns()
    assert abs(table.columnWidth(0) - table.columnWidth(1)) <= 1


@pytest.mark.parametrize("held", [Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier])
def test_the_program_selects_a_row_whatever_keys_are_held(
    qtbot: QtBot, theme: Theme, held: Qt.KeyboardModifier
) -> None:
    table = DataTable("Names", theme)
    qtbot.addWidget(table)
    model = RecordModel([Field[str]("Name", str)], theme, table)
    table.setModel(model)
    model.set_records(["A", "B", "C"])
    table.show()
    qtbot.keyPress(table, Qt.Key.Key_Shift, held)
    try:
        for row in (0, 2):
            table.selectRow(row)
            assert selected_rows(table) == [row] and table.currentIndex().row() == row
    finally:
        qtbot.keyRelease(table, Qt.Key.Key_Shift)


@pytest.mark.parametrize(
    ("order", "shown"), [(Qt.SortOrder.AscendingOrder, "a b - ?"), (Qt.SortOrder.DescendingOrder, "b a - ?")]
)
def test_records_without_a_value_are_last_in_both_orders(
    qtbot: QtBot, theme: Theme, order: Qt.SortOrder, shown: str
) -> None:
    table = DataTable("Names", theme)
    qtbot.addWidget(table)
    name = Field[str]("Name", str, sort=lambda text: text if text.isalpha() else None)
    model = RecordModel([name], theme, table)
    model.set_records(["-", "b", "?", "a"])
    model.sort(0, order)
    assert " ".join(model.records()) == shown
