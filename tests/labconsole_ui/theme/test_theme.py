"""Both themes: readable everywhere, switched while the window is open, icons and fonts with them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QFontInfo, QIcon, QPalette
from PySide6.QtWidgets import QApplication, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from labconsole_ui.theme.colours import DARK, LIGHT, Colours
from labconsole_ui.theme.theme import FontRole, Theme, ThemeMode

BOTH = pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])


def contrast(first: str, second: str) -> float:
    """Contrast ratio (1-21) of two `#rrggbb` colours, as WCAG 2.1 defines it."""
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_contrast_agrees_with_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@BOTH
def test_texts_are_readable_on_every_background(colours: Colours) -> None:
    texts = (colours.text, colours.muted, colours.link, colours.good, colours.warning, colours.bad)
    for ground in (colours.window, colours.base, colours.alternate):
        for text in texts:
            assert contrast(text, ground) >= 4.5
    pairs = (
        (colours.on_accent, colours.accent),
        (colours.on_accent, colours.accent_hover),
        (colours.good, colours.good_ground),
        (colours.warning, colours.warning_ground),
        (colours.bad, colours.bad_ground),
        (colours.text, colours.info_ground),
        (colours.text, colours.sunken),
        (colours.muted, colours.sunken),
    )
    for text, ground in pairs:
        assert contrast(text, ground) >= 4.5


@BOTH
def test_curves_and_frames_of_inputs_have_enough_contrast(colours: Colours) -> None:
    for colour in (*colours.series, colours.control_border):
        assert contrast(colour, colours.base) >= 3
    assert len(set(colours.series)) == 8


# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]]
    ),
}
XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])


def lab(colour: str, vision: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIE L*a*b* of `#rrggbb` as this vision sees it."""
    parts = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(vision @ linear, 0, 1) / np.array([0.95047, 1, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@BOTH
@pytest.mark.parametrize("vision", VISION)
def test_series_are_distinguishable_with_any_colour_vision(colours: Colours, vision: str) -> None:
    for first, second in combinations(colours.series, 2):
        assert np.linalg.norm(lab(first, VISION[vision]) - lab(second, VISION[vision])) >= 14


def test_switching_changes_palette_and_icons_and_notifies_views(qtbot: QtBot, qapp: QApplication, theme: Theme) -> None:
    button = QPushButton()
    qtbot.addWidget(button)
    theme.set_mode(ThemeMode.LIGHT)
    theme.bind_icon(button, "run")
    before = button.icon().pixmap(QSize(24, 24)).toImage()
    with qtbot.waitSignal(theme.changed):
        theme.set_mode(ThemeMode.DARK)
    assert theme.dark
    assert qapp.palette().color(QPalette.ColorRole.Window).name() == DARK.window
    assert button.icon().pixmap(QSize(24, 24)).toImage() != before
    theme.set_mode(ThemeMode.LIGHT)
    assert qapp.palette().color(QPalette.ColorRole.Window).name() == LIGHT.window


def test_choosing_the_theme_that_is_shown_repaints_nothing(qtbot: QtBot, theme: Theme) -> None:
    theme.set_mode(ThemeMode.LIGHT)
    with qtbot.assertNotEmitted(theme.changed):
        theme.set_mode(ThemeMode.LIGHT)


def test_disabled_icon_is_paler(theme: Theme) -> None:
    icon = theme.icon("run")
    assert icon.pixmap(24, 24).toImage() != icon.pixmap(QSize(24, 24), QIcon.Mode.Disabled).toImage()


def test_bundled_font_is_used_with_figures_of_equal_width(theme: Theme) -> None:
    font = theme.font(FontRole.TABLE)
    assert QFontInfo(font).family().startswith("Inter")
    assert font.featureValue(font.Tag("tnum")) == 1


class StyledWidget(QWidget):
    """Counts how often it is styled."""

    styled = 0

    def changeEvent(self, event: QEvent) -> None:
        self.styled += event.type() is QEvent.Type.StyleChange
        super().changeEvent(event)


def test_a_change_of_the_theme_styles_deep_widgets_as_often_as_others(qtbot: QtBot, theme: Theme) -> None:
    """Qt styles each widget again for each of its ancestors: a window with one panel then took 2.3 s."""
    top = parent = StyledWidget()
    qtbot.addWidget(top)
    for _ in range(12):
        parent = StyledWidget(parent)
    top.show()
    top.styled = parent.styled = 0
    theme.set_mode(ThemeMode.DARK)
    theme.set_mode(ThemeMode.LIGHT)
    assert 0 < parent.styled == top.styled
