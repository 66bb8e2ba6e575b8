"""From start to finish in the window: a real scheduler, three agents, roles dropped on them, and the results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from labconsole.engine.queue import QueueState
from labconsole.paths import HOME_VARIABLE
from labconsole.store.reader import Reader
from labconsole.store.records import RunDetail, RunStatus
from labconsole_ui.panels.trial_panel import TrialPanel
from labconsole_ui.placement.placement_trees import HostTree
from labconsole_ui.placement.placing import Target, TargetKind
from labconsole_ui.runs.run_files import ExportFormat
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.menus import bring_forward
from labconsole_ui.views.hosts.hosts_page import HostsPage
from labconsole_ui.views.report.report_window import ReportWindow
from labconsole_ui.views.run.run_view import RunView
from tests.helpers.pages import opened_trial
from tests.labconsole.hosts.cluster_processes import ClusterProcesses, cluster
from tests.labconsole_ui.placement.drops import drop

pytestmark = pytest.mark.usefixtures("operation_threads")
LONG_MS = 60_000
S = 1_000_000_000


@pytest.fixture(scope="module")
def console_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hosts") / "console"


@pytest.fixture(scope="module")
def running(console_home: Path) -> Iterator[ClusterProcesses]:
    """Three hosts; the clocks of two differ from the console's."""
    with cluster(console_home) as found:
        found.joins("hub", console_home.parent / "hub", clock_shift=f"{77 * S}")
        found.joins("left", console_home.parent / "left", "--tag", "sends")
        found.joins("right", console_home.parent / "right", "--tag", "sends", clock_shift=f"{5000 * S},40")
        yield found


@pytest.fixture
def home(console_home: Path, running: ClusterProcesses, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(HOME_VARIABLE, str(console_home))
    return console_home


@pytest.fixture
def hosts_page(qtbot: QtBot, window: MainWindow, running: ClusterProcesses) -> HostsPage:
    """The page Hosts, which lists the three."""
    page = window.plugin_pages.open("page:console:hosts")
    assert isinstance(page, HostsPage)
    page.address.setText(running.address)
    refreshed(qtbot, page)
    assert cells(page, "Host") == ["hub", "left", "right"]
    return page


def refreshed(qtbot: QtBot, page: HostsPage) -> None:
    qtbot.waitUntil(page.refresh_button.isEnabled, timeout=LONG_MS)
    qtbot.mouseClick(page.refresh_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(page.refresh_button.isEnabled, timeout=LONG_MS)


def cells(page: HostsPage, heading: str) -> list[str]:
    model = page.parts.tables[0].model()
    headings = [model.headerData(index, Qt.Orientation.Horizontal) for index in range(model.columnCount())]
    column = headings.index(heading)
    return [str(model.index(row, column).data()) for row in range(model.rowCount())]


def placed_by_drops(qtbot: QtBot, panel: TrialPanel, targets: dict[str, Target]) -> None:
    """Open the dialog, wait for the hosts, drop these roles on their targets, and use that."""
    dialog = panel.presets.place_roles()
    assert dialog is not None
    qtbot.waitUntil(lambda: bool(dialog.placing.hosts), timeout=LONG_MS)
    tree: HostTree = dialog.hosts
    for role, target in targets.items():
        [item] = dialog.roles.findItems(role, Qt.MatchFlag.MatchStartsWith)
        dialog.roles.clearSelection()
        item.setSelected(True)
        drop(dialog.roles, tree, tree.item_of(target))
    qtbot.mouseClick(dialog.use_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(panel.presets.placement))


def finished(qtbot: QtBot, window: MainWindow, panel: TrialPanel) -> RunDetail:
    """Run the form, see live values in the plot meanwhile, and wait for the end."""
    bridge = window.services.bridge
    ended: list[tuple[int, RunStatus]] = []
    bridge.finished.connect(lambda run, status: ended.append((run, status)))
    bring_forward(window.live_dock, focus=False)
    qtbot.waitUntil(panel.run_bar.run_button.isEnabled)
    qtbot.mouseClick(panel.run_bar.run_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(
        lambda: bool(ended) or any(len(curve.x) > 1 for curve in window.live_view.rate_plot.curves()), timeout=LONG_MS
    )
    assert not ended, "values are in the plot before the run has finished"
    qtbot.waitUntil(lambda: bool(ended), timeout=LONG_MS)
    run, status = ended[0]
    # A busy computer disturbs a run, which the queue then repeats.
    qtbot.waitUntil(lambda: all(item.state is QueueState.DONE for item in bridge.queue.items), timeout=LONG_MS)
    with Reader(window.services.database) as reader:
        detail = reader.run(run)
    assert status is RunStatus.FINISHED, detail.row.reason
    return detail


def rows(view: RunView, table: str) -> list[str]:
    """The lines of one of the run view's tables."""
    model = view.tables[table].model()
    columns = range(model.columnCount())
    return ["  ".join(str(model.index(row, column).data()) for column in columns) for row in range(model.rowCount())]


def test_test_2_over_three_hosts_from_placing_to_report(
    qtbot: QtBot, window: MainWindow, hosts_page: HostsPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = opened_trial(window, "amqp.messaging")
    panel.form.set_values({"test": 2, "senders": 2, "numbered": True, "loop": "open", "count": 300, "rate": 100.0})
    placed_by_drops(
        qtbot,
        panel,
        {
            "broker": Target(TargetKind.HOST, "hub"),
            "receiver-": Target(TargetKind.HOST, "hub"),
            "sender-": Target(TargetKind.TAG, "sends"),
        },
    )
    detail = finished(qtbot, window, panel)
    metrics = {name: metric.value for name, metric in detail.row.metrics.items()}
    assert (metrics["sent"], metrics["received"], metrics["lost"], metrics["hosts"]) == (600, 600, 0, 3)
    assert {role.name: role.host for role in detail.roles} == {
        "broker": "hub",
        "receiver-0": "hub",
        "sender-0": "left",
        "sender-1": "right",
    }
    run = detail.row.id
    window.runs.open_run(run)
    view = window.pages.currentWidget()
    assert isinstance(view, RunView)
    qtbot.waitUntil(lambda: "provenance" in view.tables and bool(view.plots) and view.progress.isHidden())
    assert "sender-*: tag sends" in "\n".join(rows(view, "parameters"))
    figures = rows(view, "metrics")
    assert any(line.startswith("Clock offset, uncertainty") for line in figures)
    latency = [line for line in figures if line.startswith("Latency")]
    assert latency and all(re.search(r" -?[\d.,]+ ± [\d.,]+ [mµn]?s ", line) for line in latency)
    # On a busy computer the clocks are known to some milliseconds: the smallest latency may be negative within that.
    assert -metrics["clock_uncertainty"] / 1000 < metrics["latency_min"]
    events = "\n".join(rows(view, "events"))
    for host, shift in (("hub", "7"), ("left", ""), ("right", "5,00")):
        assert f"the clock of {host} is ahead by {shift}" in events
        assert any(host in line for line in rows(view, "provenance"))
    window.files.export_to(ExportFormat.CSV, [run], tmp_path / "csv")
    qtbot.waitUntil(lambda: bool(list((tmp_path / "csv").rglob("verdicts.csv"))), timeout=LONG_MS)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "report.pdf"), ""))
    window.report_runs([run])
    report = window.findChild(ReportWindow)
    qtbot.waitUntil(report.save_button.isEnabled, timeout=LONG_MS)
    qtbot.mouseClick(report.save_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil((tmp_path / "report.pdf").exists, timeout=LONG_MS)
    report.close()
    refreshed(qtbot, hosts_page)
    assert cells(hosts_page, "Roles") == ["", "", ""], "no roles, and no samples"


@pytest.mark.nightly
def test_stations_dropped_on_a_tag_are_shared_by_its_hosts(
    qtbot: QtBot, window: MainWindow, hosts_page: HostsPage
) -> None:
    """Nightly: alone finds faults of stations that the window places on agents.

    In CI, `test_test_2_over_three_hosts_from_placing_to_report` judges roles that the hosts of a tag share, from the
    drop to the results, and `test_stations_on_hosts_hear_each_other` judges stations on hosts.
    """
    panel = opened_trial(window, "v2x.live")
    panel.form.set_values({"senders": 2, "processes": 2, "warm_up": 0.5, "duration": 2.0})
    placed_by_drops(
        qtbot, panel, {"receiver": Target(TargetKind.HOST, "hub"), "stations-": Target(TargetKind.TAG, "sends")}
    )
    detail = finished(qtbot, window, panel)
    assert sorted(str(role.host) for role in detail.roles) == ["hub", "left", "right"]
    assert detail.row.metrics["hosts"].value == 3
    refreshed(qtbot, hosts_page)
    assert cells(hosts_page, "Roles") == ["", "", ""], "no roles, and no samples"
