"""A test of the connection to an external broker, as the ends of a run would make it: TCP, TLS, SASL, queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labconsole.errors import UserError
from labconsole.security.identities import load_identity, require_valid
from labconsole.security.secrets import Secret
from labconsole_amqp.choices import BrokerChoice, Mode
from labconsole_amqp.link.connection import Connection, connect
from labconsole_amqp.link.queue_probe import probe_queue_depth, try_attach
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.roles.link_role import full_sentence
from labconsole_amqp.roles.role_settings import endpoint, passphrase_request, tls_settings
from labconsole_amqp.trial.identities import RoleName, RunIdentities

_COUNTED = 1000


def check_connection(parameters: AmqpParameters, secrets: Mapping[str, Secret], say: Callable[[str], None]) -> None:
    """Connect each end that this console plays, attach it to the queue, and `say` each step that succeeded.

    `secrets` are those that the operator entered, by the keys of `secret_requests`. Nothing is sent; messages that are
    counted in the queue are released again. Takes at most about 12 s an end.

    Raises:
        UserError: the step that failed, and what to do, in one sentence.
    """
    if parameters.broker is not BrokerChoice.EXTERNAL:
        raise UserError("The embedded broker starts with the run: choose an external broker to test the connection.")
    identities = RunIdentities(parameters)
    for role in identities.local_roles:
        broker = f"{parameters.host}:{parameters.port}"
        try:
            tls = _tls(parameters, identities, role, secrets) if parameters.tls else None
            with connect(endpoint(parameters, parameters.host, parameters.port, tls, secrets.get)) as connection:
                _report(role, connection, say)
                _try_queue(role, connection, parameters, say)
        except UserError as error:
            raise UserError(f"{role.capitalize()}: {full_sentence(str(error), broker)}") from error


def _tls(
    parameters: AmqpParameters, identities: RunIdentities, role: RoleName, secrets: Mapping[str, Secret]
) -> TlsSettings | None:
    files = identities.files(role)
    request = passphrase_request(files, f"the {role}")
    identity = load_identity(files, f"the {role}", lambda _: secrets.get(request.key))
    require_valid(identity, f"the {role}")
    return tls_settings(identity, parameters, identities.server_name)


def _report(role: RoleName, connection: Connection, say: Callable[[str], None]) -> None:
    times, endpoint = connection.times, connection.endpoint
    name = role.capitalize()
    say(f"{name}: TCP connection to {endpoint.name} in {times.tcp_ns / 1e6:.1f} ms.")
    if connection.tls_version is not None:
        say(f"{name}: {connection.tls_version} with {connection.cipher} in {times.tls_ns / 1e6:.1f} ms.")
    container = f" Broker: {connection.container}." if connection.container else ""
    login_ns = times.sasl_ns + times.open_ns
    say(f"{name}: logged in by SASL {endpoint.mechanism} in {login_ns / 1e6:.1f} ms.{container}")


def _try_queue(role: RoleName, connection: Connection, parameters: AmqpParameters, say: Callable[[str], None]) -> None:
    verb = "send to" if role == "sender" else "receive from"
    attach_ns = try_attach(connection, parameters.address, "sender" if role == "sender" else "receiver")
    say(f"{role.capitalize()}: may {verb} the queue {parameters.address} ({attach_ns / 1e6:.1f} ms).")
    if role == ("sender" if parameters.mode is Mode.SENDER else "receiver") and parameters.mode is not Mode.RECEIVER:
        depth = probe_queue_depth(connection, parameters.address, _COUNTED)
        count = f"{_COUNTED:,} messages or more" if depth == _COUNTED else f"{depth:,} messages"
        say("The queue is empty." if not depth else f"The queue is not empty: {count}.")
