"""Certificates that a CA has revoked: refused on each side after the TLS handshake, with the reason."""

from __future__ import annotations

import base64
import socket
import ssl
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from proton import ConnectionException, Message, SSLDomain
from proton.utils import BlockingConnection, LinkDetached

from labconsole.errors import UserError
from labconsole.security.identities import IdentityFiles
from labconsole.security.lab_identities import lab_identities
from labconsole.security.pki.identities import NamedIdentities
from labconsole.security.secrets import Secret
from labconsole.security.x509.crl_issuing import issue_crl
from labconsole.security.x509.validity import Validity
from labconsole_amqp.broker.embedded_broker import BrokerSettings
from labconsole_amqp.link.connection import Connection, Endpoint, connect
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.preflight.checks import Check, CheckName, CheckResult
from labconsole_amqp.trial.connection_check import check_connection
from tests.labconsole_amqp.embedded_broker import RunningBroker, broker_command, serving
from tests.labconsole_amqp.lab import Lab
from tests.labconsole_amqp.run_judgements import refusals
from tests.labconsole_amqp.states import States


def broker(states: States) -> BrokerSettings:
    return BrokerSettings(queues=("q",), plain_port=None, tls_port=0, tls=states.tls("beta-broker"))


def endpoint(running: RunningBroker, states: States, name: str) -> Endpoint:
    assert running.ports.tls is not None
    return Endpoint("127.0.0.1", running.ports.tls, states.tls(name))


def test_broker_refuses_a_revoked_client_with_the_reason_and_no_other_one(states: States) -> None:
    states.crl(states.alpha, "alpha-client")
    with serving(broker(states)) as running:
        with pytest.raises(UserError, match=r"unauthorized-access \(the certificate of alpha-client is revoked"):
            connect(endpoint(running, states, "alpha-client")).close()
        assert running.refused == {"the certificate of alpha-client is revoked": 1}
        for name in ("alpha-second", "beta-client"):
            connect(endpoint(running, states, name)).close()


def test_an_open_connection_is_judged_again_and_a_refused_client_learns_why(states: States) -> None:
    with serving(broker(states)) as running:
        names = ("alpha-client", "alpha-second", "beta-client")
        with ExitStack() as stack:
            connections = {name: connect(endpoint(running, states, name)) for name in names}
            for one in connections.values():
                stack.callback(one.close)
            states.crl(states.alpha, "alpha-client")
            running.use(states.tls("beta-broker"))
            with pytest.raises(UserError, match=r"unauthorized-access \(the certificate of alpha-client is revoked"):
                turns(connections["alpha-client"])
            for name in ("alpha-second", "beta-client"):
                turns(connections[name], seconds=0.2)
            assert running.refused == {"the certificate of alpha-client is revoked": 1}
            # A distrusted root needs no CRL.
            with states.store.change() as change:
                change.withdraw_trust(states.beta_trusts_alpha)
            running.use(states.tls("beta-broker"))
            with pytest.raises(UserError, match="unauthorized-access"):
                turns(connections["alpha-second"])
            turns(connections["beta-client"], seconds=0.2)


def test_the_broker_command_follows_the_certificate_database(states: States) -> None:
    with broker_command("--identity", "beta-broker", "--tls-port", "0") as (process, ports):
        at = Endpoint("127.0.0.1", ports["amqps"], states.tls("alpha-client"))
        with connect(at) as revoked, connect(replace(at, tls=states.tls("alpha-second"))) as other:
            states.crl(states.alpha, "alpha-client")
            with pytest.raises(UserError, match=r"unauthorized-access \(the certificate of alpha-client is revoked"):
                turns(revoked, seconds=30)
            turns(other, seconds=0.2)
        with pytest.raises(UserError, match="alpha-client is revoked"):
            connect(at).close()
        # Its own certificate is of no use any more: it keeps what it has, and says so.
        states.crl(states.beta, "beta-broker")
        assert process.stderr is not None
        sentences = [process.stderr.readline() for _ in range(4)]
    assert "Client refused: the certificate of alpha-client is revoked.\n" in sentences
    assert "The certificate database has changed: open connections were judged again.\n" in sentences
    assert sentences[-1].startswith(
        "The broker keeps what it has: The certificate of the identity beta-broker is of no"
    )


def turns(connection: Connection, seconds: float = 10.0) -> None:
    """Let a connection work for a time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        connection.pump(0.05)
        connection.check()


def test_foreign_client_with_a_revoked_certificate_is_told_why(states: States) -> None:
    """Proton's own client, which has nothing to do with ours."""
    states.crl(states.alpha, "alpha-client")
    with serving(broker(states)) as running, pytest.raises(ConnectionException, match="alpha-client is revoked"):
        foreign(running, states.files("alpha-client")).close()


def test_foreign_client_with_an_open_connection_learns_that_it_is_revoked(states: States) -> None:
    files = states.files("alpha-client")
    with serving(broker(states)) as running:
        client = foreign(running, files)
        sender = client.create_sender("q")
        sender.send(Message(body="before"))
        states.crl(states.alpha, "alpha-client")
        running.use(states.tls("beta-broker"))
        with pytest.raises((ConnectionException, LinkDetached), match="alpha-client is revoked"):
            sender.send(Message(body="after"))
        assert running.broker.depths() == {"q": 1}


def foreign(running: RunningBroker, files: IdentityFiles) -> BlockingConnection:
    """Proton's own client with an identity."""
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_credentials(str(files.certificate), str(files.key), _passphrase(files))
    domain.set_trusted_ca_db(str(files.trust))
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
    return BlockingConnection(f"amqps://127.0.0.1:{running.ports.tls}", ssl_domain=domain, timeout=5)


def test_client_refuses_a_revoked_broker(states: States) -> None:
    states.crl(states.beta, "beta-broker")
    refusal = "cannot be trusted: the certificate of beta-broker is revoked"
    with serving(broker(states)) as running, pytest.raises(UserError, match=refusal):
        connect(endpoint(running, states, "alpha-client"))


def test_crl_that_is_out_of_date_refuses_what_it_may_have_revoked(states: States) -> None:
    now = datetime.now(UTC)
    old = issue_crl(states.alpha.issuer, [], 1, Validity(now - timedelta(days=60), now - timedelta(days=30)))
    with states.store.change() as change:
        change.add_crl(old, states.alpha.root.id)
    with serving(broker(states)) as running, pytest.raises(UserError, match="unauthorized-access"):
        connect(endpoint(running, states, "alpha-client")).close()


def test_certificates_that_cannot_be_read_are_refused_and_end_no_broker(states: States, tmp_path: Path) -> None:
    """OpenSSL ignores a certificate that is not in the chain; of version 5, `cryptography` does not read it."""
    states.crl(states.alpha)
    files = states.files("alpha-client")
    extra = bytearray(states.beta.root.certificate.public_bytes(Encoding.DER))
    version = extra.index(bytes.fromhex("a003020102")) + 4
    extra[version] = 4
    text = base64.encodebytes(bytes(extra)).decode()
    chain = tmp_path / "chain.pem"
    chain.write_text(files.certificate.read_text() + f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n")
    context = ssl.create_default_context(cafile=str(files.trust))
    context.check_hostname = False
    context.load_cert_chain(chain, files.key, lambda: _passphrase(files))
    with serving(broker(states)) as running:
        assert running.ports.tls is not None
        plain = socket.create_connection(("127.0.0.1", running.ports.tls), 5)
        with context.wrap_socket(plain) as client:
            client.sendall(b"AMQP\x03\x01\x00\x00")
            assert client.recv(8)[:4] == b"AMQP"
        connect(endpoint(running, states, "alpha-client")).close()


def test_trusted_authority_that_is_named_replaces_the_states_for_crls_too(states: States) -> None:
    """Alpha's CA is trusted by a file alone: its State's trust would not lead to it."""
    states.crl(states.beta)
    with states.store.change() as change:
        change.withdraw_trust(states.beta_trusts_alpha)
    root = states.files("alpha-client").trust
    settings = states.tls("beta-broker")
    assert root is not None
    named = replace(broker(states), tls=replace(settings, trust=root))
    with serving(named) as running:
        connect(endpoint(running, states, "alpha-client")).close()


def test_without_a_crl_nothing_counts_as_revoked(states: States) -> None:
    assert states.files("alpha-client").crls is None
    with serving(broker(states)) as running:
        connect(endpoint(running, states, "alpha-client")).close()


def test_crls_of_what_a_state_trusts_are_among_its_files(states: States) -> None:
    states.crl(states.alpha)
    states.crl(states.beta, "beta-client")
    crls = states.files("alpha-client").crls
    assert crls is not None
    found = x509.load_pem_x509_crl(crls.read_bytes()), crls.read_bytes().count(b"BEGIN X509 CRL")
    assert found[1] == 2 and NamedIdentities().files("alpha-client").crls == crls


@pytest.mark.parametrize("known", [True, False])
def test_connection_test_says_whether_revocation_is_known(states: States, known: bool) -> None:
    states.crl(states.beta if known else states.alpha)
    settings = {"sender_identity": "alpha-client", "mode": "sender", "server_name": "localhost", "address": "q"}
    reported: dict[str, Check] = {}
    with serving(broker(states)) as running:
        asked = AmqpParameters.model_validate({**settings, "test": 2, "broker": "external", "port": running.ports.tls})
        check_connection(asked, lambda _: None, lambda _, check: reported.update({check.name: check}))
    certificate, revocation = reported[CheckName.CERTIFICATE], reported[CheckName.REVOCATION]
    assert certificate.sentence.startswith("beta-broker, by Beta Root CA, valid until ")
    assert revocation.result is (CheckResult.PASSED if known else CheckResult.WARNING)
    assert ("By the CRLs" if known else "import a CRL of each of its CAs") in revocation.sentence


def test_trial_refuses_the_messages_of_a_signer_that_was_revoked(states: States, tmp_path: Path) -> None:
    """The receiver knows the sender's certificate from a file: its State has the CRL."""
    sender = states.files("alpha-client")
    states.crl(states.alpha, "alpha-client")
    settings = {"receiver_identity": "beta-client", "broker_identity": "beta-broker"}
    settings |= {"sender_certificate": str(sender.certificate), "sender_key": str(sender.key)}
    settings |= {"sender_passphrase_file": str(sender.passphrase_file)}
    outcome = Lab(tmp_path / "run").run(test=3, count=5, payload="small", **settings)
    assert "the certificate of alpha-client is revoked" in str(outcome.failure)


def test_a_hardened_envelope_refuses_each_message_of_a_signer_that_was_revoked(states: States, tmp_path: Path) -> None:
    """The broker, the lab's, has no CRL; the receiver's State has it."""
    sender, receiver = states.files("alpha-client"), states.files("beta-client")
    states.crl(states.alpha, "alpha-client")
    assert receiver.trust is not None
    trust = tmp_path / "trust.pem"
    trust.write_bytes(receiver.trust.read_bytes() + lab_identities().authority_file.read_bytes())
    settings = {"receiver_identity": "beta-client", "trust": str(trust), "envelope": "compact"}
    settings |= {"sender_certificate": str(sender.certificate), "sender_key": str(sender.key)}
    settings |= {"sender_passphrase_file": str(sender.passphrase_file)}
    outcome = Lab(tmp_path / "run").run(test=3, count=5, payload="small", **settings)
    assert outcome.failure is None
    assert refusals(outcome) == {"signer's certificate refused": 5}
    assert outcome.verdicts["all messages were accepted"] == "fail"
    assert "the certificate of alpha-client is revoked" in outcome.events_named("refused")[0].message


def _passphrase(files: IdentityFiles) -> str:
    secret = files.secret_source.resolve("the test's key")
    assert isinstance(secret, Secret)
    return secret.reveal()
