"""Takes the pictures of hosts, and of roles placed on them: two agents here, the clock of one a day ahead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from camera import Camera

from labconsole.clock import SHIFT_VARIABLE
from labconsole.hosts.cluster_certificates import enrol
from labconsole.paths import data_dir
from labconsole.security.private_files import write_private
from labconsole_ui.placement.placing import Target, TargetKind
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.views.hosts.hosts_page import HostsPage

DAY_NS = 86_400_000_000_000


def take_hosts(camera: Camera, window: MainWindow) -> None:
    """The page with two hosts."""
    page = window.plugin_pages.open("page:console:hosts")
    assert isinstance(page, HostsPage)
    page.scheduler.start_button.click()
    camera.wait(lambda: "listens" in page.scheduler.state.text() and not page.busy.isVisible())
    agents = [_agent("obu-1", "obu", page.address.text(), 0), _agent("rsu-1", "rsu", page.address.text(), DAY_NS)]
    try:
        camera.wait(lambda: "2 hosts" in page.scheduler.state.text())
        camera.settle(1.0)
        camera.wait(lambda: bool(page.parts.tables) and not page.busy.isVisible())
        camera.take("hosts")
        _take_placement(camera, window)
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()
    page.scheduler.stop_button.click()
    camera.wait(page.scheduler.start_button.isVisible)


def _take_placement(camera: Camera, window: MainWindow) -> None:
    """The dialog that places roles, with some placed."""
    panel = window.open_trial("amqp.messaging")
    assert panel is not None
    panel.building.finish()
    panel.form.set_values({"senders": 15, "numbered": True})
    camera.settle(1.0)
    dialog = panel.presets.place_roles()
    assert dialog is not None
    camera.wait(lambda: bool(dialog.placing.hosts))
    dialog.placing.place(["broker"], Target(TargetKind.HOST, "rsu-1"))
    dialog.placing.place(["sender-*"], Target(TargetKind.TAG, "obu"))
    camera.settle(0.5)
    camera.take("place-roles", widget=dialog)
    dialog.reject()


def _agent(name: str, tag: str, scheduler: str, ahead_ns: int) -> subprocess.Popen[bytes]:
    """The agent of a host that is enrolled for this."""
    folder = Path(data_dir()) / name
    folder.mkdir(mode=0o700)
    made = enrol(name)
    write_private(folder / "host.pem", made.pem)
    write_private(folder / "passphrase", made.passphrase.reveal().encode())
    command = [sys.executable, "-m", "labconsole.cli.main", "agent", str(folder / "host.pem"), "--tag", tag]
    command += ["--passphrase-file", str(folder / "passphrase"), "--scheduler", scheduler]
    return subprocess.Popen(command, env={**os.environ, SHIFT_VARIABLE: str(ahead_ns)}, stdout=subprocess.DEVNULL)
