"""The tab of certificates by clicks: tree, filter, detail, comparison, what goes out, removing and its undo."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QItemSelectionModel, QModelIndex, QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QDrag, QGuiApplication, QMouseEvent
from PySide6.QtWidgets import QApplication, QPushButton

from labconsole.security.pki.records import State
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.parsing import read_certificates
from labconsole_certificates.describing.comparison import Comparison
from labconsole_certificates.operations.authorities import create_intermediate
from labconsole_certificates.operations.export_formats import as_pem
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.self_signed import make_self_signed
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.panel.certificates.certificates_view import CertificatesView
from labconsole_certificates.panel.certificates.selection_details import SelectionDetails
from labconsole_certificates.panel.certificates.tree_nodes import Node, nodes_of
from labconsole_certificates.panel.revocation.revocation_view import RevocationView
from labconsole_certificates.panel.rotation.rotation_view import RotationView
from labconsole_certificates.panel.tab import DatabaseReading
from labconsole_certificates.rotation import steps
from tests.helpers.authorities import new_authority
from tests.labconsole_certificates.panel.conftest import Pair
from tests.labconsole_certificates.panel.page_driver import Lab, certified


def shown_tree(view: CertificatesView) -> list[str]:
    """Titles of all lines that the filter leaves, indented by their depth."""
    model, lines = view.tree.tree, []

    def walk(parent: QModelIndex, depth: int) -> None:
        for row in range(model.rowCount(parent)):
            index = model.index(row, 0, parent)
            lines.append("  " * depth + model.node(index).title)
            walk(index, depth + 1)

    walk(QModelIndex(), 0)
    return lines


def click(lab: Lab, view: CertificatesView, key: str, *, also: bool = False) -> None:
    """Click the line `key`, expanded before; `also`: add it to the selection."""
    view.tree.expandAll()
    index = view.tree.tree.index_of(key)
    assert index.isValid()
    view.tree.scrollTo(index)
    modifier = Qt.KeyboardModifier.ControlModifier if also else Qt.KeyboardModifier.NoModifier
    place = view.tree.visualRect(index).center()
    lab.qtbot.mouseClick(view.tree.viewport(), Qt.MouseButton.LeftButton, modifier, place)


def detail_of(lab: Lab, view: CertificatesView, key: str, *, also: bool = False) -> SelectionDetails:
    """Click the line, and wait for its detail."""
    click(lab, view, key, also=also)
    lab.until(lambda: view.detail.shown is not None and key in view.detail.shown.keys)
    assert view.detail.shown is not None
    return view.detail.shown


def view_of(lab: Lab, lines: int) -> CertificatesView:
    """The tab, once the tree has so many lines; what the test has just changed need not wait for the next look."""
    view = lab.tab("certificates", CertificatesView)
    lab.page.watch.read_again()
    lab.until(lambda: len(shown_tree(view)) == lines)
    return view


def node(view: CertificatesView, key: str) -> Node:
    return view.tree.tree.node(view.tree.tree.index_of(key))


def test_tree_shows_states_authorities_chains_and_leaves_with_their_status(pair: Pair, lab: Lab) -> None:
    below = create_intermediate(pair.store, pair.root_a, pair.a, NewKey())
    leaf = certified(pair.store, pair.b, pair.a, CertificateProfile.TLS_CLIENT)
    add_state(pair.store, "สิงคโปร์", local=False)
    view = view_of(lab, 7)
    title = node(view, f"certificate:{leaf.id}").title
    assert shown_tree(view) == [
        "State A",
        "  State A Root CA",
        "    State A Intermediate CA",
        f"      {title}",
        "State B",
        "  State B Root CA",
        "สิงคโปร์",
    ]
    assert node(view, f"certificate:{leaf.id}").holder == "State B"
    assert node(view, f"certificate:{below.id}").status_text == "valid"
    assert view.browser.count.text() == "4 certificates"


def test_status_is_seen_in_the_line_and_its_cause_in_the_detail(pair: Pair, lab: Lab) -> None:
    alone = make_self_signed(pair.store, pair.a, NewKey(), CertificateProfile.TLS_CLIENT, subject="CN=alone", days=20)
    view = view_of(lab, 5)
    line = node(view, f"certificate:{alone.id}")
    assert line.status_text == "untrusted"
    assert node(view, f"state:{pair.a.id}").status_text == "1 untrusted"
    detail_of(lab, view, f"certificate:{alone.id}")
    text = view.detail.view.toPlainText()
    assert line.cause in text
    assert "encrypted file" in text
    end = (datetime.now(UTC) + timedelta(days=20)).date()
    assert str(end) in text


def unfiltered(lab: Lab, view: CertificatesView) -> None:
    view.browser.search.clear()
    lab.until(lambda: view.browser.count.text().endswith("certificates"))


def test_certificates_of_a_rotated_root_are_listed_below_the_root(pair: Pair) -> None:
    """Its link certificates have the same name and key, and are newer."""
    rotation = steps.prepare(pair.store, steps.begin(pair.store, pair.root_a), NewKey())
    steps.switch(pair.store, rotation)
    record = certified(pair.store, pair.a, pair.a, CertificateProfile.TLS_CLIENT)
    state, *_ = nodes_of(DatabaseReading(pair.store.snapshot(), {}, datetime.now(UTC)))
    [root] = [node for node in state.children if f"certificate:{record.id}" in [child.key for child in node.children]]
    assert root.record is not None and root.record.self_signed


def test_filter_shows_matching_lines_and_those_below_them(pair: Pair, lab: Lab) -> None:
    certified(pair.store, pair.b, pair.a, CertificateProfile.TLS_CLIENT)
    view = view_of(lab, 5)
    lab.qtbot.keyClicks(view.browser.search, "state b root")
    lab.until(lambda: view.browser.count.text() == "1 found")
    assert shown_tree(view) == ["State B", "  State B Root CA"]
    unfiltered(lab, view)
    lab.qtbot.keyClicks(view.browser.search, "tls client")
    lab.until(lambda: len(shown_tree(view)) == 3)
    assert shown_tree(view)[:2] == ["State A", "  State A Root CA"]
    unfiltered(lab, view)
    lab.qtbot.keyClicks(view.browser.search, "state a root ca")
    lab.until(lambda: view.browser.count.text() == "2 found")
    assert shown_tree(view)[:2] == ["State A", "  State A Root CA"]
    assert len(shown_tree(view)) == 3
    unfiltered(lab, view)
    lab.qtbot.keyClicks(view.browser.search, pair.root_b.sha256[:12])
    lab.until(lambda: shown_tree(view) == ["State B", "  State B Root CA"])
    lab.qtbot.keyClicks(view.browser.search, "no such thing")
    lab.until(lambda: view.browser.count.text() == "0 found")


def test_selection_and_expanded_lines_survive_a_change_of_the_database(pair: Pair, lab: Lab) -> None:
    view = view_of(lab, 4)
    key = f"certificate:{pair.root_b.id}"
    detail_of(lab, view, key)
    view.tree.collapse(view.tree.tree.index_of(f"state:{pair.b.id}"))
    create_intermediate(pair.store, pair.root_a, pair.a, NewKey())
    lab.until(lambda: len(shown_tree(view)) == 5)
    assert [found.key for found in view.tree.selected_nodes()] == [key]
    assert view.tree.isExpanded(view.tree.tree.index_of(f"state:{pair.a.id}"))
    assert not view.tree.isExpanded(view.tree.tree.index_of(f"state:{pair.b.id}"))
    assert view.detail.shown is not None
    assert view.detail.shown.keys == (key,)


def test_two_are_compared_and_only_their_differences_when_wanted(pair: Pair, lab: Lab) -> None:
    view = view_of(lab, 4)
    left, right = f"certificate:{pair.root_a.id}", f"certificate:{pair.root_b.id}"
    detail_of(lab, view, left)
    shown = detail_of(lab, view, right, also=True)
    assert isinstance(shown.body, Comparison)
    text = view.detail.view.toPlainText()
    assert "State A Root CA" in text
    assert "State B Root CA" in text
    same = next(row for row in shown.body.rows if row.same and row.left is not None)
    assert f"{same.section}: {same.label}" in text
    lab.click(view.detail.differences)
    assert f"{same.section}: {same.label}" not in view.detail.view.toPlainText()


def test_a_kept_certificate_is_shown_next_to_the_next_one(pair: Pair, lab: Lab) -> None:
    view = view_of(lab, 4)
    detail_of(lab, view, f"certificate:{pair.root_a.id}")
    lab.click(view.detail.compare_button)
    lab.until(lambda: "next to this one" in view.detail.hint.text())
    shown = detail_of(lab, view, f"certificate:{pair.root_b.id}")
    assert isinstance(shown.body, Comparison)
    assert "State A Root CA and State B Root CA" in view.detail.title.text()


def test_a_file_is_compared_with_a_certificate_of_the_tree(pair: Pair, lab: Lab, tmp_path: Path) -> None:
    view = view_of(lab, 4)
    file = tmp_path / "other.pem"
    file.write_bytes(as_pem(new_authority("Stranger Root CA").certificate))
    view.tree.setFocus()
    lab.drop(lab.window, file)
    lab.until(lambda: view.file_pane.open)
    create_intermediate(pair.store, pair.root_a, pair.a, NewKey())
    lab.until(lambda: len(shown_tree(view)) == 5)
    assert view.file_pane.open
    lab.click(view.detail.compare_button)
    assert view.file_pane.open
    shown = detail_of(lab, view, f"certificate:{pair.root_b.id}")
    assert isinstance(shown.body, Comparison)
    assert "Stranger Root CA and State B Root CA" in view.detail.title.text()
    assert not view.file_pane.open


def test_certificates_go_out_as_text_file_chain_and_by_dragging(pair: Pair, lab: Lab, tmp_path: Path) -> None:
    leaf = certified(pair.store, pair.b, pair.a, CertificateProfile.TLS_CLIENT)
    view = view_of(lab, 5)
    key = f"certificate:{leaf.id}"
    detail_of(lab, view, key)
    lab.click(view.detail.export_bar.copy_button)
    [copied] = read_certificates(QGuiApplication.clipboard().text().encode())
    assert copied == leaf.certificate
    lab.until(lambda: pair.store.snapshot().audit[0].what == "exported certificate")
    assert pair.store.snapshot().audit[0].fingerprint == leaf.sha256
    for name, count in (("one.pem", 1), ("one.der", 1), ("one.chain.pem", 2)):
        view.detail.export_bar.save(tmp_path / name)
        found = read_certificates((tmp_path / name).read_bytes())
        assert (found[0], len(found)) == (leaf.certificate, count)
    indexes = [view.tree.tree.index_of(one) for one in (key, f"certificate:{pair.root_b.id}")]
    dragged = view.tree.tree.mimeData(indexes)
    files = [Path(url.toLocalFile()) for url in dragged.urls()]
    assert [read_certificates(file.read_bytes())[0] for file in files] == [leaf.certificate, pair.root_b.certificate]
    assert len(read_certificates(dragged.text().encode())) == 2
    assert b"PRIVATE" not in b"".join(file.read_bytes() for file in files)


@pytest.mark.parametrize("dropped", [True, False])
def test_a_dragged_certificate_is_in_the_audit_list_once_it_was_dropped(
    pair: Pair, lab: Lab, monkeypatch: pytest.MonkeyPatch, dropped: bool
) -> None:
    view = view_of(lab, 4)
    detail_of(lab, view, f"certificate:{pair.root_b.id}")
    end = Qt.DropAction.CopyAction if dropped else Qt.DropAction.IgnoreAction
    monkeypatch.setattr(QDrag, "exec", lambda _drag, _actions: end)  # without a screen there is nowhere to drop it
    view.tree.startDrag(Qt.DropAction.CopyAction)
    if dropped:
        lab.until(lambda: pair.store.snapshot().audit[0].what == "exported certificate")
    handle = view.detail.export_bar.handle
    far = QPointF(QApplication.startDragDistance() + 9, 3)
    left, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    moved = QMouseEvent(QEvent.Type.MouseMove, far, handle.mapToGlobal(far), left, left, keys)
    with lab.qtbot.waitSignal(view.detail.export_bar.exported, raising=False, timeout=100) as emitted:
        lab.qtbot.mousePress(handle, left, pos=QPoint(3, 3))
        QApplication.sendEvent(handle, moved)
    assert emitted.signal_triggered is dropped
    exported = [row.fingerprint for row in pair.store.snapshot().audit if row.what == "exported certificate"]
    assert set(exported) == ({pair.root_b.sha256} if dropped else set())


def test_removed_is_hidden_until_undone(pair: Pair, lab: Lab) -> None:
    alone = make_self_signed(pair.store, pair.a, NewKey(), CertificateProfile.TLS_CLIENT, subject="CN=alone")
    view = view_of(lab, 5)
    key = f"certificate:{alone.id}"
    detail_of(lab, view, key)
    menu_action(view, "Remove").trigger()
    lab.until(lambda: len(shown_tree(view)) == 4)
    assert pair.store.certificate(alone.id).removed is not None
    undo = next(button for button in lab.window.messages.findChildren(QPushButton) if button.text() == "Undo")
    lab.click(undo)
    lab.until(lambda: len(shown_tree(view)) == 5)
    detail_of(lab, view, key)
    lab.qtbot.keyClick(view.tree, Qt.Key.Key_Delete)
    lab.until(lambda: len(shown_tree(view)) == 4)
    lab.click(view.browser.removed_button)
    lab.until(lambda: len(shown_tree(view)) == 5)
    assert node(view, key).status_text == "removed"
    detail_of(lab, view, key)
    lab.until(lambda: menu_action(view, "Restore").isVisible())
    menu_action(view, "Restore").trigger()
    lab.until(lambda: node(view, key).status_text == "untrusted")
    hidden, shown = "certificates.remove", "certificates.restore"
    assert lab.operations() == [hidden, shown, hidden, shown]


def menu_action(view: CertificatesView, text: str) -> QAction:
    return next(action for action in view.detail.more_menu.actions() if action.text() == text)


def test_names_are_shown_as_they_are_and_never_taken_for_markup(pair: Pair, lab: Lab) -> None:
    name = "<b><img src=file:///etc/passwd></b>"
    subject = "CN=" + name.replace("<", "\\<").replace(">", "\\>")
    record = make_self_signed(pair.store, pair.a, NewKey(), CertificateProfile.TLS_CLIENT, subject=subject)
    state: State = add_state(pair.store, name, local=False)
    view = view_of(lab, 6)
    detail_of(lab, view, f"certificate:{record.id}")
    assert name in view.detail.view.toPlainText()
    detail_of(lab, view, f"state:{state.id}")
    assert name in view.detail.view.toPlainText()
    assert view.detail.view.document().allFormats()
    assert not any(form.isImageFormat() for form in view.detail.view.document().allFormats())


def test_several_are_named_and_go_out_together(pair: Pair, lab: Lab) -> None:
    certified(pair.store, pair.b, pair.a, CertificateProfile.TLS_CLIENT)
    view = view_of(lab, 5)
    view.tree.expandAll()
    view.tree.selectAll()
    lab.until(lambda: view.detail.shown is not None and view.detail.shown.title == "3 certificates")
    lab.click(view.detail.export_bar.copy_button)
    assert len(read_certificates(QGuiApplication.clipboard().text().encode())) == 3
    lab.until(lambda: sum(row.what == "exported certificate" for row in pair.store.snapshot().audit) == 3)
    assert lab.operations() == ["certificates.note-export"]
    view.tree.selectionModel().select(
        view.tree.tree.index_of(f"state:{pair.b.id}"), QItemSelectionModel.SelectionFlag.ClearAndSelect
    )
    lab.until(lambda: view.detail.shown is not None and view.detail.shown.title == "State B")


def test_menu_leads_to_rotation_and_revocation_of_that_certificate(pair: Pair, lab: Lab) -> None:
    certified(pair.store, pair.b, pair.a, CertificateProfile.TLS_CLIENT)
    leaf = certified(pair.store, pair.b, pair.a, CertificateProfile.TLS_CLIENT)
    view = view_of(lab, 6)
    detail_of(lab, view, f"certificate:{leaf.id}")
    menu_action(view, "Revoke …").trigger()
    revocation = lab.page.tabs.currentWidget().findChild(RevocationView)
    lab.until(lambda: len(revocation.issued_table.selectionModel().selectedRows()) == 1)
    [index] = revocation.issued_table.selectionModel().selectedRows()
    assert revocation.issued.record(index.row()).record.id == leaf.id
    view = lab.tab("certificates", CertificatesView)
    menu_action(view, "Rotate …").trigger()
    rotation = lab.page.tabs.currentWidget().findChild(RotationView)
    lab.until(lambda: rotation.table.currentIndex().isValid())
    lab.until(lambda: rotation.model.record(rotation.table.currentIndex().row()).record.id == leaf.id)
