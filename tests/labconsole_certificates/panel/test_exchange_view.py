"""The exchange assistant by clicks: step after step, until both ways are proven by real handshakes."""

from __future__ import annotations

from labconsole.security.pki.identities import names
from labconsole.security.x509.fingerprints import groups
from labconsole.security.x509.profiles import CertificateProfile
from labconsole_certificates.panel.exchanging.identity_dialog import IdentityDialog
from labconsole_certificates.panel.exchanging.view import ExchangeView
from labconsole_certificates.panel.requests.view import RequestsView
from labconsole_certificates.panel.trusting.trust_dialog import TrustDialog
from tests.labconsole_certificates.panel.conftest import Pair
from tests.labconsole_certificates.panel.lab import Lab, certified, trust


def test_what_one_way_lacks_is_done_by_its_button_until_both_are_green(pair: Pair, lab: Lab) -> None:
    """A trusts B's root, gets its client certificate from B's CA; the way back was gone before."""
    certified(pair.store, pair.b, pair.b, CertificateProfile.TLS_SERVER)
    certified(pair.store, pair.a, pair.a, CertificateProfile.TLS_SERVER)
    trust(pair.store, pair.b, pair.root_a)
    certified(pair.store, pair.b, pair.a, CertificateProfile.TLS_CLIENT)
    view = lab.tab("exchange", ExchangeView)

    lab.until(lambda: view.next_button.text() == "Trust the root of State B …")
    lab.click(view.next_button)
    dialog = lab.dialog(TrustDialog)
    assert groups(pair.root_b.sha256).split() == dialog.question.read_out.text().split()
    for group, edit in zip(groups(pair.root_b.sha256).split(), dialog.question.typing.edits, strict=True):
        assert not dialog.trust_button.isEnabled()
        lab.qtbot.keyClicks(edit, group.lower())
    lab.click(dialog.trust_button)

    lab.until(lambda: view.next_button.text() == "Make key and CSR of State A …")
    lab.click(view.next_button)
    lab.do_action()
    lab.until(lambda: view.next_button.text() == "Give the CSR to State B")
    lab.click(view.next_button)

    lab.until(lambda: view.next_button.text() == "Look, and decide …")
    lab.click(view.next_button)
    requests = lab.page.tabs.currentWidget().findChild(RequestsView)
    lab.until(lambda: requests.sight.look is not None and "to the CA of State B" in requests.sight.title.text())
    lab.click(requests.sight.approve_button)
    lab.do_action()

    view = lab.tab("exchange", ExchangeView)
    lab.until(lambda: view.next_button.text() == "Give the certificate to State A")
    lab.click(view.next_button)
    lab.until(lambda: view.next_button.text() == "Prove it by handshakes …")
    assert "Not proven yet" in view.there.state.text()
    lab.click(view.next_button)
    lab.do_action()

    lab.until(lambda: view.sentence.text() == "Both ways are proven.")
    for card, way in (
        (view.there, "[State A] → tls-connect → [State B]"),
        (view.back, "[State B] → tls-connect → [State A]"),
    ):
        assert card.title.text() == way
        assert "TLSv1.3" in card.state.text()
    assert {(proof.client, proof.server) for proof in lab.snapshot().proofs} == {
        (pair.a.id, pair.b.id),
        (pair.b.id, pair.a.id),
    }

    lab.click(view.name_button)
    naming = lab.dialog(IdentityDialog)
    lab.qtbot.keyClicks(naming.name_edit, "swim-a")
    lab.click(naming.name_button)
    lab.until(lambda: "swim-a" in view.names.text())
    assert names() == ("swim-a",)
