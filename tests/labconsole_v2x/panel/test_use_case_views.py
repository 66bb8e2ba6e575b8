"""The list of use cases and the details of one, by themselves: a window would be painted again with them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from labconsole_ui.theme.theme import Theme, ThemeMode
from labconsole_v2x.panel.use_cases.use_case_cards import CaseDetails
from labconsole_v2x.panel.use_cases.use_case_list import CASE, RESULT, RESULT_ICONS, UseCaseList
from labconsole_v2x.panel.use_cases.use_case_monitor import CaseResult, RunResults
from labconsole_v2x.use_cases.catalogue import CODES

EXACTLY = Qt.MatchFlag.MatchExactly | Qt.MatchFlag.MatchRecursive


def test_icons_and_words_are_readable_in_both_themes(qtbot: QtBot, theme: Theme) -> None:
    """Each result has an icon of its own and a word; colours follow the theme."""
    assert len(set(RESULT_ICONS.values())) == len(RESULT_ICONS)
    parent = QWidget()
    qtbot.addWidget(parent)
    use_cases, details = UseCaseList(theme, {}, parent), CaseDetails(theme, {}, parent)
    use_cases.show_results(RunResults(1, None, results={code: CaseResult("failed") for code in CODES}))
    details.show_case("F-SIG-01")
    try:
        for mode in (ThemeMode.LIGHT, ThemeMode.DARK):
            theme.set_mode(mode)
            (item,) = use_cases.findItems("F-SIG-01", EXACTLY, CASE)
            assert item.foreground(RESULT).color().name() == theme.colour("bad") and not item.icon(RESULT).isNull()
            assert theme.colours.text in details.toHtml()
    finally:
        theme.set_mode(ThemeMode.LIGHT)
