"""Takes the pictures of README and documentation again: the real window, a real demo campaign, both themes.

    .venv/bin/python docs/screenshots.py [FOLDER] [--size 1280x800] [--only certificates]

For a 4K display: `QT_SCALE_FACTOR=2 .venv/bin/python docs/screenshots.py FOLDER --size 1920x1080`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from functools import partial
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from camera import BOTH, Camera
from certificate_pictures import take_certificates
from hosts_pictures import take_hosts
from PySide6.QtWidgets import QApplication
from v2x_pictures import take_v2x

from labconsole.engine.queue import RunQueue
from labconsole.profiles.profile import campaign_of, load_profile
from labconsole.store.records import RunStatus
from labconsole_keypool.panel.service_panel import PLANNER, ServicePanel
from labconsole_ui.panels.trial_panel import TrialPanel
from labconsole_ui.runtime.page_targets import HELP, START
from labconsole_ui.shell.docks import toggle_bottom
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.menus import bring_forward
from labconsole_ui.shell.startup import create_services
from labconsole_ui.theme.theme import ThemeMode
from labconsole_ui.views.comparison.comparison_view import ComparisonView
from labconsole_ui.views.report.report_window import ReportWindow
from labconsole_ui.views.run.run_view import RunView

KIND = "amqp.messaging"
LONGER = {"loop": "closed", "count": "20000"}
"""Settings of a run that is pictured while it is in progress."""
WIDER = 1.3
"""Tables of many columns are taken in a window that much larger."""
TABLE_WIDTH = 1170
POOL_KEYS = 90
SMALL_POOL = {
    "requests": 150,
    "rate": 15.0,
    "arrivals": "poisson",
    "keys_at_start": 30,
    "pool_at_start": POOL_KEYS,
    "low_water": 20,
    "batch": 10,
    "queue_limit": 50,
}
"""A run of the key pool in which all that can happen happens within some seconds."""


def main() -> None:
    """Run the demo in the window, and take a picture of every view."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "images")
    parser.add_argument("--size", default="1280x800", help="of the window, in device independent pixels")
    only = ("amqp", "certificates", "hosts", "keypool", "v2x")
    parser.add_argument("--only", choices=only, help="the pictures of one plugin, or of hosts")
    options = parser.parse_args()
    width, height = (int(number) for number in options.size.split("x"))
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ["LABCONSOLE_HOME"] = home
        app = QApplication([])
        services = create_services(app, Path(home) / "runs.db", ThemeMode.LIGHT.value)
        window = MainWindow(services)
        window.resize(width, height)
        window.show()
        camera = Camera(app, window, options.folder)
        parts = {
            "amqp": take_all,
            "keypool": take_key_pool,
            "certificates": take_certificates,
            "v2x": take_v2x,
            "hosts": take_hosts,
        }
        for name, take in parts.items():
            if options.only in (None, name):
                take(camera, window)
                while window.pages.count() > 1:
                    window.pages.close_page(window.pages.count() - 1)
        window.close()


def take_key_pool(camera: Camera, window: MainWindow) -> None:
    """The live key pool's page: before and in a run, an action, the planner."""
    page = window.open_trial("keypool.signing-service")
    assert isinstance(page, ServicePanel)
    page.building.finish()
    toggle_bottom(window)
    page.form.set_values({**page.form.values(), **SMALL_POOL})
    camera.settle(1.0)
    page.token_card.try_button.click()
    camera.wait(lambda: page.token_card.status is not None and page.token_card.status.tried)
    dialog = page.pool_actions.fill()
    dialog.form.set_values({**dialog.form.values(), "keys": POOL_KEYS})
    camera.wait(dialog.start_button.isEnabled)
    dialog.start_button.click()
    camera.wait(lambda: dialog.work.bar.value() > dialog.work.bar.maximum() / 3 > 0)
    camera.take("keypool-fill", (ThemeMode.LIGHT,), dialog)
    camera.wait(lambda: not dialog.running)
    dialog.close()
    camera.settle(1.0)
    camera.take("keypool-page")
    for mode in BOTH:
        camera.theme(mode)
        page.run_bar.run_button.click()
        camera.wait(lambda: page.pool_card.picture.moving)
        toggle_bottom(window)
        camera.wait(lambda: page.pool_card.picture.state.used > POOL_KEYS / 2)
        camera.take("keypool-live", (mode,))
        camera.wait_for_runs()
        camera.settle(1.0)
    for entry in window.messages.entries():
        window.messages.withdraw(entry.message)
    page.tabs.setCurrentIndex(PLANNER)
    camera.settle(2.0)
    camera.take("keypool-planner")


def take_all(camera: Camera, window: MainWindow) -> None:
    """Every view, in the order in which a newcomer meets them."""
    bridge = window.services.bridge
    camera.settle()
    camera.take("start")
    panel = window.open_trial(KIND)
    assert isinstance(panel, TrialPanel)
    panel.building.finish()
    camera.settle()
    camera.take("form")
    window.show_page(HELP)
    camera.take("help")
    window.show_page(START)
    settings = {"payload": "small", "fields_in": "message-annotations"}
    demo = bridge.queue.submit(campaign_of(load_profile("demo", window.services.plugins, settings)), {})
    camera.wait_for_runs()
    with window.services.reader() as reader:
        [campaign] = {row.campaign_id for row in reader.comparable(demo)}
        runs = sorted(row.id for row in reader.runs(campaign_id=campaign))  # those that were repeated as well
    compared(camera, window, runs)
    bring_forward(window.live_dock, focus=False)
    longer = bridge.queue.submit(campaign_of(load_profile("demo", window.services.plugins, LONGER, 1)), {})
    for run, mode in zip(longer[-2:], BOTH, strict=True):
        camera.theme(mode)
        camera.wait(partial(half_done, bridge.queue, run))
        camera.take("live", (mode,))
    camera.wait_for_runs()
    if {item.status for item in bridge.queue.items} != {RunStatus.FINISHED}:
        raise SystemExit("a run did not finish")
    for entry in window.messages.entries():
        window.messages.withdraw(entry.message)
    take_results(camera, window, runs)


def half_done(queue: RunQueue, run: int) -> bool:
    """Whether more than half of a queued run's work is done."""
    return any(item.done > item.total / 2 for item in queue.items if item.run_id == run)


def compared(camera: Camera, window: MainWindow, runs: list[int]) -> ComparisonView:
    """Open the comparison of these runs, and wait until it is there."""
    window.runs.compare_runs(runs)
    view = window.pages.currentWidget()
    assert isinstance(view, ComparisonView)
    camera.wait(lambda: view.table_data is not None)
    view.splitter.setSizes([TABLE_WIDTH, window.width() - TABLE_WIDTH])
    return view


def take_results(camera: Camera, window: MainWindow, repeats: list[int]) -> None:
    """What is made of runs: comparison, report, history, one of them."""
    bring_forward(window.history_dock, focus=False)
    window.history_view.run_actions.group.trigger()
    camera.settle(1.5)
    camera.take("history")
    toggle_bottom(window)
    with window.services.reader() as reader:
        tests = {row.id: row.parameters["test"] for row in reader.comparable(repeats)}
    size = window.size()
    window.resize(size * WIDER)
    beside = compared(camera, window, [run for run in repeats if tests[run] in (1, 3)])
    beside.add_published(["swim-within-malaysia-small/test-1", "swim-within-malaysia-small/test-3"])
    camera.settle(1.5)
    beside.table.horizontalScrollBar().setValue(beside.table.horizontalScrollBar().maximum())
    camera.take("published")
    view = compared(camera, window, repeats)
    camera.take("comparison")
    window.resize(size)
    view.whole_button.setChecked(True)
    for name, pane in (("distribution", view.distribution), ("overtime", view.curves), ("sourcetable", view.shapes)):
        view.tabs.setCurrentWidget(pane)
        camera.settle(2.0)
        camera.take(name)
    window.report_runs(repeats)
    report = window.findChildren(ReportWindow)[0]
    report.resize(window.size())
    camera.wait(lambda: report.save_button.isEnabled())
    camera.settle(2.0)
    report.pages.turn(1)
    camera.take("report", widget=report)
    report.close()
    window.runs.open_run(next(run for run in repeats if tests[run] == 3))
    camera.settle(2.0)
    camera.take("run")
    run = window.pages.currentWidget()
    assert isinstance(run, RunView)
    run.tabs.setCurrentWidget(run.evidence)
    camera.take("evidence")
    toggle_bottom(window)
    bring_forward(window.log_dock, focus=False)
    camera.take("log")


if __name__ == "__main__":
    main()
