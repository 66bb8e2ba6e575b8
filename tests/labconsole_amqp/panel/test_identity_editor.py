"""Identities by name in the form of the AMQP trial: which names are offered, and when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from labconsole.paths import pki_dir
from labconsole.security.pki.store import PkiStore
from labconsole_amqp.panel.messaging import IdentityEditor
from labconsole_amqp.parameters import AmqpParameters
from labconsole_ui.form.parameter_form import ParameterForm
from labconsole_ui.theme.theme import Theme, ThemeMode
from tests.labconsole.security.pki.pki_lab import OwnState

pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


@pytest.fixture
def form(own_home: Path, qtbot: QtBot, qapp: QApplication) -> Iterator[ParameterForm]:
    """The trial's form for Test 2, visible."""
    form = ParameterForm(AmqpParameters, Theme(qapp, ThemeMode.LIGHT), {"sender_identity": IdentityEditor})
    qtbot.addWidget(form)
    form.set_values(AmqpParameters(test=2, sender_identity="to-be-made").model_dump(mode="json"))
    for section in form.sections:
        section.unfold()
    form.show()
    yield form
    form.hide()


def editor_of(form: ParameterForm) -> IdentityEditor:
    [editor] = form.findChildren(IdentityEditor)
    return editor


def offered(editor: IdentityEditor) -> list[str]:
    return [editor.combo.itemText(place) for place in range(editor.combo.count())]


def test_identities_are_listed_again_when_the_form_is_shown(qtbot: QtBot, form: ParameterForm) -> None:
    editor = editor_of(form)
    assert (offered(editor), editor.value()) == ([], "to-be-made")
    form.hide()
    with PkiStore.open(pki_dir()) as store:
        own = OwnState(store, "Alpha")
        record = own.issued("end")
        with store.change() as change:
            for name in ("alpha-client", "alpha-broker"):
                change.name_identity(name, record.id)
    with qtbot.assertNotEmitted(editor.edited):
        form.show()
    assert (offered(editor), editor.value()) == (["alpha-broker", "alpha-client"], "to-be-made")
    with qtbot.waitSignal(editor.edited):
        editor.line.clear()
        qtbot.keyClicks(editor.line, "alpha-client")
        qtbot.keyClick(editor.line, Qt.Key.Key_Return)
    assert form.values()["sender_identity"] == "alpha-client"


def test_a_database_that_cannot_be_read_leaves_the_list_empty(form: ParameterForm) -> None:
    form.hide()
    (pki_dir() / "pki.db").write_bytes(b"no database" * 500)
    form.show()
    assert editor_of(form).isVisible()
    assert offered(editor_of(form)) == []
