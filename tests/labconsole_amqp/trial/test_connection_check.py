"""Test connection: what it reports of each step, as a command and in the form; the queue stays as it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from labconsole.errors import UserError
from labconsole.security.lab_identities import BROKER, lab_identities
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.broker.queue import QueueLimits
from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.server_handshake import Access
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.panel.connection_test import ConnectionTest
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.trial.connection_check import check_connection, step
from labconsole_ui.theme.theme import Theme, ThemeMode
from tests.helpers.authorities import new_authority
from tests.helpers.identities import EXPIRED, write_identity
from tests.labconsole_amqp.command_line import run_command
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving
from tests.labconsole_amqp.link_transfer import send_all, template

pytestmark = [
    pytest.mark.usefixtures("lab_home"),
    pytest.mark.qt_log_ignore("This plugin does not support"),
]


@pytest.fixture
def secure(lab_home: Path) -> Iterator[RunningBroker]:
    """A broker of the lab with TLS, and user `lab` without."""
    tls = TlsSettings(lab_identities().identity(BROKER))
    access = Access(anonymous=False, users={"lab": "secret"})
    with serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls, access=access)) as running:
        yield running


def parameters(broker: RunningBroker, test: int = 2, **more: object) -> AmqpParameters:
    port = broker.ports.plain if test == 1 else broker.ports.tls
    values = {"broker": "external", "port": port, "address": "q", "test": test, **more}
    return AmqpParameters.model_validate(values)


def steps(asked: AmqpParameters) -> list[str]:
    reported: list[str] = []
    check_connection(asked, lambda _: None, lambda end, check: reported.append(step(end, check)))
    dated = [re.sub(r"\d{4}-\d\d-\d\d \(\d+ days\)", "DATE", sentence) for sentence in reported]
    return [re.sub(r"\d+\.\d ms", "N ms", re.sub(r"Lab CA [0-9a-f]{8}", "Lab CA", sentence)) for sentence in dated]


def test_each_step_of_each_end_is_reported_and_the_queue_stays_as_it_was(secure: RunningBroker) -> None:
    with connect(Endpoint("127.0.0.1", secure.plain.port, username="lab", password="secret")) as client:
        send_all(Sender(client, "q"), template(), 3)
    name = f"127.0.0.1:{secure.ports.tls}"
    expected = []
    for role, verb, own in (("Receiver", "receive from", "state-b"), ("Sender", "send to", "state-a")):
        expected += [
            f"{role}, own certificate: {own}, by Lab CA, valid until DATE.",
            f"{role}, TCP: Connected to {name} in N ms.",
            f"{role}, TLS: TLSv1.3 with TLS_AES_256_GCM_SHA384 in N ms.",
            f"{role}, broker's certificate: broker, by Lab CA, valid until DATE.",
            f"! {role}, revocation: Whether the broker's certificate is revoked is not known: import a CRL of each of "
            "its CAs on the page Certificates, and choose an identity by name.",
            f"{role}, SASL: Logged in by EXTERNAL in N ms. Broker: labconsole-broker.",
            f"{role}, link: May {verb} the queue q (N ms).",
        ]
    expected.append("Sender, message size: Messages have 282 B, and any size is accepted.")
    reported = steps(parameters(secure))
    assert sorted(reported) == sorted([*expected, "! Receiver, queue depth: The queue q is not empty: 3 messages."])
    assert secure.broker.depths() == {"q": 3}


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"address": "other"}, "has no queue other: create it there"),
        ({"port": 1}, "refused the connection: is the broker running"),
        ({"host": "no-such-host.invalid"}, "cannot be resolved"),
        ({"test": 1, "username": "lab"}, "is a TLS port"),
    ],
)
def test_the_step_that_fails_is_one_sentence(
    secure: RunningBroker, tmp_path: Path, more: dict[str, object], sentence: str
) -> None:
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text("secret")
    with pytest.raises(UserError, match=sentence):
        steps(parameters(secure, **{"port": secure.ports.tls, "password_file": str(password), **more}))


def test_messages_that_are_too_large_are_found_before_a_run() -> None:
    settings = BrokerSettings(queues=("q",), limits=QueueLimits(max_message_size=1000))
    with serving(settings) as running:
        small = parameters(running, test=1, mode="sender", payload="fpl-tac")
        assert "Sender, message size: Messages have 282 B, and up to 1,000 B are accepted." in steps(small)
        with pytest.raises(UserError, match=r"message has 42,756 bytes, but .* takes at most 1,000"):
            steps(parameters(running, test=1, mode="sender", payload="fpl-fixm"))


@pytest.mark.parametrize("mode", ["sender", "receiver"])
def test_a_console_that_plays_one_end_learns_whether_clocks_can_be_compared(mode: str) -> None:
    name = mode.capitalize()
    with serving(BrokerSettings(queues=("q", "q.clock", "q.clock-reply"))) as running:
        with connect(running.plain) as client:
            send_all(Sender(client, "q.clock"), template(), 3)
        found = steps(parameters(running, test=1, mode=mode))
        assert found[-1] == (
            f"{name}, clock offset: The queues q.clock and q.clock-reply can be used: the offset is measured in the "
            "run."
        )
        assert running.broker.depths()["q.clock"] == 3
        other = steps(parameters(running, test=1, mode=mode, clock_queue="times"))[-1]
        assert other.startswith(f"! {name}, clock offset: Not measured. The broker 127.0.0.1:")
        assert "Create the queues times and times-reply at the broker" in other


def test_an_expired_certificate_is_named_with_its_date_before_connecting(secure: RunningBroker, tmp_path: Path) -> None:
    expired = write_identity(tmp_path, "expired", new_authority("Test CA"), validity=EXPIRED)
    own = {
        "mode": "sender",
        "sender_certificate": str(expired.certificate),
        "sender_key": str(expired.key),
        "sender_passphrase_file": str(expired.passphrase_file),
    }
    with pytest.raises(UserError, match=r"certificate of the sender, .*expired\.pem, expired on \d{4}-\d\d-\d\d"):
        steps(parameters(secure, **own))
    assert not secure.refused


def test_the_command_prints_the_steps(secure: RunningBroker, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("test-connection", "--host", "127.0.0.1", "--queue", "q")
    port = str(secure.ports.tls)
    done = run_command(capsys, *command, "--port", port, "--set", "test=2", "--set", "mode=receiver")
    assert (done.code, done.err) == (0, "")
    assert "Receiver, link: May receive from the queue q" in done.out
    wrong = run_command(capsys, *command, "--port", "70000")
    assert wrong.code == 2
    assert "--port: input should be less than or equal to 65535" in wrong.err
    faulty = [["--port", port, "--set", "test"], ["--port", port, "--set", "test=5"]]
    for arguments, sentence in zip(faulty, ("test is not of the form KEY=VALUE", "test: input should be"), strict=True):
        done = run_command(capsys, *command, *arguments)
        assert (done.code, done.out) == (2, "")
        assert sentence in done.err


@pytest.fixture
def offered(qtbot: QtBot, qapp: object) -> ConnectionTest:
    widget = ConnectionTest(Theme(qapp, ThemeMode.LIGHT), None)  # type: ignore[arg-type]
    qtbot.addWidget(widget)
    return widget


def test_the_button_shows_what_was_found_until_the_form_changes(
    qtbot: QtBot, secure: RunningBroker, offered: ConnectionTest
) -> None:
    offered.show_for(AmqpParameters())
    assert offered.isHidden(), "the embedded broker starts with the run"
    for asked, first in (
        (parameters(secure), "✓ Sender, own certificate: state-a"),
        (parameters(secure, address="other"), "✗ Sender, link: The broker 127.0.0.1"),
    ):
        offered.show_for(asked)
        assert not offered.isHidden()
        assert offered.result.isHidden()
        offered.show()
        offered.button.click()
        assert not offered.button.isEnabled()
        qtbot.waitUntil(offered.button.isEnabled)
        assert offered.text.text().splitlines()[0].startswith(first)
        assert offered.result.isVisible()
