"""The rotation tab by clicks: what runs out is listed, a root is rotated step by step, a peer confirms."""

from __future__ import annotations

from labconsole.security.pki.records import Item, RotationStatus
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole_certificates.operations import own_csrs, received_csrs
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.panel.rotation.rotation_view import RotationView
from labconsole_certificates.rotation import steps
from labconsole_ui.operations.operation_dialog import OperationDialog
from tests.labconsole_certificates.panel.conftest import Pair
from tests.labconsole_certificates.panel.page_driver import Lab, certified, trust


def test_expiring_certificates_are_filtered_by_days(pair: Pair, lab: Lab) -> None:
    for days in (5, 20, 200):
        made = own_csrs.make_request(
            pair.store, pair.a, pair.a, NewKey(), CertificateProfile.TLS_CLIENT, subject=f"CN=runs out in {days}"
        )
        received_csrs.approve(pair.store, made, days=days)
    view = lab.tab("rotation", RotationView)
    lab.until(lambda: view.model.rowCount() == 5)
    shown = {}
    for days, button in view.filters.items():
        lab.click(button)
        shown[days] = [row.name for row in view.model.records()]
    assert shown[7] == ["runs out in 5"]
    assert shown[30] == ["runs out in 5", "runs out in 20"]
    assert shown[90] == shown[30]
    assert len(shown[None]) == 5
    assert {row.name: row.issuer for row in view.model.records()}["runs out in 5"] == "State A Root CA"
    assert not view.table.horizontalScrollBar().isVisible()
    assert view.filters[30].text() == "Within 30 days (2)"


def test_a_root_is_rotated_step_by_step_and_a_peer_confirms(pair: Pair, lab: Lab) -> None:
    trust(pair.store, pair.b, pair.root_a)
    view = lab.tab("rotation", RotationView)
    lab.until(lambda: view.model.rowCount() == 2)
    view.table.selectRow([row.record.id for row in view.model.records()].index(pair.root_a.id))
    lab.click(view.card.begin_button)
    form = lab.dialog(OperationDialog).form
    form.set_values({**form.values(), "overlap_days": 0})
    lab.do_action()
    lab.until(lambda: view.card.step_button.text() == "&Create the successor …")
    lab.click(view.card.step_button)
    lab.do_action()
    peer_buttons = view.card.peer_buttons  # created again while the page reads what changed
    lab.until(lambda: "State B" in peer_buttons and peer_buttons["State B"].isVisible())
    lab.click(peer_buttons["State B"])
    lab.until(lambda: view.card.step_button.text() == "S&witch over")
    (rotation,) = lab.snapshot().rotations
    assert rotation.status is RotationStatus.OVERLAP
    assert rotation.confirmed == (pair.b.id,)
    successor = lab.snapshot().certificate_by_id[rotation.successor or 0]
    assert successor.profile is CertificateProfile.ROOT
    assert successor.certificate.subject == pair.root_a.certificate.subject
    lab.click(view.card.cancel_button)
    lab.until(lambda: lab.snapshot().rotations[0].status is RotationStatus.CANCELLED)
    steps_done = [f"certificates.rotation-{step}" for step in ("begin", "prepare", "confirm", "cancel")]
    assert lab.operations() == steps_done


def test_a_certificate_that_came_back_is_adopted_as_the_successor(pair: Pair, lab: Lab) -> None:
    client = certified(pair.store, pair.a, pair.b, CertificateProfile.TLS_CLIENT)
    with pair.store.change() as change:
        change.update_state(pair.b.id, local=False)
    steps.prepare(pair.store, steps.begin(pair.store, client), NewKey())
    view = lab.tab("rotation", RotationView)
    view.choose(client.id)
    lab.until(lambda: view.card.step_button.text() == "&Take the new certificate")
    assert not view.card.step_button.isEnabled()
    request = pair.store.requests()[-1]
    with pair.store.change() as change:  # State B's console approves it
        change.update_state(pair.b.id, local=True)
    received_csrs.approve(pair.store, request)
    with pair.store.change() as change:
        change.update_state(pair.b.id, local=False)
        change.hand_over(pair.b.id, pair.a.id, Item.CERTIFICATE, request.sha256)
    lab.click(view.card.step_button)
    lab.until(lambda: lab.snapshot().rotations[0].status is RotationStatus.OVERLAP)
    assert lab.operations() == ["certificates.rotation-adopt"]


def test_after_the_switch_finishing_is_offered_and_retires_the_old_certificate(pair: Pair, lab: Lab) -> None:
    begun = steps.begin(pair.store, pair.root_a, overlap_days=30)
    steps.switch(pair.store, steps.prepare(pair.store, begun, NewKey()))
    view = lab.tab("rotation", RotationView)
    view.choose(pair.root_a.id)
    lab.until(lambda: view.card.step_button.text() == "Fi&nish")
    assert "Wait until the overlap is over" in view.card.sentence.text()
    lab.click(view.card.step_button)
    form = lab.dialog(OperationDialog).form
    form.set_values({**form.values(), "wait_for_overlap": False})
    lab.do_action()
    (rotation,) = lab.snapshot().rotations
    assert rotation.status is RotationStatus.FINISHED
    lab.until(lambda: not view.card.step_button.isVisible())
