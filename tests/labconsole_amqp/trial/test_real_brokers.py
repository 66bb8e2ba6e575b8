"""Trials through each real broker, as an operator starts it: nothing is set but host, port and queue.

RabbitMQ is in CI's set, which also needs a user in Test 1; the brokers in Java are nightly: they are downloaded once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from labconsole.errors import UserError
from labconsole.paths import HOME_VARIABLE
from labconsole.security.identities import IdentityFiles
from labconsole.security.lab_identities import lab_identities
from labconsole_amqp.link.connection import connect
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.connection_check import check_connection
from tests.labconsole_amqp.lab import Outcome, run
from tests.labconsole_amqp.lab_pki import LabCa, tls_of
from tests.labconsole_amqp.real_broker import USER, RealBroker, missing
from tests.labconsole_amqp.restart_in_run import assert_nothing_lost, run_over_restart
from tests.labconsole_amqp.shared_rabbitmq import NAMED_QUEUES, SharedRabbitmq


def _kind(name: str, *marks: pytest.MarkDecorator) -> Any:
    return pytest.param(name, marks=[*marks, pytest.mark.skipif(missing(name) is not None, reason=str(missing(name)))])


pytestmark = pytest.mark.usefixtures("lab_home")

KINDS = [_kind("rabbitmq"), _kind("artemis", pytest.mark.nightly), _kind("broker-j", pytest.mark.nightly)]
LIMITS = {"rabbitmq": "any size is", "artemis": "any size is", "broker-j": "up to 536,870,912 B are"}


@dataclass(frozen=True)
class BrokerUnderTest:
    """A running broker with the lab's identity, which accepts the lab's clients."""

    broker: RealBroker
    unknown_name: IdentityFiles
    """A client whose authority the broker trusts, but whose name it does not know."""


@pytest.fixture(scope="module", params=KINDS)
def tested(
    request: pytest.FixtureRequest, _shared_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerUnderTest]:
    """RabbitMQ is that of all tests, with a user; the others accept any client without TLS."""
    if request.param == "rabbitmq":
        rabbitmq: SharedRabbitmq = request.getfixturevalue("rabbitmq")
        yield BrokerUnderTest(rabbitmq.broker, rabbitmq.unknown)
        return
    folder = tmp_path_factory.mktemp("real")
    clients = LabCa(tmp_path_factory.mktemp("clients"), "Clients' CA")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(_shared_home))
        trust = folder / "trust.pem"
        trust.write_text(lab_identities().authority_file.read_text() + clients.ca_file.read_text())
        running = RealBroker(request.param, folder, queues=NAMED_QUEUES, trust=trust, anonymous=True)
        running.start()
    try:
        yield BrokerUnderTest(running, clients.issue("state-x"))
    finally:
        running.stop()


@pytest.fixture
def broker(tested: BrokerUnderTest) -> RealBroker:
    return tested.broker


def settings(broker: RealBroker, test: int, queue: str = "labconsole", **more: Any) -> dict[str, Any]:
    """What an operator enters."""
    port = broker.port if test == 1 else broker.tls_port
    if test == 1 and not broker.anonymous:
        more = {"username": USER, "password_file": str(broker.password_file), **more}
    return {"broker": "external", "port": port, "address": broker.address(queue), "test": test, **more}


def whole(outcome: Outcome, count: int) -> None:
    assert outcome.failure is None
    figures = outcome.figures
    assert figures["sent"] == figures["received"] == count
    assert [figures[name] for name in ("lost", "duplicated", "unknown", "failed_verifications")] == [0] * 4
    assert set(outcome.verdicts.values()) == {"pass"}


@pytest.mark.parametrize("test", (1, 2, 3, 4))
def test_each_test_runs(broker: RealBroker, test: int, tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", **settings(broker, test, str(test), count=500))
    whole(outcome, 500)
    assert {event.data["tls"] is not None for event in outcome.events_named("connected")} == {test >= 2}
    assert "labconsole-broker" not in {event.data["container"] for event in outcome.events_named("connected")}


def test_large_messages_pass(broker: RealBroker, tmp_path: Path) -> None:
    payload = tmp_path / "payload"
    payload.write_bytes(b"0123456789abcdef" * (20 * 65_536))
    whole(run(tmp_path / "run", **settings(broker, 2, "large", payload=str(payload), count=2)), 2)


def test_connection_test_reports_each_step(broker: RealBroker) -> None:
    reported: list[str] = []
    for test, login in ((1, "ANONYMOUS" if broker.anonymous else "PLAIN"), (2, "EXTERNAL")):
        reported.clear()
        asked = AmqpParameters.model_validate(settings(broker, test))
        check_connection(asked, lambda _: None, lambda role, check: reported.append(f"{role}: {check.sentence}"))
        text = re.sub(r"\d+\.\d ms", "N ms", "\n".join(reported))
        assert ("sender: TLSv1.3 with TLS_AES_256_GCM_SHA384 in N ms." in text) is (test == 2)
        assert f"receiver: Logged in by {login} in N ms. Broker: " in text
        assert f"receiver: May receive from the queue {broker.address('labconsole')} (N ms)." in text
        assert f"sender: Messages have 282 B, and {LIMITS[broker.kind]} accepted." in text
        assert f"The queue {broker.address('labconsole')} is empty." in text


def test_queue_that_is_missing_is_named(broker: RealBroker, tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", **settings(broker, 1, "no-such-queue", count=5))
    assert f"has no queue {broker.address('no-such-queue')}: create it there" in str(outcome.failure)


def test_clients_with_unknown_certificates_are_refused(tested: BrokerUnderTest, tmp_path: Path) -> None:
    lab_ca = lab_identities().authority_file
    unknown_ca = LabCa(tmp_path, "Unknown CA").issue("state-a")
    with pytest.raises(UserError, match=r"refused our client certificate|does not seem to accept our client cert"):
        connect(tested.broker.secure(tls_of(unknown_ca, trust=lab_ca)))
    with pytest.raises(UserError, match="does not let our client certificate in "):
        connect(tested.broker.secure(tls_of(tested.unknown_name, trust=lab_ca)))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_broker_is_stopped_and_started_in_mid_run(kind: str, tmp_path: Path) -> None:
    """Nightly: alone finds that Artemis or Broker-J lose durable messages over a restart.

    RabbitMQ is restarted in mid-run in CI by `test_rabbitmq_is_restarted_in_mid_run`.
    """
    with RealBroker(kind, tmp_path / "broker", anonymous=True) as broker:

        def restart() -> None:
            broker.stop()
            broker.start()

        assert_nothing_lost(run_over_restart(tmp_path / "run", settings(broker, 2, "q"), restart))
