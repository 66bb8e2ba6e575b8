"""The report window on runs of several trials: it offers the outline of their source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from labconsole.model.plugin import Plugins
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.store.run_store import Store
from labconsole_ui.runtime.services import Services
from labconsole_ui.views.report.report_window import ReportWindow
from tests.labconsole_ui.shown_messages import shown_sentences
from tests.labconsole_v2x.stored_trial import store_campaign

PROFILES = ("v2x-use-cases", "v2x-benchmark")


@pytest.fixture
def runs(home: Path) -> list[int]:
    with Store.open(home / "runs.db") as store:
        return [run_id for profile in PROFILES for run_id in store_campaign(store, profile, Plugins.discover())]


@pytest.fixture
def make(qtbot: QtBot, runs: list[int], services: Services) -> Iterator[Callable[[list[int]], ReportWindow]]:
    parent = QWidget()

    def window(run_ids: list[int]) -> ReportWindow:
        made = ReportWindow(services, ReportRequest(tuple(run_ids), ReportKind.COMPARISON), parent)
        made.show()
        qtbot.waitUntil(lambda: bool(made.pages.pages), timeout=20_000)
        return made

    yield window
    parent.deleteLater()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_the_whole_trial_is_chosen_shown_and_saved(
    make: Callable[[list[int]], ReportWindow],
    runs: list[int],
    qtbot: QtBot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window = make(runs)
    form = window.form
    kinds = [form.kind_box.itemText(row) for row in range(form.kind_box.count())]
    assert kinds == ["Comparison of these runs", "The campaign as a whole", "PRESERVE: the whole trial"]
    assert form.baseline_box.isVisible() and form.published.isVisible()
    form.kind_box.setFocus()
    QTest.keyClick(form.kind_box, Qt.Key.Key_End)
    assert not form.baseline_box.isVisible() and not form.published.isVisible(), "its tables are those of the outline"
    request = form.request()
    assert (request.kind, request.outline, request.baseline, request.published) == (
        ReportKind.OUTLINE,
        "preserve",
        None,
        (),
    )
    qtbot.waitUntil(lambda: window.pages.progress.isVisible())
    qtbot.waitUntil(lambda: not window.pages.progress.isVisible() and bool(window.pages.pages), timeout=20_000)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "trial.pdf"), ""))
    qtbot.mouseClick(window.save_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: bool(shown_sentences(window)), timeout=20_000)
    assert shown_sentences(window) == [f"Saved: {tmp_path / 'trial.pdf'} ({len(window.pages.pages)} pages)."]


def test_runs_of_one_trial_are_offered_no_outline(make: Callable[[list[int]], ReportWindow], runs: list[int]) -> None:
    assert make(runs[:2]).form.kind_box.count() == 2
