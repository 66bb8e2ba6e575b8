"""A run follows the certificate database: what changes there reaches its roles while messages flow."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from labconsole.paths import pki_dir
from labconsole.security.pki.records import Origin, TrustKind
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.certificate_profiles import CertificateProfile
from labconsole.security.x509.issuing import issue
from labconsole_amqp.roles.message_openers import MessageOpeners, Opener
from labconsole_amqp.series import OUTCOMES
from labconsole_amqp.wire.sign_encrypt import OpenedMessage
from labconsole_amqp.wire.sign_encrypt import Outcome as Opened
from tests.labconsole.security.pki.pki_lab import VALID, OwnState
from tests.labconsole_amqp.lab import Lab, Outcome
from tests.labconsole_amqp.states import FOLLOWED, States, name_identity, prepared_identity

pytestmark = pytest.mark.usefixtures("stored_rsa_keys")

COUNT = FOLLOWED["count"]
UNTIL_FAILURE = {"count": 1_000}
"""Of a run that what changes ends: it is in progress then, however busy the computer is."""


def run(folder: Path, change: Callable[[], None], **settings: object) -> Outcome:
    """A run of 3 s, during which the database changes."""

    def during(lab: Lab) -> None:
        lab.until("received", 12)
        change()

    return Lab(folder, during=during).run(**FOLLOWED | settings)


@pytest.mark.parametrize("reconnect", [0.0, 5.0])
def test_a_sender_moves_to_its_new_certificate_and_loses_nothing(
    states: States, reconnect: float, tmp_path: Path
) -> None:
    renew = states.prepared(states.alpha, "alpha-client")
    outcome = run(tmp_path / "run", renew, reconnect=reconnect, numbered=True)
    assert outcome.failure is None, outcome.failure
    (moved,) = outcome.events_named("connected again")
    assert moved.source == "sender-0"
    (used,) = (one for one in outcome.events_named("identities used") if one.source == "sender-0")
    record = states.store.certificate(states.store.identity("alpha-client").certificate)
    assert used.data == {"certificate": record.sha256, "refused": ""}
    figures = outcome.figures
    assert (figures["received"], figures["lost"], figures["failed_verifications"]) == (COUNT, 0, 0)
    assert set(outcome.verdicts.values()) == {"pass"}


def test_a_revoked_sender_is_closed_with_the_reason(states: States, tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", lambda: states.crl(states.alpha, "alpha-client"), **UNTIL_FAILURE)
    assert outcome.failure is not None and "the certificate of alpha-client is revoked" in outcome.failure
    assert outcome.figures["sent"] < UNTIL_FAILURE["count"]


def test_a_distrusted_root_ends_the_connection_of_its_clients(states: States, tmp_path: Path) -> None:
    def distrust() -> None:
        with states.store.change() as change:
            change.withdraw_trust(states.beta_trusts_alpha)

    outcome = run(tmp_path / "run", distrust, **UNTIL_FAILURE)
    assert outcome.failure is not None and "amqp:unauthorized-access" in outcome.failure


def test_roles_keep_what_they_have_where_the_new_key_cannot_be_opened(states: States, tmp_path: Path) -> None:
    change = prepared_identity(states.store, states.alpha, states.alpha, "alpha-client", passphrase="no one is asked")
    outcome = run(tmp_path / "run", change)
    assert outcome.failure is None, outcome.failure
    (kept,) = outcome.events_named("identities kept")
    assert kept.source == "sender-0" and len(outcome.events_named("connected again")) == 0
    assert kept.message.startswith("The sender keeps the identities that it has: ")
    assert "passphrase" in kept.message
    assert (outcome.figures["received"], outcome.figures["lost"]) == (COUNT, 0)


def test_a_change_of_other_identities_disturbs_no_role(states: States, tmp_path: Path) -> None:
    change = states.prepared(states.beta, "beta-other", CertificateProfile.TLS_SERVER)
    outcome = run(tmp_path / "run", change, test=2)
    assert outcome.failure is None, outcome.failure
    assert not outcome.events_named("certificates changed") and not outcome.events_named("identities used")


def test_a_broker_that_keeps_its_key_still_follows_crls(states: States, tmp_path: Path) -> None:
    profile = CertificateProfile.TLS_SERVER
    replace = prepared_identity(states.store, states.beta, states.beta, "beta-broker", profile, passphrase="none")

    def change() -> None:
        replace()
        states.crl(states.alpha, "alpha-client")

    outcome = run(tmp_path / "run", change, **UNTIL_FAILURE)
    assert [event.source for event in outcome.events_named("identities kept")][:1] == ["broker"]
    assert outcome.failure is not None and "the certificate of alpha-client is revoked" in outcome.failure


def test_what_changes_before_t0_reaches_the_roles(states: States, tmp_path: Path) -> None:
    class Early(Lab):
        def _await_begin(self) -> bool:
            while len(self.started) < 2 and not self._over.wait(0.001):  # broker and receiver have their CRLs by now
                pass
            return not self._over.is_set()

    lab = Early(tmp_path / "run", during=lambda _: states.crl(states.alpha, "alpha-client"))
    outcome = lab.run(**FOLLOWED | UNTIL_FAILURE)
    assert outcome.failure is not None and "is revoked" in outcome.failure


def test_nothing_is_encrypted_to_a_revoked_certificate(states: States, tmp_path: Path) -> None:
    states.named(states.beta, "beta-reader")
    outcome = run(
        tmp_path / "run",
        lambda: states.crl(states.beta, "beta-reader"),
        test=4,
        receiver_message_identity="beta-reader",
        **UNTIL_FAILURE,
    )
    assert outcome.failure is not None and "beta-reader is revoked" in outcome.failure
    assert outcome.figures["sent"] < UNTIL_FAILURE["count"]


def test_a_new_certificate_after_a_revocation_restores_the_connection(states: States, tmp_path: Path) -> None:
    """As after a compromise of the key: the CRL comes first."""

    renew = states.prepared(states.alpha, "alpha-client")

    def change() -> None:
        states.crl(states.alpha, "alpha-client")
        time.sleep(0.5)
        renew()

    outcome = run(tmp_path / "run", change, reconnect=10.0, numbered=True)
    assert outcome.failure is None, outcome.failure
    assert outcome.figures["received"] >= COUNT and outcome.figures["lost"] == 0


def test_messages_of_a_distrusted_root_are_refused_without_a_crl(states: States, tmp_path: Path) -> None:
    """The signer's State is another one than that of the connections, so that these stay."""
    with PkiStore.open(pki_dir()) as store:
        gamma = OwnState(store, "Gamma")
        name_identity(store, gamma, gamma, "gamma-signer")
        with store.change() as change:
            trust = change.trust(states.beta.state.id, gamma.root.id, TrustKind.ROOT, "by the test")

        def distrust() -> None:
            with store.change() as change:
                change.withdraw_trust(trust.id)

        outcome = run(tmp_path / "run", distrust, sender_message_identity="gamma-signer")
    assert outcome.failure is None, outcome.failure
    refused = outcome.column("received", "outcome") == OUTCOMES.index(Opened.SIGNER_REFUSED)
    assert refused[-1] and not refused[0]


@pytest.mark.parametrize("envelope", ["compact", "cms"])
def test_a_renewed_certificate_does_not_make_old_messages_new(
    states: States, envelope: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The certificate is renewed with its key; whatever came before the renewal is received once more after it."""
    opened: list[bytes] = []
    replayed: list[Opened] = []
    open_all = MessageOpeners.open_all

    def twice(self: MessageOpeners, messages: list[bytes]) -> list[tuple[Opener, OpenedMessage]]:
        if len(self._openers) > 1 and opened:
            old, opened[:] = list(opened), []
            replayed.extend(opener.accept(one).outcome for opener, one in open_all(self, old))
        elif len(self._openers) == 1:
            opened.extend(messages)
        return open_all(self, messages)

    def renew() -> None:
        record = states.store.certificate(states.store.identity("alpha-client").certificate)
        with states.store.change() as change:
            profile = CertificateProfile.STATE
            key = record.certificate.public_key()
            names = [x509.DNSName("localhost")]
            renewed = issue(states.alpha.issuer, key, record.certificate.subject, names, profile, VALID)  # type: ignore[arg-type]
            change.name_identity("alpha-client", change.add_certificate(renewed, origin=Origin.ISSUED).id)

    monkeypatch.setattr(MessageOpeners, "open_all", twice)
    outcome = run(tmp_path / "run", renew, envelope=envelope)
    assert outcome.failure is None, outcome.failure
    assert len(replayed) > 10 and set(replayed) == {Opened.REPLAYED}
