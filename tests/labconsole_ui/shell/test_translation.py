"""Each text of the window can be translated: a translator that marks texts marks all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QTranslator
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QApplication, QComboBox, QDockWidget, QLabel, QLineEdit, QWidget

from labconsole.model.field_spec import FieldSpec, fields_of
from labconsole.profiles.profile import list_profiles, load_profile
from labconsole_amqp.choices import TEST_DESCRIPTIONS, TEST_TITLES
from labconsole_ui.runtime.services import Services
from labconsole_ui.shell.main_window import MainWindow
from labconsole_ui.shell.pages import Pages
from tests.helpers.pages import opened_trial

KIND = "amqp.messaging"
WORD = re.compile(r"[A-Za-z]{3,}")


class Marker(QTranslator):
    """Puts marks around every text that is asked for."""

    def translate(self, context: str, source: str, disambiguation: str | None = None, n: int = -1) -> str:
        return f"«{source}»" if source else ""

    def isEmpty(self) -> bool:  # noqa: N802 - Qt names it
        return False


@pytest.fixture
def marker(qapp: QApplication) -> Iterator[None]:
    translator = Marker()
    qapp.installTranslator(translator)
    yield
    qapp.removeTranslator(translator)


def visible_texts(window: MainWindow) -> set[str]:
    texts: set[str] = set()
    for widget in (window, *window.findChildren(QWidget)):
        texts |= {widget.toolTip(), widget.accessibleName()}
        if isinstance(widget, QLabel | QAbstractButton):
            texts.add(widget.text())
        if isinstance(widget, QLineEdit):
            texts.add(widget.placeholderText())
        if isinstance(widget, QDockWidget):
            texts.add(widget.windowTitle())
        if isinstance(widget, QComboBox):
            texts |= {widget.itemText(index) for index in range(widget.count())}
        if isinstance(widget, Pages):
            texts |= {widget.tabText(index) for index in range(widget.count())}
    texts |= {action.text() for action in window.findChildren(QAction)}
    return {text for text in texts if WORD.search(text)}


def own_words(services: Services) -> set[str]:
    """Texts of trials, plugins and profiles, which the window does not translate."""
    trial = services.plugins.trial(KIND)
    words = {trial.title, trial.description, str(services.database), *TEST_DESCRIPTIONS.values()}
    for text in TEST_TITLES.values():
        name, _, title = text.partition(": ")
        words |= {name, f"{name}: {title[:1].upper()}{title[1:]}"}
    for plugin in services.plugins.found:
        words |= {plugin.title, plugin.description}
    for channel in trial.live:
        words |= {channel.title}

    def of(spec: FieldSpec) -> Iterator[str]:
        yield from (spec.title, spec.description, spec.unit, spec.empty, *(label for _, label in spec.choices))
        for inner in spec.fields:
            yield from of(inner)

    for spec in fields_of(trial.parameters):
        words |= {*of(spec), spec.group, f"{spec.description}\n{spec.bounds} {spec.unit}".strip()}
    for info in list_profiles():
        words |= {info.title, info.description}
        if info.kind == KIND:
            words |= {scenario.name for scenario in load_profile(info.name, services.plugins).scenarios}
    words |= {*trial.warnings(trial.parameters()), *trial.local_warnings(trial.parameters())}
    return words


def test_every_text_of_the_window_passes_the_translator(
    marker: None, services: Services, open_window: Callable[[Services], MainWindow]
) -> None:
    window = open_window(services)
    opened_trial(window, KIND)
    window.show_page("help")
    known = own_words(services)
    assert {text for text in visible_texts(window) if "«" not in text and text not in known} == set()
