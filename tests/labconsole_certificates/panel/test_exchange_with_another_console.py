"""The exchange with a State elsewhere by clicks: connect to its console, and wait for it, until both ways are green."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from labconsole.engine.operation_process import Outcome
from labconsole.paths import pki_dir
from labconsole_certificates.panel.exchange.exchange_view import ExchangeView
from labconsole_certificates.panel.page import CertificatesPage
from labconsole_ui.operations.operation_dialog import OperationDialog
from labconsole_ui.shell.main_window import MainWindow
from tests.labconsole_certificates.exchange.two_consoles import Waiting, connected
from tests.labconsole_certificates.panel.page_driver import Lab

A, B = "State A", "State B"


@pytest.fixture
def elsewhere(home: object, consoles: Path) -> Path:
    """The database of State B's console; that of State A is this console's own."""
    shutil.copytree(consoles / "a", pki_dir(), dirs_exist_ok=True)
    return consoles / "b"


@pytest.fixture
def lab(qtbot: QtBot, elsewhere: Path, window: MainWindow) -> Lab:
    """The page in State A's window."""
    page = window.plugin_pages.open("page:certificates:certificates")
    assert isinstance(page, CertificatesPage)
    page.building.finish()
    return Lab(qtbot, window, page)


def test_a_state_elsewhere_is_connected_to_and_waited_for(lab: Lab, elsewhere: Path) -> None:
    view = lab.tab("exchange", ExchangeView)
    lab.until(lambda: view.there.meet_button.text() == "Connect to State B …")
    assert view.back.meet_button.text() == "Wait for State B …"
    with ThreadPoolExecutor(1) as pool:
        waiting = Waiting(pool, elsewhere, B, A)
        lab.click(view.there.meet_button)
        dialog = lab.dialog(OperationDialog)
        dialog.form.set_values({"host": "127.0.0.1", "port": waiting.port, "server_name": "broker.b.example"})
        assert "[State A] -> tls-connect -> [State B] passed" in lab.do_action()
        assert waiting.ended.result().ok
        lab.until(lambda: view.there.state.text().startswith("Proven by a mutual TLS handshake"))

        lab.click(view.back.meet_button)
        dialog = lab.dialog(OperationDialog)
        dialog.form.set_values({"port": 0})
        ends = []
        dialog.ended.connect(ends.append)
        lab.click(dialog.start_button)
        lab.until(lambda: "waits at 127.0.0.1:" in dialog.work.status.text())
        port = int(dialog.work.status.text().split("127.0.0.1:")[1].split()[0])
        answered = pool.submit(connected, elsewhere, port, B, A, server_name="broker.a.example")
        lab.until(lambda: bool(ends))
        assert ends[0].outcome is Outcome.DONE and answered.result().ok
    lab.click(dialog.close_button)
    lab.until(lambda: not [each for each in QApplication.topLevelWidgets() if isinstance(each, OperationDialog)])
    lab.until(lambda: view.sentence.text() == "Both ways are proven.")
