"""A run follows the certificate database: what changes there reaches its roles while messages flow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from labconsole.security.x509.certificate_profiles import CertificateProfile
from tests.labconsole_amqp.lab import Lab, Outcome
from tests.labconsole_amqp.link.test_revocation import States, states
from tests.labconsole_amqp.trial.test_identities_by_name import named

__all__ = ["states"]

COUNT = 300


def run(folder: Path, change: Callable[[], None], **settings: object) -> Outcome:
    """A run of 1.5 s, during which the database changes."""

    def during(lab: Lab) -> None:
        lab.until("received", 50)
        change()

    parameters = {
        "test": 3,
        "payload": "small",
        "loop": "open",
        "rate": 200.0,
        "count": COUNT,
        "patience": 2.0,
        "sender_identity": "alpha-client",
        "receiver_identity": "beta-client",
        "broker_identity": "beta-broker",
    }
    return Lab(folder, during=during).run(**parameters | settings)


@pytest.mark.parametrize("reconnect", [0.0, 5.0])
def test_a_sender_moves_to_its_new_certificate_and_loses_nothing(
    states: States, reconnect: float, tmp_path: Path
) -> None:
    outcome = run(
        tmp_path / "run", lambda: states.named(states.alpha, "alpha-client"), reconnect=reconnect, numbered=True
    )
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
    outcome = run(tmp_path / "run", lambda: states.crl(states.alpha, "alpha-client"))
    assert outcome.failure is not None and "the certificate of alpha-client is revoked" in outcome.failure
    assert outcome.figures["sent"] < COUNT


def test_a_distrusted_root_ends_the_connection_of_its_clients(states: States, tmp_path: Path) -> None:
    def distrust() -> None:
        with states.store.change() as change:
            change.withdraw_trust(states.beta_trusts_alpha)

    outcome = run(tmp_path / "run", distrust)
    assert outcome.failure is not None and "amqp:unauthorized-access" in outcome.failure


def test_roles_keep_what_they_have_where_the_new_key_cannot_be_opened(states: States, tmp_path: Path) -> None:
    def change() -> None:
        named(states.store, states.alpha, states.alpha, "alpha-client", passphrase="no one is asked")

    outcome = run(tmp_path / "run", change)
    assert outcome.failure is None, outcome.failure
    (kept,) = outcome.events_named("identities kept")
    assert kept.source == "sender-0"
    assert kept.message.startswith("The sender keeps the identities that it has: ")
    assert "passphrase" in kept.message
    assert (outcome.figures["received"], outcome.figures["lost"]) == (COUNT, 0)


def test_a_change_that_is_no_business_of_the_run_disturbs_no_role(states: States, tmp_path: Path) -> None:
    outcome = run(
        tmp_path / "run", lambda: states.named(states.beta, "beta-other", CertificateProfile.TLS_SERVER), test=2
    )
    assert outcome.failure is None, outcome.failure
    assert not outcome.events_named("certificates changed") and not outcome.events_named("identities used")
