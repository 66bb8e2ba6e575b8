"""The certificates page of a real window; States A and B, each with its CA, where a test asks for them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from labconsole.paths import pki_dir
from labconsole.security.pki.records import CertificateRecord, State
from labconsole.security.pki.store import PkiStore
from labconsole_certificates.panel.page import CertificatesPage
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.worker_threads import operations_in_processes
from tests.labconsole_certificates.panel.page_driver import Lab
from tests.labconsole_ui.conftest import emptied_home, kept_panels, module_window, operation_threads, shared, theme
from tests.labconsole_ui.shared_window import SharedWindow

__all__ = ["emptied_home", "kept_panels", "module_window", "operation_threads", "shared", "theme"]


@dataclass(frozen=True)
class Pair:
    """Two States of this console with their roots, and the open database."""

    store: PkiStore
    a: State
    b: State
    root_a: CertificateRecord
    root_b: CertificateRecord


@pytest.fixture
def home(emptied_home: None, shared: SharedWindow) -> Path:
    """The home of the shared window: it is reset before its databases are removed."""
    return shared.home


@pytest.fixture
def window(home: Path, operation_threads: None, shared: SharedWindow) -> MainWindow:
    """The shared window, without a certificate database; its operations are threads."""
    return shared.window


@pytest.fixture
def operation_processes(operation_threads: None) -> Iterator[None]:
    """Operations are processes, as in a console: for a test in which one is killed."""
    with operations_in_processes():
        yield


@pytest.fixture
def pair(home: object, made_pair: Path) -> Iterator[Pair]:
    """States A and B, before the window is opened."""
    shutil.copytree(made_pair, pki_dir(), dirs_exist_ok=True)
    with PkiStore.open() as store:
        snapshot = store.snapshot()
        a, b = snapshot.states
        yield Pair(store, a, b, snapshot.roots_of(a.id)[0], snapshot.roots_of(b.id)[0])


@pytest.fixture
def lab(qtbot: QtBot, pair: Pair, window: MainWindow) -> Lab:
    """The page in the window."""
    page = window.plugin_pages.open("page:certificates:certificates")
    assert isinstance(page, CertificatesPage)
    page.building.finish()
    return Lab(qtbot, window, page)
