"""`labconsole broker`: serves other tools and consoles, prints its addresses, stops in order."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from labconsole.errors import UserError
from labconsole.security.lab_identities import STATE_A, lab_identities
from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.tls import TlsSettings
from tests.labconsole_amqp.command_line import run_command
from tests.labconsole_amqp.embedded_broker import broker_command
from tests.labconsole_amqp.lab import run
from tests.labconsole_amqp.lab_pki import LabCa, tls_of
from tests.labconsole_amqp.link_transfer import receive_all, send_all, template

pytestmark = pytest.mark.usefixtures("lab_home")


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_several_queues_and_stops_in_order(number: signal.Signals) -> None:
    with broker_command("--port", "0", "--queue", "one", "--queue", "two") as (process, ports):
        with connect(Endpoint("127.0.0.1", ports["amqp"])) as client:
            send_all(Sender(client, "one"), template(), 5)
            send_all(Sender(client, "two"), template(), 2)
            receive_all(Receiver(client, "two", templates=[template()]), 2)
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output.splitlines() == [
        "Stopped: one: 5 received, 0 delivered, 5 left.",
        "Stopped: two: 2 received, 2 delivered, 0 left.",
    ]
    assert errors == ""


def test_a_second_console_uses_it_over_tls_with_lab_identities(tmp_path: Path) -> None:
    with broker_command("--tls", "--tls-port", "0", "--port", "0") as (_, ports):
        outcome = run(tmp_path / "run", test=4, count=20, broker="external", port=ports["amqps"])
        assert outcome.failure is None
        assert (outcome.figures["received"], outcome.figures["failed_verifications"]) == (20, 0)
        connect(Endpoint("127.0.0.1", ports["amqp"])).close()


def test_identity_and_user_are_the_operators(pki: LabCa, tmp_path: Path) -> None:
    server, client = pki.issue("own broker"), pki.issue("own client")
    password = tmp_path / "password"
    password.touch(0o600)
    password.write_text("secret\n")
    files = ("--certificate", str(server.certificate), "--key", str(server.key), "--trust", str(pki.ca_file))
    login = ("--user", "lab", "--password-file", str(password))
    with broker_command("--tls", "--tls-port", "0", "--port", "0", *files, *login) as (_, ports):
        tls = tls_of(client)
        connect(Endpoint("127.0.0.1", ports["amqps"], tls)).close()
        connect(Endpoint("127.0.0.1", ports["amqp"], username="lab", password="secret")).close()
        with pytest.raises(UserError, match="wrong user name or password"):
            connect(Endpoint("127.0.0.1", ports["amqp"], username="lab", password="other"))
        lab = lab_identities().identity(STATE_A)
        foreign = TlsSettings(lab, trust=pki.ca_file)
        with pytest.raises(UserError, match="refused our client certificate"):
            connect(Endpoint("127.0.0.1", ports["amqps"], foreign))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--certificate", "a.pem"), "A certificate needs its key"),
        (("--certificate", "a.pem", "--key", "a.key"), "name their authority by --trust"),
        (("--user", "lab"), "There is no passphrase for user lab"),
        (("--host", "192.0.2.1", "--port", "0"), "cannot listen on 192.0.2.1:0"),
        (("--port", "65536"), "--port: input should be less than or equal to 65535"),
    ],
)
def test_bad_usage_is_one_sentence(
    arguments: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run_command(capsys, "broker", *arguments)
    assert done.code in (1, 2)
    assert sentence in done.err
    assert "Traceback" not in done.err
