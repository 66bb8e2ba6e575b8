"""The animated picture: it moves with the keys, has an accessible description, and cuts no number off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import shiboken6
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from labconsole_keypool.panel.pool_picture import PoolPicture, rate_text
from labconsole_keypool.panel.pool_state import PoolState, Rates
from labconsole_ui.theme.theme import Theme, ThemeMode
from tests.labconsole_ui.conftest import theme

__all__ = ["theme"]

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
RUNNING = PoolState(2, 1234, 180, 12_033, 0, 12, 0, Rates(1.7, 14.2, 26.3), running=True)


@pytest.fixture
def picture(theme: Theme) -> Iterator[PoolPicture]:
    made = PoolPicture(theme)
    made.resize(1000, made.sizeHint().height())
    made.show()
    yield made
    shiboken6.delete(made)


def test_picture_moves_while_keys_move_and_it_is_visible(qtbot: QtBot, picture: PoolPicture) -> None:
    assert not picture.moving
    picture.show_state(RUNNING)
    assert picture.moving
    before = picture.grab().toImage()
    qtbot.waitUntil(lambda: picture.grab().toImage() != before)
    picture.hide()
    assert not picture.moving
    picture.show_state(RUNNING)
    assert not picture.moving
    picture.show()
    assert picture.moving
    picture.show_state(replace(RUNNING, rates=Rates()))
    assert not picture.moving
    picture.show_state(replace(RUNNING, running=False))
    assert not picture.moving


def test_pool_picture_has_an_accessible_description(picture: PoolPicture) -> None:
    picture.show_state(RUNNING)
    description = "Keys: 2 being wrapped, 1234 in the store, 180 in the token, 12033 used"
    assert picture.accessibleName() == description


def test_a_tank_is_full_at_its_largest_number_until_another_store_is_named(picture: PoolPicture) -> None:
    colour = picture._theme.series_colour(0)

    def filled() -> int:
        image = picture.grab().toImage()
        x = round(picture.width() * 0.375) - 60
        return sum(image.pixelColor(x, y).blue() > image.pixelColor(x, y).red() + 40 for y in range(image.height()))

    assert colour.blue() > colour.red() + 40
    picture.set_pool("one", None)
    picture.show_state(PoolState(in_store=100))
    full = filled()
    picture.show_state(PoolState(in_store=50))
    half = filled()
    assert full > 60 and 0.4 < half / full < 0.6
    picture.set_pool("two", None)
    picture.show_state(PoolState(in_store=50))
    assert filled() == full


@pytest.mark.parametrize("width", [560, 640, 1000])
def test_large_numbers_fit_their_places(picture: PoolPicture, width: int) -> None:
    picture.resize(width, picture.height())
    strokes = set()
    for used in (1, 123_456, 1_234_567):
        picture.show_state(PoolState(in_store=20_000, in_token=12_033, used=used))
        image = picture.grab().toImage()
        left, right = round(width * 0.75), width
        ring = picture._theme.series_colour(1).name()
        strokes.add(tuple(x for x in range(left, right) if image.pixelColor(x, 64).name() == ring))
    assert len(strokes) == 1 and strokes.pop(), "no number covers the ring that it is in"


def test_rates_are_shown_with_at_least_two_digits() -> None:
    assert [rate_text(rate) for rate in (0.5312, 7.24, 9.97, 26.31, 1234.5)] == [
        "0.53/s",
        "7.2/s",
        "10/s",
        "26/s",
        "1,234/s",
    ]


def test_both_themes_draw_it_in_their_colours(picture: PoolPicture) -> None:
    theme = picture._theme
    grounds = set()
    try:
        for mode in (ThemeMode.LIGHT, ThemeMode.DARK):
            theme.set_mode(mode)
            picture.show_state(PoolState(in_store=5))
            image = picture.grab().toImage()
            grounds.add(QColor(image.pixel(round(picture.width() * 0.125), 64)).name())
    finally:
        theme.set_mode(ThemeMode.LIGHT)
    assert len(grounds) == 2
