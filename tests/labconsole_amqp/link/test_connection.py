"""Connecting: with and without TLS, timed, and every refusal is one clear sentence."""

from __future__ import annotations

import socket
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from labconsole.clock import now_ns
from labconsole.errors import UserError
from labconsole.security.identities import load_identity
from labconsole.security.secrets import Secret
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.choices import TlsVersion
from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.server_handshake import Access
from labconsole_amqp.link.tls import TlsSettings
from tests.labconsole_amqp.embedded_broker import RunningBroker, serving
from tests.labconsole_amqp.lab_pki import PASSPHRASE, LabCa, tls_of
from tests.labconsole_amqp.link_transfer import receive_all, send_all, template


@pytest.fixture(scope="module")
def tls_broker(pki: LabCa) -> Iterator[RunningBroker]:
    server = pki.issue("broker")
    tls = tls_of(server)
    with serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls, access=Access(users={"lab": "secret"}))) as running:
        yield running


def tls_endpoint(broker: RunningBroker, settings: TlsSettings, host: str = "127.0.0.1") -> Endpoint:
    assert broker.ports.tls is not None
    return Endpoint(host, broker.ports.tls, settings, connect_timeout_s=5)


@contextmanager
def broker_up_to(version: ssl.TLSVersion, pki: LabCa) -> Iterator[RunningBroker]:
    """A broker whose highest version of TLS is `version`."""
    server = pki.issue("broker of its time")
    tls = tls_of(server)
    with serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls)) as running:
        context = running.broker._context
        assert context is not None
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version, context.maximum_version = ssl.TLSVersion.MINIMUM_SUPPORTED, version
        yield running


class TestConnecting:
    def test_the_steps_are_timed(self, tls_broker: RunningBroker, pki: LabCa) -> None:
        client = pki.issue("timed")
        began = now_ns()
        with connect(tls_endpoint(tls_broker, tls_of(client))) as opened:
            took = now_ns() - began
            times = opened.times
            assert min(times.tcp_ns, times.tls_ns, times.sasl_ns, times.open_ns) > 0
            assert times.total_ns <= took
            assert opened.tls_version == "TLSv1.3"
            assert Sender(opened, "q").attach_ns > 0

    def test_an_encrypted_key_is_opened_with_the_passphrase(self, tls_broker: RunningBroker, pki: LabCa) -> None:
        client = pki.issue("encrypted", encrypted=True)
        settings = tls_of(client)
        assert PASSPHRASE not in repr(tls_endpoint(tls_broker, settings))
        connect(tls_endpoint(tls_broker, settings)).close()

    @pytest.mark.parametrize("passphrase", [None, "wrong"])
    def test_a_wrong_passphrase(self, tls_broker: RunningBroker, pki: LabCa, passphrase: str | None) -> None:
        client = pki.issue("locked", encrypted=True)
        secret = None if passphrase is None else Secret(passphrase)
        settings = TlsSettings(replace(load_identity(client, "State A", lambda _: Secret(PASSPHRASE)), secret=secret))
        with pytest.raises(UserError, match="check both files and the key's passphrase"):
            connect(tls_endpoint(tls_broker, settings))

    @pytest.mark.parametrize("version", TlsVersion)
    def test_both_tls_versions_are_spoken(self, pki: LabCa, version: TlsVersion) -> None:
        client = pki.issue("versioned")
        settings = tls_of(client, minimum=version)
        offers = ssl.TLSVersion.TLSv1_2 if version is TlsVersion.V1_2 else ssl.TLSVersion.TLSv1_3
        with broker_up_to(offers, pki) as broker, connect(tls_endpoint(broker, settings)) as opened:
            assert opened.tls_version == f"TLSv{version}"
            send_all(Sender(opened, "q"), template(), 100)
            receive_all(Receiver(opened, "q", templates=[template()]), 100)

    def test_user_and_password_are_accepted(self, tls_broker: RunningBroker) -> None:
        endpoint = tls_broker.plain
        connect(Endpoint(endpoint.host, endpoint.port, username="lab", password="secret")).close()

    def test_a_wrong_password(self, tls_broker: RunningBroker) -> None:
        endpoint = tls_broker.plain
        with pytest.raises(UserError, match="refused user lab: wrong user name or password"):
            connect(Endpoint(endpoint.host, endpoint.port, username="lab", password="wrong"))

    def test_a_mechanism_that_is_not_offered(self, broker: RunningBroker) -> None:
        with pytest.raises(UserError, match="does not offer SASL PLAIN"):
            connect(Endpoint("127.0.0.1", broker.plain.port, username="lab", password="secret"))

    def test_a_port_without_a_listener(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = sock.getsockname()[1]
        with pytest.raises(UserError, match=f"127.0.0.1:{port} refused the connection: is the broker running"):
            connect(Endpoint("127.0.0.1", port))

    def test_an_unknown_host(self) -> None:
        with pytest.raises(UserError, match=r"the host name nowhere\.invalid cannot be resolved"):
            connect(Endpoint("nowhere.invalid", 5672))

    def test_a_port_that_does_not_answer(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            endpoint = Endpoint("127.0.0.1", sock.getsockname()[1], connect_timeout_s=0.3)
            with pytest.raises(UserError, match="does not answer AMQP"):
                connect(endpoint)

    def test_a_port_that_speaks_something_else(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as sock:
            thread = threading.Thread(target=_answer, args=(sock, b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n"))
            thread.start()
            with pytest.raises(UserError, match=r"does not speak AMQP 1\.0"):
                connect(Endpoint("127.0.0.1", sock.getsockname()[1], connect_timeout_s=5))
            thread.join()

    def test_a_wrong_ca(self, tls_broker: RunningBroker, tmp_path: Path) -> None:
        settings = TlsSettings(trust=LabCa(tmp_path, "Another CA").ca_file)
        with pytest.raises(UserError, match=r"is not trusted by .*wrong CA file or foreign certificate"):
            connect(tls_endpoint(tls_broker, settings))

    def test_a_host_name_that_the_certificate_does_not_carry(self, tls_broker: RunningBroker, pki: LabCa) -> None:
        client = pki.issue("named")
        settings = tls_of(client, server_name="swim.example")
        with pytest.raises(UserError, match=r"is not for swim\.example"):
            connect(tls_endpoint(tls_broker, settings))

    def test_an_expired_server_certificate(self, pki: LabCa) -> None:
        server = pki.issue("old broker", days=(-20, -10))
        tls = tls_of(server)
        with (
            serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls)) as broker,
            pytest.raises(UserError, match=r"the certificate of .* has expired"),
        ):
            connect(tls_endpoint(broker, TlsSettings(trust=pki.ca_file)))

    def test_a_server_certificate_of_tomorrow(self, pki: LabCa) -> None:
        server = pki.issue("early broker", days=(1, 10))
        tls = tls_of(server)
        with (
            serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls)) as broker,
            pytest.raises(UserError, match="is not yet valid: check both clocks"),
        ):
            connect(tls_endpoint(broker, TlsSettings(trust=pki.ca_file)))

    @pytest.mark.parametrize(
        ("offers", "minimum", "sentence"),
        [
            (
                ssl.TLSVersion.TLSv1_2,
                TlsVersion.V1_3,
                r'does not speak TLS 1\.3: set "TLS from" \(tls_minimum\) to',
            ),
            (ssl.TLSVersion.TLSv1_1, TlsVersion.V1_2, r"speaks neither TLS 1\.2 nor 1\.3: it must be updated"),
        ],
    )
    def test_no_tls_version_in_common(
        self, pki: LabCa, offers: ssl.TLSVersion, minimum: TlsVersion, sentence: str
    ) -> None:
        settings = TlsSettings(trust=pki.ca_file, minimum=minimum)
        with broker_up_to(offers, pki) as broker, pytest.raises(UserError, match=sentence):
            connect(tls_endpoint(broker, settings))

    def test_a_certificate_can_be_trusted_itself_without_its_ca(self, pki: LabCa) -> None:
        """Two States without a common CA can trust the certificate of the other (WP/16, "Objective")."""
        server = pki.issue("peer broker")
        tls = tls_of(server)
        client = pki.issue("peer client")
        with serving(BrokerSettings(queues=("q",), tls_port=0, tls=tls)) as broker:
            pinned = tls_of(client, trust=server.certificate)
            connect(tls_endpoint(broker, pinned)).close()

    def test_no_client_certificate(self, tls_broker: RunningBroker, pki: LabCa) -> None:
        with pytest.raises(UserError, match="requires a client certificate"):
            connect(tls_endpoint(tls_broker, TlsSettings(trust=pki.ca_file)))

    def test_a_foreign_client_certificate(self, tls_broker: RunningBroker, pki: LabCa, tmp_path: Path) -> None:
        unknown = LabCa(tmp_path, "Another CA").issue("unknown")
        settings = tls_of(unknown, trust=pki.ca_file)
        with pytest.raises(UserError, match=r"refused our client certificate .*unknown\.pem: it does not know the CA"):
            connect(tls_endpoint(tls_broker, settings))

    def test_an_expired_client_certificate(self, tls_broker: RunningBroker, pki: LabCa) -> None:
        old = pki.issue("old client", days=(-20, -10))
        settings = tls_of(old)
        with pytest.raises(UserError, match=r"refused our client certificate .*: it has expired"):
            connect(tls_endpoint(tls_broker, settings))

    def test_tls_on_a_plain_port(self, broker: RunningBroker, pki: LabCa) -> None:
        with pytest.raises(UserError, match="does not speak TLS"):
            connect(Endpoint("127.0.0.1", broker.plain.port, TlsSettings(trust=pki.ca_file), connect_timeout_s=5))

    def test_no_tls_on_a_tls_port(self, tls_broker: RunningBroker) -> None:
        assert tls_broker.ports.tls is not None
        with pytest.raises(UserError, match="is a TLS port, and Test 1 has no TLS"):
            connect(Endpoint("127.0.0.1", tls_broker.ports.tls, connect_timeout_s=5))


def _answer(listener: socket.socket, answer: bytes) -> None:
    """Send something that is not AMQP, and wait until the client disconnects."""
    sock, _ = listener.accept()
    with sock:
        sock.sendall(answer)
        sock.settimeout(5)
        while sock.recv(4096):
            pass
