"""Pages are built in pieces, each small and in a turn of its own; a caller can build the whole page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import QObject, QPoint, Qt, QTimer
from PySide6.QtWidgets import QApplication, QLineEdit, QPlainTextEdit, QWidget
from pytestqt.qtbot import QtBot

from labconsole.model.plugin import Plugin, PluginPage, Plugins
from labconsole_ui.form.field_row import FieldRow
from labconsole_ui.panels.presets import PresetRow
from labconsole_ui.panels.trial_panel import TrialPanel
from labconsole_ui.plots.plot_card import PlotCard
from labconsole_ui.runtime.incremental import BuiltIncrementally, EventLoopQueue, PageBuilder
from labconsole_ui.runtime.page_targets import targets_of
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.pages import opened_trial
from tests.labconsole_ui.campaigns import KIND

TARGETS = [target for plugin in Plugins.discover().found for target in targets_of(plugin)]
LEAST_PIECES = 6
MOST_WIDGETS, MOST_ROWS = 50, 3
"""Most widgets that a piece may add to a page, and to its form."""
A_ROW = 42
"""Height in px by which a wrapped text may still move what is below it."""


class Halves(QObject):
    """A page with two halves, of which the second may fail."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.built: list[str] = []
        self._fails = fails
        self.building = PageBuilder(self, self._pieces())

    def _pieces(self) -> Iterator[None]:
        self.built.append("first")
        yield
        if self._fails:
            raise ValueError("the second half is missing")
        self.built.append("second")


def pieces_of(page: QWidget) -> Iterator[int]:
    """Build a page and its parts in pieces; yields after each piece how many widgets it added."""

    def unfinished() -> list[BuiltIncrementally]:
        widgets = (page, *page.findChildren(QWidget))
        parts = [part for part in widgets if hasattr(part, "building") and isinstance(part, BuiltIncrementally)]
        return [part for part in parts if not part.building.complete]

    while parts := unfinished():
        before = len(page.findChildren(QWidget))
        parts[0].building.step()
        yield len(page.findChildren(QWidget)) - before


def test_one_piece_is_built_per_event_loop_turn_and_waiting_actions_follow(qtbot: QtBot) -> None:
    halves = Halves()
    halves.building.when_complete(lambda: halves.built.append("waited"))
    assert halves.built == [], "nothing is built before the event loop comes round"
    seen: list[int] = []
    turns = QTimer(halves)
    turns.timeout.connect(lambda: seen.append(len(halves.built)))
    turns.start(0)
    qtbot.waitUntil(lambda: halves.building.complete)
    turns.stop()
    assert 1 in seen, "a turn came between the halves"
    assert halves.built == ["first", "second", "waited"]
    halves.building.when_complete(lambda: halves.built.append("at once"))
    assert halves.built[-1] == "at once"


def test_finish_builds_the_whole_page_at_once(qtbot: QtBot) -> None:
    halves = Halves()
    halves.building.finish()
    assert halves.built == ["first", "second"]
    qtbot.wait(20)
    assert halves.built == ["first", "second"], "nothing is built twice"


def test_a_piece_that_fails_is_reported_and_the_page_is_not_complete(qtbot: QtBot) -> None:
    halves, errors = Halves(fails=True), []
    halves.building.on_failure = errors.append
    qtbot.waitUntil(lambda: bool(errors))
    assert str(errors[0]) == "the second half is missing" and not halves.building.complete
    with pytest.raises(ValueError, match="second half"):
        halves.building.finish()


@pytest.mark.parametrize("target", TARGETS)
def test_each_page_opens_empty_and_is_built_in_small_pieces(shown_window: MainWindow, target: str) -> None:
    shown_window.show_page(target)
    page = shown_window.pages.currentWidget()
    assert isinstance(page, BuiltIncrementally)
    assert page.findChildren(QWidget) == [], "it opens as an empty frame"
    rows = plots = 0
    added = []
    for widgets in pieces_of(page):
        added.append(widgets)
        new_rows, new_plots = len(page.findChildren(FieldRow)) - rows, len(page.findChildren(PlotCard)) - plots
        rows, plots = rows + new_rows, plots + new_plots
        assert new_rows <= MOST_ROWS and new_plots <= 1
    assert max(added) <= MOST_WIDGETS, added
    assert sum(1 for widgets in added if widgets > 0) >= LEAST_PIECES, added


@pytest.mark.parametrize("target", TARGETS)
def test_each_page_is_complete_by_itself_and_built_parts_of_a_panel_do_not_move(
    qapp: QApplication, qtbot: QtBot, shown_window: MainWindow, target: str
) -> None:
    shown_window.show_page(target)
    page = shown_window.pages.currentWidget()
    assert isinstance(page, BuiltIncrementally)
    if not isinstance(page, TrialPanel):
        qtbot.waitUntil(lambda: page.building.complete)
        return
    tops: dict[QWidget, set[int]] = {}
    while not page.building.complete:
        qapp.processEvents()
        qapp.sendPostedEvents()  # lays out, as before painting
        for widget in page.findChildren(PresetRow) + page.findChildren(FieldRow):
            if widget.isVisible():
                tops.setdefault(widget, set()).add(widget.mapTo(page, QPoint()).y())
    assert page.form.problems == () and page.run_bar.run_button.isEnabled()
    assert len(tops[page.presets]) == 1
    assert all(max(places) - min(places) < A_ROW for places in tops.values()), tops.values()


def half_built(window: MainWindow, kind: str) -> TrialPanel:
    """A panel with its presets and some rows of its form."""
    panel = window.open_trial(kind)
    assert panel is not None
    while not panel.findChildren(FieldRow):
        assert panel.building.step()
    assert panel.building.step() and not panel.building.complete
    return panel


def test_values_that_come_before_the_form_is_complete_are_in_it(qtbot: QtBot, shown_window: MainWindow) -> None:
    panel = half_built(shown_window, KIND)
    panel.use_parameters({"count": 77, "loop": "closed", "test": 2})
    qtbot.waitUntil(lambda: panel.building.complete)
    values = panel.form.values()
    assert (values["count"], values["test"]) == (77, 2)


def test_a_field_that_is_edited_before_the_form_is_complete_keeps_its_text(
    qtbot: QtBot, shown_window: MainWindow
) -> None:
    panel = half_built(shown_window, "keypool.simulation")
    row = next(row for row in panel.findChildren(FieldRow) if row.editor.findChild(QLineEdit) and not row.isHidden())
    edit = row.editor.findChild(QLineEdit)
    edit.selectAll()
    qtbot.keyClicks(edit, "12345")
    qtbot.waitUntil(lambda: panel.building.complete)
    assert edit.text() == "12345" and row.value() == 12345
    assert panel.context.state.mapping("form/keypool.simulation")["values"][row.spec.name] == 12345


def test_run_before_the_form_is_complete_uses_the_preset(qtbot: QtBot, shown_window: MainWindow) -> None:
    shown_window.services.bridge.queue.pause()
    panel = half_built(shown_window, KIND)
    panel.run()
    (item,) = shown_window.services.bridge.queue.items
    assert panel.building.complete and panel.presets.scenario is not None
    assert item.scenario == panel.presets.scenario.name


def test_a_preset_chosen_before_the_form_is_complete_fills_it(qtbot: QtBot, shown_window: MainWindow) -> None:
    panel = half_built(shown_window, KIND)
    combo = panel.presets.profile_combo
    combo.setFocus()
    before = combo.currentText()
    qtbot.keyClick(combo, Qt.Key.Key_Down)
    assert combo.currentText() != before and panel.building.complete
    scenario = panel.presets.scenario
    assert scenario is not None and panel.form.parameters is not None
    assert panel.form.parameters.model_dump(mode="json") == dict(scenario.parameters)


def test_a_form_in_pieces_is_the_one_built_at_once(shown_window: MainWindow) -> None:
    panel = opened_trial(shown_window, KIND)
    rows = [row for section in panel.form.sections for row in section.rows]
    hidden = {row.path for row in rows if row.isHidden()}
    values = panel.form.values()
    assert panel.presets.scenario is not None
    panel.form.set_base(panel.presets.scenario.parameters)
    panel.form.set_values(values)
    assert {row.path for row in rows if row.isHidden()} == hidden
    assert not any(row.changed for row in rows)
    assert hidden and len(hidden) < len(rows)


def test_tab_goes_from_the_preset_through_the_form_to_the_run_button(window: MainWindow) -> None:
    """In a window of its own: PySide takes the next widget of the chain for a child of the one before."""
    panel = opened_trial(window, KIND)
    order: list[QWidget] = []
    widget = panel.presets.profile_combo.nextInFocusChain()
    while widget is not panel.presets.profile_combo:
        order.append(widget)
        widget = widget.nextInFocusChain()
    rows = [row.editor.focusProxy() for section in panel.form.sections for row in section.rows]
    places = [order.index(row) for row in rows if row is not None]
    assert places == sorted(places)
    assert order.index(panel.presets.scenario_combo) < places[0]
    assert places[-1] < order.index(panel.run_bar.run_button) < order.index(panel.run_bar.live_box)


class FailingPage(QWidget):
    """Opens, and fails in its second piece."""

    def __init__(self, _context: object) -> None:
        super().__init__()
        self.building = PageBuilder(self, self._pieces())

    def _pieces(self) -> Iterator[None]:
        yield
        raise RuntimeError("no second piece")


def test_a_page_that_fails_in_a_later_piece_is_shown_as_broken(
    qtbot: QtBot, services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    page = PluginPage("Failing", f"{__name__}:FailingPage")
    failing = Plugin(name="failing", title="Failing", description="Fails", pages={"page": page})
    window = open_window(replace(services, plugins=Plugins((*services.plugins.found, failing), ())))
    window.show_page("page:failing:page")
    qtbot.waitUntil(lambda: window.pages.current_key == "broken:page:failing:page")
    details = window.pages.currentWidget().findChild(QPlainTextEdit)
    assert "no second piece" in details.toPlainText()
    assert window.pages.page("page:failing:page") is None
    opened_trial(window, KIND)


class Diary:
    """Pieces that record their order."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def first(self) -> None:
        self.done.append("first")

    def second(self) -> None:
        self.done.append("second")

    def third(self) -> None:
        self.done.append("third")


def test_other_events_are_handled_between_the_pieces(qtbot: QtBot) -> None:
    owner, diary = QObject(), Diary()
    turns = EventLoopQueue(owner)
    turns.add(lambda: QTimer.singleShot(0, diary.second), diary.first, diary.third, diary.third)
    assert diary.done == []
    qtbot.waitUntil(lambda: len(diary.done) == 3)
    assert diary.done.index("second") < 2, "it was asked for in the first turn, before the last one"
    qtbot.wait(20)
    assert diary.done.count("third") == 1, "the same piece waits once"


def test_pieces_are_inserted_before_others_or_replace_them(qtbot: QtBot) -> None:
    owner, diary = QObject(), Diary()
    turns = EventLoopQueue(owner)
    turns.add(diary.third)
    turns.add_first([diary.first, diary.second])
    qtbot.waitUntil(lambda: diary.done == ["first", "second", "third"])
    turns.add(diary.first, diary.second)
    turns.replace([diary.third])
    qtbot.waitUntil(lambda: len(diary.done) == 4)
    qtbot.wait(20)
    assert diary.done[3:] == ["third"]
