"""The lines of the history show what is true now, though their cells are kept between paintings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

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


def test_other_columns_show_their_own_values(shown: tuple[RunModel, dict[str, str]]) -> None:
    model, _ = shown
    model.set_columns([Field("Run", lambda run: str(run.id))], [Field("", lambda _: "")])
    assert text(model) == "1"


def test_a_cell_is_created_once_for_each_role(qtbot: QtBot, theme: Theme) -> None:
    created: list[int] = []
    parent = QWidget()
    qtbot.addWidget(parent)
    field = Field(
        "Run", lambda run: created.append(run.id) or str(run.id), icon=lambda run: ("pin", "link"), right=True
    )
    model = RunModel([field], [Field("", lambda _: "")], theme, parent)
    model.set_records([RUN, replace(RUN, id=2)])
    for _ in range(3):
        assert [model.index(row, 0).data() for row in range(2)] == ["1", "2"]
        assert model.index(0, 0).data(Qt.ItemDataRole.TextAlignmentRole) & int(Qt.AlignmentFlag.AlignRight)
    assert created == [1, 2]
