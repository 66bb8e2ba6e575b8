"""The lines of the history show what is true now, though their cells are kept between paintings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QIcon
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from labconsole.store.records import RunRow
from labconsole_ui.tables.record_table import Field
from labconsole_ui.theme.theme import Theme
from labconsole_ui.views.history.run_model import RunModel
from tests.helpers.run_row import finished_run

RUN = finished_run(1, "amqp.messaging", {}, {})


@pytest.fixture
def shown(qtbot: QtBot, theme: Theme) -> Iterator[tuple[RunModel, dict[str, str]]]:
    """A model of one run, whose note has what is added here, as a status comes from the queue."""
    parent, added = QWidget(), {"added": ""}
    qtbot.addWidget(parent)
    model = RunModel([Field("Note", lambda run: run.note + added["added"])], [Field("", lambda _: "")], theme, parent)
    model.set_records([replace(RUN, note="first")])
    assert text(model) == "first"
    yield model, added
    parent.close()


def text(model: RunModel) -> str:
    return str(model.index(0, 0).data())


def test_new_values_of_a_run_are_shown(shown: tuple[RunModel, dict[str, str]]) -> None:
    model, _ = shown
    model.set_records([replace(RUN, note="second")])
    assert text(model) == "second"


@pytest.mark.parametrize("change", [RunModel.repaint, RunModel.discard_cells])
def test_what_is_not_in_the_run_is_read_again(
    shown: tuple[RunModel, dict[str, str]], change: Callable[[RunModel], None]
) -> None:
    model, added = shown
    added["added"] = ", queued"
    change(model)
    assert text(model) == "first, queued"


def test_a_change_of_the_theme_reads_all_cells_again(shown: tuple[RunModel, dict[str, str]], theme: Theme) -> None:
    model, added = shown
    added["added"] = ", in other colours"
    theme.changed.emit()
    assert text(model) == "first, in other colours"


def test_other_columns_show_their_own_values(shown: tuple[RunModel, dict[str, str]]) -> None:
    model, _ = shown
    model.set_columns([Field("Run", lambda run: str(run.id))], [Field("", lambda _: "")])
    assert text(model) == "1"


def test_a_cell_is_created_once_for_each_role(qtbot: QtBot, theme: Theme) -> None:
    created: list[str] = []

    def named(what: str, value: Any) -> Callable[[RunRow], Any]:
        return lambda run: created.append(f"{what} {run.id}") or value

    parent = QWidget()
    qtbot.addWidget(parent)
    field = Field(
        "Run", named("text", "1"), icon=named("icon", ("pin", "link")), strong=named("font", True), right=True
    )
    model = RunModel([field], [Field("", lambda _: "")], theme, parent)
    model.set_records([RUN, replace(RUN, id=2)])
    role = Qt.ItemDataRole
    for _ in range(3):
        for row in range(2):
            values = [
                model.index(row, 0).data(asked) for asked in (role.DisplayRole, role.DecorationRole, role.FontRole)
            ]
            assert values[0] == "1" and isinstance(values[1], QIcon) and isinstance(values[2], QFont)
        assert model.index(0, 0).data(role.TextAlignmentRole) & int(Qt.AlignmentFlag.AlignRight)
    assert sorted(created) == ["font 1", "font 2", "icon 1", "icon 2", "text 1", "text 2"]
