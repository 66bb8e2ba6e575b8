"""The page as a whole: every tab opens, names its controls, and is there again at the next start."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton

from labconsole_certificates.panel.certificates.certificates_view import CertificatesView
from labconsole_certificates.panel.page import CertificatesPage
from labconsole_certificates.panel.tab import Tab
from tests.labconsole_certificates.panel.conftest import Pair
from tests.labconsole_certificates.panel.page_driver import Lab
from tests.labconsole_ui.controls import controls

TABS = ("certificates", "requests", "exchange", "trust", "rotation", "revocation", "audit")


def test_every_control_of_every_tab_has_an_accessible_name_and_keyboard_focus(pair: Pair, lab: Lab) -> None:
    nameless = []
    for key in TABS:
        tab = lab.tab(key, Tab)
        assert tab.key == key
        for widget in (control for control in controls(tab) if control.isVisible()):
            text = widget.text() if isinstance(widget, QAbstractButton) else ""
            if not (text or widget.accessibleName()) or not widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
                nameless.append(f"{key}: {type(widget).__name__} in {type(widget.parent()).__name__}")
    assert nameless == []


def test_tab_and_widths_are_remembered(pair: Pair, lab: Lab) -> None:
    view = lab.tab("certificates", CertificatesView)
    lab.until(lambda: view.split.width() > 700)
    view.split.setSizes([300, 700])
    widths = view.split.sizes()
    lab.tab("rotation", Tab)
    index = lab.window.pages.indexOf(lab.page)
    lab.window.pages.close_page(index)
    again = lab.window.plugin_pages.open("page:certificates:certificates")
    assert isinstance(again, CertificatesPage)
    again.building.finish()
    assert again is not lab.page
    assert again.tabs.currentWidget().objectName() == "rotation"
    view = Lab(lab.qtbot, lab.window, again).tab("certificates", CertificatesView)
    lab.until(lambda: view.tree.tree.shown == 2)
    assert abs(view.split.sizes()[0] - widths[0]) < 20


def test_tabs_are_reached_by_the_keyboard(pair: Pair, lab: Lab) -> None:
    bar = lab.page.tabs.tabBar()
    bar.setFocus()
    lab.qtbot.keyClick(bar, Qt.Key.Key_Right)
    assert lab.page.tabs.currentWidget().objectName() == "requests"
