"""The form of a parameter model: typed values, and the errors of the model."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

import pytest
from pydantic import BaseModel, Field, model_validator
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QFileDialog, QLabel, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from labconsole.model.field_spec import FieldKind, FieldSpec, fields_of
from labconsole.model.trial import Parameters
from labconsole_ui.form.editors import ChoiceEditor
from labconsole_ui.form.parameter_form import ParameterForm
from labconsole_ui.form.table_editor import TableEditor
from labconsole_ui.theme.theme import Theme


class Loop(StrEnum):
    CLOSED = "closed"
    OPEN = "open"


class Station(BaseModel):
    name: Annotated[str, Field(title="Name", min_length=1)] = "A"
    port: Annotated[int, Field(title="Port", ge=1, le=65535)] = 5671


class Retry(BaseModel):
    attempts: Annotated[int, Field(title="Attempts", ge=0)] = 3


class Example(Parameters):
    count: Annotated[
        int, Field(title="Messages", description="How many", ge=1, le=100_000, json_schema_extra={"unit": "messages"})
    ] = 10_000
    loop: Annotated[Loop, Field(title="Loop", json_schema_extra={"labels": {"open": "Open, at a rate"}})] = Loop.CLOSED
    rate: Annotated[
        float, Field(title="Rate", gt=0, json_schema_extra={"unit": "msg/s", "shown_if": {"loop": "open"}})
    ] = 100.0
    level: Literal[1, 2] = 1
    durable: Annotated[bool, Field(title="Durable")] = False
    payload: Annotated[Path | None, Field(title="Payload", json_schema_extra={"group": "Files"})] = None
    stations: Annotated[tuple[Station, ...], Field(title="Stations", json_schema_extra={"group": "Files"})] = ()
    retry: Annotated[Retry, Field(title="Retry")] = Retry()

    @model_validator(mode="after")
    def _level_needs_durable(self) -> Self:
        if self.level == 2 and not self.durable:
            raise ValueError("level 2 must not get lost: set `durable` to true")
        return self


@pytest.fixture
def form(qtbot: QtBot, theme: Theme) -> ParameterForm:
    form = ParameterForm(Example, theme)
    qtbot.addWidget(form)
    form.show()
    return form


def line(form: ParameterForm, *path: str) -> QLineEdit:
    return form.row(*path).editor.findChild(QLineEdit)


def retype(qtbot: QtBot, edit: QLineEdit, text: str) -> None:
    edit.selectAll()
    qtbot.keyClicks(edit, text) if text else qtbot.keyClick(edit, Qt.Key.Key_Delete)


class Saving(Parameters):
    loop: Annotated[Loop, Field(title="Loop", json_schema_extra={"choices": ("open",)})] = Loop.OPEN
    file: Annotated[
        Path | None, Field(title="Save to", json_schema_extra={"kind": "new-file", "empty": "No file is written"})
    ] = None


def test_a_new_file_is_chosen_as_one_to_save(
    qtbot: QtBot, theme: Theme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = ParameterForm(Saving, theme)
    qtbot.addWidget(form)
    form.show()
    assert line(form, "file").placeholderText() == "No file is written"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, **__: (str(tmp_path / "new.pem"), ""))
    qtbot.mouseClick(form.row("file").editor.findChild(QPushButton), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: form.parameters == Saving(file=tmp_path / "new.pem"))


def test_only_the_choices_that_a_field_offers_are_shown() -> None:
    [loop, _file] = fields_of(Saving)
    assert loop.choices == (("open", "Open"),)


def test_kinds_units_bounds_and_choices_come_from_the_model() -> None:
    specs = {spec.name: spec for spec in fields_of(Example)}
    assert [specs[name].kind for name in ("count", "loop", "durable", "payload", "stations", "retry")] == [
        FieldKind.INTEGER, FieldKind.CHOICE, FieldKind.FLAG, FieldKind.FILE, FieldKind.TABLE, FieldKind.GROUP,
    ]  # fmt: skip
    assert specs["count"].unit == "messages"
    assert specs["count"].bounds == "1 – 100,000"
    assert specs["rate"].bounds == "> 0"
    assert specs["loop"].choices == (("closed", "Closed"), ("open", "Open, at a rate"))
    assert specs["payload"].optional


def test_untouched_form_gives_the_model_s_defaults(form: ParameterForm) -> None:
    assert form.parameters == Example()


@pytest.mark.parametrize("text", ["20 000", "20,000", "20000"])
def test_typed_number_reaches_the_parameters(qtbot: QtBot, form: ParameterForm, text: str) -> None:
    retype(qtbot, line(form, "count"), text)
    qtbot.waitUntil(lambda: form.parameters is not None and form.parameters.count == 20_000)


def test_a_comma_that_does_not_separate_thousands_is_not_a_number(qtbot: QtBot, form: ParameterForm) -> None:
    form.set_values({"loop": "open"})
    retype(qtbot, line(form, "rate"), "1,5")
    qtbot.waitUntil(lambda: form.parameters is None)
    assert form.row("rate").error_label.text() == "Enter a number, with a point before the decimals."


def test_a_wide_form_has_two_columns_and_a_narrow_one_has_one(qtbot: QtBot, form: ParameterForm) -> None:
    first, second = form.sections[0].rows[:2]
    form.resize(1000, 700)
    qtbot.waitUntil(lambda: first.y() == second.y() and second.x() > first.x())
    form.resize(600, 700)
    qtbot.waitUntil(lambda: second.y() > first.y() and second.x() == first.x())


def test_error_appears_below_the_field_while_typing_and_disappears(qtbot: QtBot, form: ParameterForm) -> None:
    label = form.row("count").error_label
    retype(qtbot, line(form, "count"), "0")
    qtbot.waitUntil(lambda: form.parameters is None)
    assert label.isVisible()
    assert label.text() == "Enter at least 1 messages."
    assert form.problems == ("Messages: Enter at least 1 messages.",)
    retype(qtbot, line(form, "count"), "many")
    qtbot.waitUntil(lambda: label.text() == "Enter a whole number.")
    retype(qtbot, line(form, "count"), "7")
    qtbot.waitUntil(lambda: form.parameters is not None)
    assert not label.isVisible()


def test_dependent_field_shows_with_its_condition_and_does_not_matter_while_hidden(
    qtbot: QtBot, form: ParameterForm
) -> None:
    combo = form.row("loop").editor.findChild(QComboBox)
    assert not form.row("rate").isVisible()
    qtbot.keyClick(combo, Qt.Key.Key_Down)
    qtbot.waitUntil(form.row("rate").isVisible)
    retype(qtbot, line(form, "rate"), "-1")
    qtbot.waitUntil(lambda: form.parameters is None)
    qtbot.keyClick(combo, Qt.Key.Key_Up)
    qtbot.waitUntil(lambda: form.parameters == Example())


def test_model_error_is_shown_at_the_top_and_leads_to_the_field_it_names(qtbot: QtBot, form: ParameterForm) -> None:
    form.row("level").set_value(2)
    form.validate()
    sentence = "Level 2 must not get lost: set “Durable” to true."
    assert form.problems == (sentence,)
    (label,) = [label for label in form.findChildren(QLabel) if label.text() == sentence and label.isVisible()]
    assert label.y() < form.sections[0].y()
    form.activateWindow()
    form.show_first_problem()
    qtbot.waitUntil(lambda: form.row("durable").isAncestorOf(QApplication.focusWidget()))
    qtbot.mouseClick(form.row("durable").editor.findChild(QCheckBox), Qt.MouseButton.LeftButton, pos=QPoint(8, 8))
    qtbot.waitUntil(lambda: form.parameters is not None)


def test_reset_brings_one_default_back_and_is_offered_only_where_something_changed(
    qtbot: QtBot, form: ParameterForm
) -> None:
    row = form.row("count")
    assert not row.reset_button.isVisible()
    retype(qtbot, line(form, "count"), "5")
    assert row.reset_button.isVisible()
    qtbot.mouseClick(row.reset_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: form.parameters == Example())


def test_tab_goes_from_a_changed_field_to_its_reset_button_and_on_to_the_next_field(
    qtbot: QtBot, form: ParameterForm
) -> None:
    form.activateWindow()
    form.sections[1].unfold()
    edit, button = line(form, "payload"), form.row("payload").editor.findChild(QPushButton)
    with qtbot.waitSignal(form.field_focused) as focused:
        edit.setFocus()
    assert focused.args == [form.row("payload").spec]
    QApplication.processEvents()
    width = edit.width()
    edit.setText("/no/such/file")
    form.validate()
    row = form.row("payload")
    QApplication.processEvents()
    assert edit.width() == width, "the place of the reset button was reserved"
    assert row.reset_button.accessibleName() == "Reset to default: Payload" and row.reset_button.isVisible()
    for following in (button, row.reset_button, form.row("stations").editor.focusProxy()):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        assert QApplication.focusWidget() is following


def test_text_can_be_undone_and_redone(qtbot: QtBot, form: ParameterForm) -> None:
    edit = line(form, "count")
    before = edit.text()
    qtbot.keyClick(edit, Qt.Key.Key_End)
    qtbot.keyClicks(edit, "1")
    after = edit.text()
    qtbot.keyClick(edit, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert edit.text() == before
    edit.redo()
    assert edit.text() == after


def test_dropped_file_becomes_the_path(form: ParameterForm, tmp_path: Path) -> None:
    file = tmp_path / "plan.txt"
    file.write_text("FPL")
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(file))])
    drop = QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    enter = QDragEnterEvent(
        QPoint(5, 5), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(line(form, "payload"), enter)
    QApplication.sendEvent(line(form, "payload"), drop)
    assert enter.isAccepted()
    form.validate()
    assert form.parameters is not None
    assert form.parameters.payload == file


def test_rows_of_a_table_are_added_filled_in_and_judged(qtbot: QtBot, form: ParameterForm) -> None:
    editor = form.row("stations").editor
    assert isinstance(editor, TableEditor)
    qtbot.mouseClick(editor.add_button, Qt.MouseButton.LeftButton)
    editor.table.item(0, 0).setText("Tower")
    editor.table.item(0, 1).setText("70000")
    form.validate()
    assert form.problems == ("Stations: Row 1: Enter at most 65,535.",)
    editor.table.item(0, 1).setText("5672")
    form.validate()
    assert form.parameters is not None
    assert form.parameters.stations == (Station(name="Tower", port=5672),)


def test_nested_model_is_a_group_of_its_own(form: ParameterForm) -> None:
    form.row("retry", "attempts").set_value(9)
    form.validate()
    assert form.parameters is not None
    assert form.parameters.retry.attempts == 9


def test_values_are_restored_and_unknown_ones_ignored(form: ParameterForm) -> None:
    form.set_values({"count": 42, "no_longer_there": 1, "retry": {"attempts": 1}})
    assert form.parameters is not None
    assert (form.parameters.count, form.parameters.retry.attempts) == (42, 1)


def test_folded_section_opens_when_something_in_it_is_wrong(form: ParameterForm) -> None:
    section = next(section for section in form.sections if form.row("retry", "attempts") in section.rows)
    assert section.folded
    form.row("retry", "attempts").set_value(-1)
    form.validate()
    assert not section.folded


class Names(Parameters):
    issuer: Annotated[str, Field(title="Issuer", min_length=1)]
    subject: Annotated[str, Field(title="Subject", json_schema_extra={"empty": "As in the CSR"})] = ""
    names: Annotated[tuple[str, ...], Field(title="Names", json_schema_extra={"empty": "None"})] = ()


def test_an_empty_field_shows_its_meaning_and_a_list_is_as_high_as_its_rows(qtbot: QtBot, theme: Theme) -> None:
    form = ParameterForm(Names, theme)
    qtbot.addWidget(form)
    line = form.row("subject").editor.focusProxy()
    assert isinstance(line, QLineEdit)
    assert line.placeholderText() == "As in the CSR"
    editor = form.row("names").editor
    assert isinstance(editor, TableEditor)
    heights = []
    for count in (0, 1, 3, 40):
        editor.set_value(["a.example"] * count)
        heights.append(editor.table.height())
    assert heights[0] == heights[1] < heights[2] < heights[3] < 6 * heights[0]


def test_reset_is_not_offered_for_a_value_that_cannot_be_entered(qtbot: QtBot, theme: Theme) -> None:
    def one_of_two(spec: FieldSpec, parent: QWidget) -> ChoiceEditor:
        return ChoiceEditor(replace(spec, choices=(("a", "A"), ("b", "B"))), parent)

    form = ParameterForm(Names, theme, {"issuer": one_of_two})
    qtbot.addWidget(form)
    form.set_values({"issuer": "b", "subject": "CN=b"})
    assert form.row("issuer").reset_button.isHidden()
    assert not form.row("subject").reset_button.isHidden()
