"""The trust tab by clicks: a cell leads to its cause, a bundle needs its fingerprint; 40 States hold nothing up."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QGuiApplication, QImage
from pytestqt.qtbot import QtBot

from labconsole.paths import pki_dir
from labconsole.security.pki.records import TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.fingerprints import grouped
from labconsole_certificates.operations.export import exported
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.self_signed import WARNING, make_self_signed
from labconsole_certificates.operations.states import claim_domain
from labconsole_certificates.panel.certificates.certificates_view import CertificatesView
from labconsole_certificates.panel.exchange.exchange_view import ExchangeView
from labconsole_certificates.panel.page import CertificatesPage
from labconsole_certificates.panel.trust.bundle_dialog import BundleDialog
from labconsole_certificates.panel.trust.matrix_grid import TrustGrid
from labconsole_certificates.panel.trust.matrix_painting import GridPainter
from labconsole_certificates.panel.trust.trust_dialog import TrustDialog, can_be_trusted
from labconsole_certificates.panel.trust.trust_view import TrustView
from labconsole_certificates.rotation import steps
from labconsole_certificates.trust.bundle_creation import make_bundle
from labconsole_certificates.trust.bundle_import import import_bundle
from labconsole_ui.shell.main_window import MainWindow
from tests.helpers.many_states import STATES, trust_a_third
from tests.labconsole_certificates.panel.conftest import Pair
from tests.labconsole_certificates.panel.page_driver import Lab, local_state, trust


def until_shown(lab: Lab, view: TrustView) -> None:
    """Wait for the matrix."""
    lab.until(lambda: view.grid.cell_at(view.grid.cell_area(0, 1).center().toPoint()) == (0, 1))


def click_cell(lab: Lab, view: TrustView, row: int, column: int) -> None:
    """Click the middle of a cell."""
    place = view.grid.cell_area(row, column).center().toPoint()
    lab.qtbot.mouseClick(view.grid.viewport(), Qt.MouseButton.LeftButton, pos=place)


def view_on_screen(window: MainWindow, view: TrustView) -> QImage:
    """The matrix as the screen shows it."""
    viewport = view.grid.viewport()
    area = QRect(viewport.mapTo(window, QPoint()), viewport.size())
    return window.screen().grabWindow(window.winId()).toImage().copy(area)


@pytest.fixture
def bundle_of_c(tmp_path: Path) -> tuple[Path, str]:
    """The trust bundle of State C, made by a console of its own; and the fingerprint that C reads out."""
    with PkiStore.open(tmp_path / "elsewhere") as store:
        state, root = local_state(store, "State C", "c.example")
        file = tmp_path / "c.bundle"
        file.write_bytes(make_bundle(store, state.name))
    return file, root.sha256


def test_link_certificates_cannot_be_trusted_directly(pair: Pair) -> None:
    steps.prepare(pair.store, steps.begin(pair.store, pair.root_a), NewKey())
    snapshot = pair.store.snapshot()
    roots = [record for record in reversed(snapshot.certificates) if record.profile is CertificateProfile.ROOT]
    assert len(snapshot.certificates) > len(roots) == 3
    assert can_be_trusted(snapshot) == tuple(roots)


def test_a_cell_shows_its_cause_and_opens_the_exchange(pair: Pair, lab: Lab) -> None:
    trust(pair.store, pair.a, pair.root_b)
    view = lab.tab("trust", TrustView)
    until_shown(lab, view)
    click_cell(lab, view, 0, 1)
    lab.until(lambda: view.cause.title.text() == "State A → State B: trusted")
    assert view.cause.certificate_button.isVisible()
    lab.click(view.cause.withdraw_button)
    lab.until(lambda: view.cause.title.text() == "State A → State B: untrusted")
    assert lab.snapshot().trust[0].withdrawn is not None
    assert lab.operations() == ["certificates.withdraw"]
    assert not view.cause.withdraw_button.isVisible()
    click_cell(lab, view, 1, 0)
    assert view.cause.title.text() == "State B → State A: untrusted"
    lab.click(view.cause.exchange_button)
    exchange = lab.page.tabs.currentWidget().findChild(ExchangeView)
    assert (exchange.a_box.currentText(), exchange.b_box.currentText()) == ("State B", "State A")


def test_a_bundle_is_imported_only_with_its_whole_fingerprint_typed(
    pair: Pair, lab: Lab, bundle_of_c: tuple[Path, str]
) -> None:
    file, fingerprint = bundle_of_c
    view = lab.tab("trust", TrustView)
    lab.drop(view.drop_box, file)
    dialog = lab.dialog(BundleDialog)
    assert not dialog.question.show_fingerprints.isVisible()  # what came with the file must not confirm the file
    edits = dialog.question.typing.edits
    wrong = "0" if fingerprint[0] != "0" else "1"
    lab.qtbot.keyClicks(edits[0], wrong + fingerprint[1:4])
    assert edits[0].property("invalid")
    assert not dialog.take_button.isEnabled()
    edits[0].selectAll()
    QGuiApplication.clipboard().setText(grouped(fingerprint))
    lab.qtbot.keyClick(edits[0], Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    assert not edits[0].property("invalid")
    lab.click(dialog.take_button)
    lab.until(lambda: "State C" in [state.name for state in lab.snapshot().states])
    (row,) = lab.snapshot().trust
    assert lab.snapshot().certificate_by_id[row.certificate].sha256 == fingerprint
    assert lab.operations() == ["certificates.take-bundle"]
    bar = lab.window.messages
    said = "State A imported trust bundle 1 of State C: one root is now trusted."
    lab.until(lambda: [each.message.sentence for each in bar.entries()] == [said])


def test_a_dropped_root_is_imported_and_trusted_only_with_its_fingerprint_typed(
    pair: Pair, lab: Lab, tmp_path: Path
) -> None:
    with PkiStore.open(tmp_path / "elsewhere") as store:
        _state, root = local_state(store, "State C", "c.example")
        file = tmp_path / "c.pem"
        file.write_bytes(exported(store.snapshot(), root))
    view = lab.tab("trust", TrustView)
    until_shown(lab, view)
    lab.drop(view.drop_box, file)
    dialog = lab.dialog(TrustDialog)
    assert not dialog.question.show_fingerprints.isVisible()
    assert not dialog.trust_button.isEnabled()
    assert not lab.snapshot().trust
    dialog.question.typing.edits[0].textEdited.emit(root.sha256)
    lab.click(dialog.trust_button)
    lab.until(lambda: bool(lab.snapshot().trust))
    (row,) = lab.snapshot().trust
    assert (row.state, row.kind) == (pair.a.id, TrustKind.ROOT)
    assert lab.snapshot().certificate_by_id[row.certificate].sha256 == root.sha256
    assert lab.operations() == ["certificates.take", "certificates.trust"]


def test_a_self_signed_certificate_is_pinned_after_its_warning(pair: Pair, lab: Lab) -> None:
    made = make_self_signed(pair.store, pair.b, NewKey(), CertificateProfile.TLS_CLIENT, subject="CN=b")
    view = lab.tab("trust", TrustView)
    until_shown(lab, view)
    lab.until(lambda: view.known(made.id))
    lab.click(view.trust_button)
    dialog = lab.dialog(TrustDialog)
    dialog.choose(pair.root_b.id)
    assert not dialog.warning.isVisible()
    dialog.choose(made.id)
    assert dialog.warning.text() == WARNING
    assert dialog.warning.isVisible()
    dialog.question.typing.edits[0].textEdited.emit(made.sha256)
    lab.click(dialog.trust_button)
    lab.until(lambda: bool(lab.snapshot().trust))
    (row,) = lab.snapshot().trust
    assert (row.state, row.certificate, row.kind) == (pair.a.id, made.id, TrustKind.PIN)
    assert lab.operations() == ["certificates.pin"]


@pytest.fixture
def forty(home: object) -> None:
    """40 States with a root each; every one trusts a third of the others."""
    trust_a_third(pki_dir())


def test_forty_states_are_drawn_and_navigated_without_blocking_the_window(
    qtbot: QtBot, forty: None, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of work: one drawing for each step, one picture for each mark."""
    drawn: list[str] = []
    paint, mark = TrustGrid.paintEvent, GridPainter._mark
    monkeypatch.setattr(TrustGrid, "paintEvent", lambda *given: (drawn.append("paintEvent"), paint(*given))[1])
    monkeypatch.setattr(GridPainter, "_mark", lambda *given: (drawn.append("_mark"), mark(*given))[1])
    page = window.plugin_pages.open("page:certificates:certificates")
    assert isinstance(page, CertificatesPage)
    page.building.finish()
    lab = Lab(qtbot, window, page)
    window.resize(2400, 2000)
    view = lab.tab("trust", TrustView)
    until_shown(lab, view)
    click_cell(lab, view, 0, 1)
    assert view.cause.title.text() == "State 01 → State 02: trusted"
    qtbot.wait(1)
    before = drawn.count("paintEvent")
    for _ in range(STATES):
        qtbot.keyClick(view.grid, Qt.Key.Key_Right)
        qtbot.keyClick(view.grid, Qt.Key.Key_Down)
        qtbot.wait(1)
    assert view.grid.current == (STATES - 2, STATES - 1)
    assert view.grid.viewport().rect().contains(view.grid.cell_area(STATES - 2, STATES - 1).center().toPoint())
    assert drawn.count("paintEvent") - before <= 2 * STATES
    assert drawn.count("_mark") <= 4, "each mark is drawn once, not for each of 1,560 cells"
    bars = (view.grid.horizontalScrollBar(), view.grid.verticalScrollBar())
    assert [bar.maximum() for bar in bars] == [0, 0]  # all of it was drawn each time
    assert view.cause.title.text().startswith("State 39 → State 40")
    shown = view_on_screen(window, view)
    view.grid.viewport().update()
    qtbot.wait(1)
    assert view_on_screen(window, view) == shown, "what is painted by cells looks as if all had been painted at once"


def test_bundle_with_another_domain_is_imported_only_once_that_is_confirmed(
    pair: Pair, lab: Lab, tmp_path: Path
) -> None:
    with PkiStore.open(tmp_path / "elsewhere") as store:
        state, root = local_state(store, "State C", "c.example")
        import_bundle(pair.store, pair.a.name, make_bundle(store, state.name), root.sha256)
        claim_domain(store, state, "b.example")
        file = tmp_path / "c.bundle"
        file.write_bytes(make_bundle(store, state.name))
    view = lab.tab("trust", TrustView)
    lab.until(lambda: view.grid.cell_at(view.grid.cell_area(0, 2).center().toPoint()) == (0, 2))
    lab.drop(view.drop_box, file)
    dialog = lab.dialog(BundleDialog)
    question = dialog.domain_question.text()
    assert "State C claims b.example, and had c.example before." in question
    assert "State B has claimed b.example" in question
    assert not dialog.take_button.isEnabled()
    lab.click(dialog.domain_box)
    lab.click(dialog.take_button)
    lab.until(lambda: lab.snapshot().states[-1].domain == "b.example")
    assert lab.operations() == ["certificates.take-bundle"]


def test_what_needs_a_state_cannot_be_chosen_before_the_database_is_read(lab: Lab) -> None:
    view = CertificatesView(lab.page.services, lab.page)
    for _piece in view.pieces():
        pass
    forms = view.forms
    assert [each.isEnabled() for each in (forms.root, forms.intermediate, forms.domain)] == [False, False, False]


def test_domain_is_changed_by_a_question(pair: Pair, lab: Lab) -> None:
    view = lab.tab("certificates", CertificatesView)
    lab.until(lambda: view.forms.domain.isEnabled())
    dialog = view.forms.change_domain()
    state, domains = dialog.form.row("state"), dialog.form.row("domain")
    assert (state.value(), domains.value()) == ("State A", ["a.example"])
    state.set_value("State B")
    assert domains.value() == ["b.example"]
    state.set_value("State A")
    domains.set_value(["a.example", "*.c.example"])
    lab.until(lambda: "is not a DNS domain" in dialog.confirmation.loss.text())
    assert not dialog.start_button.isEnabled()
    domains.set_value(["a.example", "b.example"])
    asked = "State A claims a.example, b.example, and had a.example before. State B has claimed b.example: "
    lab.until(lambda: asked in dialog.confirmation.loss.text())
    assert not dialog.start_button.isEnabled()
    lab.qtbot.keyClicks(dialog.confirmation.edit, "yes")
    lab.until(dialog.start_button.isEnabled)
    domains.set_value(["a.example", "c.example"])
    asked = "State A claims a.example, c.example, and had a.example before."
    lab.until(lambda: dialog.confirmation.loss.text() == asked)
    assert not dialog.start_button.isEnabled(), "what was typed for another change does not confirm this one"
    lab.qtbot.keyClicks(dialog.confirmation.edit, "yes")
    lab.do_action()
    assert lab.operations()[-1] == "certificates.domain"
    lab.until(lambda: lab.snapshot().states[0].domain == "a.example c.example")
