"""The size of all text: by the View menu and its keys, in open and new pages, and stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QFont, QKeySequence
from PySide6.QtWidgets import QApplication, QComboBox, QLabel
from pytestqt.qtbot import QtBot

from labconsole_ui.runtime.services import Services
from labconsole_ui.runtime.settings import WindowState
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.startup import _remembered_theme
from labconsole_ui.theme.theme import BODY_POINTS, TEXT_SIZES, FontRole, Theme, ThemeMode
from tests.helpers.pages import opened_trial


@pytest.fixture(autouse=True)
def usual_size(theme: Theme) -> Iterator[None]:
    yield
    theme.set_text_size(100)


def press(window: MainWindow, keys: str) -> None:
    """Trigger the action of a key: offscreen no window is active, and shortcuts have no effect."""
    (action,) = [action for action in window._menus.actions if QKeySequence(keys) in action.shortcuts()]
    action.trigger()


def test_keys_change_the_size_of_every_text_and_back(window: MainWindow, theme: Theme) -> None:
    page = opened_trial(window, "amqp.messaging")
    titles = {label.text(): label for label in page.findChildren(QLabel)}
    title = titles["AMQP 1.0 (SWIM)"]
    before = [theme.font(role).pointSizeF() for role in FontRole]
    row = window.history_view.table.verticalHeader().defaultSectionSize()
    for keys in ("Ctrl++", "Ctrl+=", "Ctrl++"):
        press(window, keys)
    assert theme.text_size == 150
    assert [theme.font(role).pointSizeF() for role in FontRole] == [pytest.approx(1.5 * points) for points in before]
    assert QApplication.font().pointSizeF() == pytest.approx(1.5 * BODY_POINTS)
    assert title.font().pointSizeF() == pytest.approx(1.5 * 1.5 * BODY_POINTS)
    assert window.history_view.table.verticalHeader().defaultSectionSize() > 1.2 * row
    press(window, "Ctrl+-")
    assert theme.text_size == 125
    press(window, "Ctrl+0")
    assert [theme.font(role).pointSizeF() for role in FontRole] == before
    assert title.font().pointSizeF() == pytest.approx(1.5 * BODY_POINTS)
    assert window.history_view.table.verticalHeader().defaultSectionSize() == row


def test_the_size_ends_at_both_ends_of_its_steps(theme: Theme) -> None:
    for by, last in ((1, TEXT_SIZES[-1]), (-1, TEXT_SIZES[0])):
        for _ in TEXT_SIZES:
            theme.step_text_size(by)
        assert theme.text_size == last


def test_the_size_is_stored(services: Services, window: MainWindow) -> None:
    window.step_text_size(1)
    assert services.state.text("window/text size") == "110"


def test_the_size_is_remembered(qapp: QApplication, tmp_path: Path) -> None:
    state = WindowState(tmp_path / "window.ini")
    for kept, shown in (("110", 110), ("150", 150), ("13", 100), ("large", 100), ("9" * 400, 100)):
        state.set("window/text size", kept)
        state.save()
        again = _remembered_theme(qapp, WindowState(state.path), None)
        assert again.text_size == shown, kept
        again.setParent(None)


@pytest.mark.parametrize(
    ("platform", "points", "shown"),
    [
        ("linux", 10.0, 10.0),
        ("linux", 15.0, 15.0),
        ("win32", 18.0, 20.0),
        ("darwin", 13.0, 10.0),
        ("linux", 72.0, 20.0),
    ],
)
def test_text_has_the_size_that_the_system_s_texts_have(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, platform: str, points: float, shown: float
) -> None:
    """Offscreen there is no system text size: only that answer is replaced."""
    usual = qapp.font()
    font = QFont(usual)
    font.setPointSizeF(points)
    monkeypatch.setattr("labconsole_ui.theme.theme.sys.platform", platform)
    monkeypatch.setattr("labconsole_ui.theme.theme.QGuiApplication.platformName", lambda: "xcb")
    monkeypatch.setattr("labconsole_ui.theme.theme.QFontDatabase.systemFont", lambda _: font)
    theme = Theme(qapp, ThemeMode.LIGHT)
    assert theme.font(FontRole.BODY).pointSizeF() == qapp.font().pointSizeF() == pytest.approx(shown)
    theme.setParent(None)
    qapp.setFont(usual)


@pytest.mark.parametrize("size", [100, 200])
@pytest.mark.parametrize("count", [1, 2, 10])
def test_popups_are_high_enough_for_their_items(qtbot: QtBot, theme: Theme, count: int, size: int) -> None:
    theme.set_text_size(size)
    box = QComboBox()
    qtbot.addWidget(box)
    box.addItems([f"Item {number}" for number in range(count)])
    box.show()
    box.showPopup()
    view = box.view()
    qtbot.waitUntil(view.isVisible)
    assert view.visualRect(box.model().index(count - 1, 0)).bottom() < view.viewport().height()
    assert view.verticalScrollBar().maximum() == 0
    box.hidePopup()
