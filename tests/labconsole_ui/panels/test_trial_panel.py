"""A trial's panel by clicks: presets, facts, warnings, run bar, saved profiles, stored values."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QLineEdit
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.model.placement import Placement, RoleRequest
from labconsole.profiles.profile import load_profile
from labconsole.store.reader import Reader
from labconsole_ui.form.segmented_editor import SegmentedEditor
from labconsole_ui.panels.trial_panel import TrialPanel
from labconsole_ui.runtime.services import Services
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.pages import opened_trial
from tests.labconsole_ui.shared_window import SharedWindow

KIND = "amqp.messaging"
Opener = Callable[[Services], MainWindow]


@pytest.fixture(scope="module")
def kept_panels() -> tuple[str, ...]:
    return (KIND,)


@pytest.fixture
def panel(shared: SharedWindow) -> TrialPanel:
    """The panel in the shared window; nothing that waits in its queue is started."""
    shared.services.bridge.queue.pause()
    return shared.trial(KIND)


@pytest.fixture
def own_panel(window: MainWindow) -> TrialPanel:
    """The panel in a window of its own, for tests of what is stored or run."""
    window.services.bridge.queue.pause()
    return opened_trial(window, KIND)


def demo_count(panel: TrialPanel) -> int:
    return int(load_profile("demo", panel.context.plugins).scenarios[0].parameters["count"])


def facts(panel: TrialPanel) -> dict[str, str]:
    labels = [label.text() for label in panel.facts_card.findChildren(QLabel) if not label.isHidden()]
    return dict(zip(labels[::2], labels[1::2], strict=True))


def choose_test(qtbot: QtBot, panel: TrialPanel, test: int) -> None:
    editor = panel.form.row("test").editor
    assert isinstance(editor, SegmentedEditor)
    qtbot.mouseClick(editor.buttons[test - 1], Qt.MouseButton.LeftButton)


def choose_profile(qtbot: QtBot, panel: TrialPanel, name: str) -> None:
    combo = panel.presets.profile_combo
    combo.setFocus()
    combo.setCurrentIndex(combo.findData(name))
    combo.activated.emit(combo.currentIndex())


def test_choices_have_titles_and_a_port_has_no_separators(panel: TrialPanel) -> None:
    specs = {row.spec.name: row.spec for section in panel.form.sections for row in section.rows}
    assert dict(specs["loop"].choices)["closed"] == "Closed: as fast as credit allows"
    assert specs["port"].bounds == "1 – 65535"
    panel.form.set_values({"broker": "external", "port": 15672})
    assert panel.form.row("port").editor.findChild(QLineEdit).text() == "15672"
    assert panel.form.parameters is not None and panel.form.parameters.model_dump()["port"] == 15672


def test_first_preset_fills_the_form(panel: TrialPanel) -> None:
    assert panel.presets.profile_name == "demo"
    assert panel.form.values()["count"] == demo_count(panel)
    assert panel.presets.modified_label.isHidden()


@pytest.mark.parametrize(("test", "size"), [(1, "282 B"), (2, "282 B"), (3, "652 B"), (4, "1,053 B")])
def test_encoded_size_is_the_source_s(qtbot: QtBot, panel: TrialPanel, test: int, size: str) -> None:
    choose_test(qtbot, panel, test)
    qtbot.waitUntil(lambda: facts(panel).get("Encoded message") == size)
    assert facts(panel)["Payload"] == "237 B"


def test_arrow_keys_move_between_the_tests(qtbot: QtBot, panel: TrialPanel) -> None:
    editor = panel.form.row("test").editor
    assert isinstance(editor, SegmentedEditor)
    qtbot.keyClick(editor.buttons[0], Qt.Key.Key_Right)
    assert editor.value() == 2
    assert "client" in editor.meaning_label.text()


def test_change_is_marked_as_modified_and_names_the_run(qtbot: QtBot, panel: TrialPanel) -> None:
    edit = panel.form.row("count").editor.findChild(QLineEdit)
    edit.selectAll()
    qtbot.keyClicks(edit, "50")
    qtbot.waitUntil(lambda: not panel.presets.modified_label.isHidden())
    qtbot.mouseClick(panel.run_bar.add_button, Qt.MouseButton.LeftButton)
    (item,) = panel.context.bridge.queue.items
    assert item.scenario == "Test 1: plain (modified)"


def test_profile_of_a_campaign_offers_scenarios_sites_and_the_whole_campaign(qtbot: QtBot, panel: TrialPanel) -> None:
    choose_profile(qtbot, panel, "swim-within-malaysia")
    assert panel.presets.scenario_combo.count() == 12
    assert panel.sites.isVisibleTo(panel)
    assert panel.sites.table.model().columnCount() >= 2
    panel.presets.scenario_combo.setCurrentIndex(11)
    panel.presets.scenario_combo.activated.emit(11)
    assert panel.form.values()["test"] == 4
    runs = 12 * load_profile("swim-within-malaysia", panel.context.plugins).repeats
    assert str(runs) in panel.run_bar.campaign_button.text()
    panel.context.launcher.run_profile("swim-within-malaysia", at_once=False)
    assert len(panel.context.bridge.queue.items) == runs


def type_into(qtbot: QtBot, panel: TrialPanel, name: str, text: str) -> None:
    edit = panel.form.row(name).editor.findChild(QLineEdit)
    edit.selectAll()
    qtbot.keyClicks(edit, text)


def plan(panel: TrialPanel) -> str:
    return panel.run_bar.plan_label.text()


def test_campaign_runs_what_the_form_shows(qtbot: QtBot, panel: TrialPanel, shown_window: MainWindow) -> None:
    """Edits apply to each scenario that does not set the parameter itself; a line names them before."""
    choose_profile(qtbot, panel, "swim-within-malaysia")
    assert plan(panel).startswith("Campaign: 12 scenarios × ") and "changes" not in plan(panel)
    choose_test(qtbot, panel, 3)
    type_into(qtbot, panel, "count", "77")
    panel.form.set_values({**panel.form.values(), "broker": "external", "host": "broker.example", "credit": 7})
    qtbot.waitUntil(lambda: "Host" in plan(panel))
    assert "Your changes apply to all of them: Broker: external; Host: broker.example; " in plan(panel)
    assert plan(panel).endswith("Each scenario keeps its own: Test, Messages.")
    qtbot.mouseClick(panel.run_bar.campaign_button, Qt.MouseButton.LeftButton)
    queued = panel.context.bridge.queue.items
    assert len(queued) == load_profile("swim-within-malaysia", panel.context.plugins).runs
    with shown_window.services.reader() as reader:
        ran = [reader.run(item.run_id) for item in queued]
    parameters = [run.row.parameters for run in ran]
    assert {(one["broker"], one["host"], one["credit"]) for one in parameters} == {("external", "broker.example", 7)}
    assert {one["test"] for one in parameters} == {1, 2, 3, 4}
    assert {one["count"] for one in parameters} == {10_000, 1_000}
    assert ran[0].row.campaign == "SWIM: within Malaysia (modified)" and ran[0].sites == ()


def test_campaign_is_off_while_the_form_or_one_of_its_scenarios_is_wrong(qtbot: QtBot, panel: TrialPanel) -> None:
    choose_profile(qtbot, panel, "swim-within-malaysia")
    assert panel.run_bar.campaign_button.isEnabled()
    type_into(qtbot, panel, "credit", "0")
    qtbot.waitUntil(lambda: not panel.run_bar.run_button.isEnabled())
    assert not panel.run_bar.campaign_button.isEnabled()
    qtbot.mouseClick(panel.run_bar.campaign_button, Qt.MouseButton.LeftButton)
    assert panel.context.bridge.queue.items == ()
    type_into(qtbot, panel, "credit", "5")
    qtbot.waitUntil(lambda: panel.run_bar.campaign_button.isEnabled())


def test_reset_of_a_field_gives_the_preset_s_value(qtbot: QtBot, panel: TrialPanel) -> None:
    row = panel.form.row("open_loop")
    assert row.value() == 1.0 != row.spec.default and row.reset_button.isHidden(), "it is as the preset has it"
    type_into(qtbot, panel, "open_loop", "9")
    assert row.value() == 9.0 and not row.reset_button.isHidden()
    assert row.reset_button.toolTip() == "Back to the preset: 1.0 s"
    qtbot.mouseClick(row.reset_button, Qt.MouseButton.LeftButton)
    assert row.value() == 1.0 and row.reset_button.isHidden()
    qtbot.waitUntil(lambda: panel.presets.modified_label.isHidden())
    choose_profile(qtbot, panel, "")
    assert row.reset_button.toolTip().startswith("Back to the default: ")


@pytest.mark.usefixtures("worker_threads")
def test_run_is_queued_before_waiting_runs_and_add_after_them(
    qtbot: QtBot, own_panel: TrialPanel, window: MainWindow
) -> None:
    queue = own_panel.context.bridge.queue
    own_panel.run_bar.repeats_box.setValue(2)
    qtbot.mouseClick(own_panel.run_bar.add_button, Qt.MouseButton.LeftButton)
    added = [item.run_id for item in queue.items]
    own_panel.run_bar.repeats_box.setValue(1)
    qtbot.mouseClick(own_panel.run_bar.run_button, Qt.MouseButton.LeftButton)
    ids = [item.run_id for item in queue.items]
    assert ids[1:] == added
    assert queue.paused, "the operator has paused it"
    entry = window.messages.entries()[0]
    assert entry.message.sentence == "The queue is paused; it holds 1 run(s) more."
    qtbot.mouseClick(entry.link_button, Qt.MouseButton.LeftButton)
    assert not queue.paused
    qtbot.waitUntil(lambda: queue.items[0].state is QueueState.RUNNING)


BOUNDED = """
format = 1
title = "Mine"
kind = "amqp.messaging"
seed = 7
[parameters]
count = 100
[thresholds]
throughput = { min = 1.0 }
[[hosts.roles]]
role = "sender-*"
tag = "obu"
[[sites]]
name = "Here"
plain_port = 5672
"""


def test_thresholds_seed_hosts_and_sites_of_a_preset_go_into_runs_and_saved_profiles(
    own_panel: TrialPanel, window: MainWindow, home: Path
) -> None:
    (home / "profiles").mkdir(exist_ok=True)
    (home / "profiles" / "bounded.toml").write_text(BOUNDED)
    own_panel.presets.load_profiles("bounded")
    own_panel.use_parameters(own_panel.presets.scenario.parameters if own_panel.presets.scenario else {})
    own_panel.add()
    own_panel.presets.save_as("copy")
    saved = load_profile("copy", own_panel.context.plugins)
    assert (saved.seed, [site.plain_port for site in saved.sites]) == (7, [5672])
    assert saved.scenarios[0].thresholds == {"throughput": {"min": 1.0}}
    asked = Placement(roles=(RoleRequest(role="sender-*", tag="obu"),)).stored()
    assert saved.scenarios[0].placement == asked
    own_panel.form.set_values({"broker": "external", "host": "elsewhere.example", "count": 100})
    assert not own_panel.sites.isVisibleTo(own_panel)
    own_panel.add()
    first, second = own_panel.context.bridge.queue.items
    with window.services.reader() as reader:
        same, elsewhere = reader.run(first.run_id), reader.run(second.run_id)
    assert same.thresholds == {"throughput": {"min": 1.0}}
    assert [site["name"] for site in same.sites] == ["Here"]
    assert elsewhere.thresholds == same.thresholds
    assert elsewhere.sites == (), "these hosts are not the preset's sites"
    assert same.placement == elsewhere.placement == asked
    [again] = window.launcher.run_again(same, {"count": 50})
    with window.services.reader() as reader, reader.snapshot() as connection:
        assert reader.run(again).placement == asked
        texts = connection.exec_driver_sql("SELECT DISTINCT profile_text FROM campaign").scalars().all()
    assert [tomllib.loads(text)["hosts"] for text in texts] == [{"roles": [{"role": "sender-*", "tag": "obu"}]}] * 3


def test_invalid_form_cannot_run_and_shows_why(qtbot: QtBot, panel: TrialPanel) -> None:
    panel.form.set_values({"loop": "closed"})
    edit = panel.form.row("count").editor.findChild(QLineEdit)
    edit.selectAll()
    qtbot.keyClicks(edit, "0")
    qtbot.waitUntil(lambda: not panel.run_bar.run_button.isEnabled())
    assert not panel.run_bar.add_button.isEnabled()
    assert panel.run_bar.problem_button.text() == "Messages: Enter at least 1."
    qtbot.keyClick(panel, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert panel.context.bridge.queue.items == ()


def test_sentences_name_fields_by_their_titles(panel: TrialPanel) -> None:
    panel.form.set_values({"mode": "sender"})
    (problem,) = panel.form.problems
    assert problem.endswith("needs an external broker: set “Broker” to external.")
    assert panel.run_bar.problem_button.text() == problem


def test_help_line_explains_the_field_with_the_focus(qtbot: QtBot, panel: TrialPanel) -> None:
    panel.window().activateWindow()
    edit = panel.form.row("count").editor.findChild(QLineEdit)
    edit.setFocus()
    qtbot.waitUntil(lambda: panel.run_bar.help_label.text().startswith("Messages: "))


def test_warnings_of_the_trial_are_shown(panel: TrialPanel) -> None:
    panel.form.set_values({"loop": "closed"})
    texts = [label.text() for label in panel.findChildren(QLabel)]
    assert any(text.startswith("Closed loop: ") for text in texts)


def test_saved_profile_holds_the_form_and_is_chosen(own_panel: TrialPanel, home: Path) -> None:
    own_panel.form.row("count").set_value(77)
    own_panel.form.validate()
    own_panel.presets.save_as("mine")
    assert load_profile("mine", own_panel.context.plugins).scenarios[0].parameters["count"] == 77
    assert own_panel.presets.profile_name == "mine"
    assert own_panel.presets.modified_label.isHidden()


def test_existing_profile_is_replaced_only_when_confirmed(
    own_panel: TrialPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_panel.presets.save_as("mine")
    own_panel.form.row("count").set_value(78)
    own_panel.form.validate()
    failures: list[str] = []
    own_panel.presets.failed.connect(failures.append)
    monkeypatch.setattr(own_panel.presets, "confirm", lambda _error: False)
    own_panel.presets.save_as("mine")
    assert "exists already" in failures[0]
    assert load_profile("mine", own_panel.context.plugins).scenarios[0].parameters["count"] == demo_count(own_panel)
    monkeypatch.setattr(own_panel.presets, "confirm", lambda _error: True)
    own_panel.presets.save_as("mine")
    assert load_profile("mine", own_panel.context.plugins).scenarios[0].parameters["count"] == 78


def test_bad_profile_name_is_refused_in_a_sentence(panel: TrialPanel, shown_window: MainWindow) -> None:
    panel.presets.save_as("Bad Name!")
    assert "cannot be a profile's name" in shown_window.messages.entries()[0].message.sentence


def test_parameters_are_copied_as_toml_and_json(panel: TrialPanel) -> None:
    toml, plain = panel.presets.copy_menu.actions()
    toml.trigger()
    assert tomllib.loads(QGuiApplication.clipboard().text())["count"] == demo_count(panel)
    plain.trigger()
    assert json.loads(QGuiApplication.clipboard().text())["count"] == demo_count(panel)


def test_form_survives_a_restart(own_panel: TrialPanel, services: Services, open_window: Opener) -> None:
    own_panel.form.set_values({"count": 321, "test": 3})
    own_panel.run_bar.repeats_box.setValue(5)
    services.state.save()
    again = opened_trial(open_window(replace(services, state=WindowState(services.state.path))), KIND)
    assert (again.form.values()["count"], again.form.values()["test"]) == (321, 3)
    assert again.run_bar.repeats_box.value() == 5
    assert again.presets.profile_name == "demo"
    assert not again.presets.modified_label.isHidden()


def test_no_live_plot_switch_follows_the_queue_s(panel: TrialPanel) -> None:
    panel.run_bar.live_box.click()
    assert not panel.context.bridge.live_plots
    panel.context.bridge.set_live_plots(True)
    assert not panel.run_bar.live_box.isChecked()


def shown_warnings(panel: TrialPanel) -> str:
    items = (panel._warnings.itemAt(place) for place in range(panel._warnings.count()))
    notes = [item.widget() for item in items if item is not None]
    return " ".join(label.text() for note in notes if note is not None for label in note.findChildren(QLabel))


def test_a_preset_with_hosts_says_where_its_roles_run(qtbot: QtBot, panel: TrialPanel) -> None:
    choose_profile(qtbot, panel, "hosts-demo")
    qtbot.waitUntil(lambda: "Roles run on hosts. broker: host local-1" in shown_warnings(panel))
    assert "share one computer" in shown_warnings(panel), "its three hosts are on this one"
    choose_profile(qtbot, panel, "demo")
    qtbot.waitUntil(lambda: "Roles run on hosts" not in shown_warnings(panel))


def test_a_host_list_says_where_the_roles_of_runs_and_campaigns_go(
    qtbot: QtBot, panel: TrialPanel, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts.start"
    hosts.write_text("obu-1 sender-*\n")
    panel.presets.take_hosts(hosts)
    qtbot.waitUntil(lambda: "Roles run on hosts. sender-*: host obu-1" in shown_warnings(panel))
    assert "share one computer" not in shown_warnings(panel)
    panel.form.set_values({"count": 60})
    qtbot.mouseClick(panel.run_bar.run_button, Qt.MouseButton.LeftButton)
    bridge = panel.context.bridge
    with Reader(bridge.queue.database) as reader:
        detail = reader.run(bridge.queue.items[-1].run_id)
    assert detail.placement["roles"][0]["host"] == "obu-1" and detail.row.parameters["count"] == 60
    campaign = panel.presets.campaign()
    assert campaign is not None and {str(one.placement["roles"][0]["role"]) for one in campaign.scenarios} == {
        "sender-*"
    }
    panel.presets.take_hosts(None)
    qtbot.waitUntil(lambda: "Roles run on hosts" not in shown_warnings(panel))
    hosts.write_text("-obu sender\n")
    panel.presets.take_hosts(hosts)
    assert panel.presets.placement == {}
