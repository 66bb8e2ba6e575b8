"""The connection test to an external broker as an operation: TCP, TLS, SASL and queue, as in a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, ValidationError

from labconsole.errors import UserError
from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole.model.validation_faults import fault_sentence
from labconsole.profiles.profile import override
from labconsole.profiles.profile_file import ProfileError
from labconsole.security.identities import load_identity, require_valid
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole.security.x509.names import short_name
from labconsole.security.x509.validation.judgement import Purpose
from labconsole_amqp.choices import BrokerChoice, Mode
from labconsole_amqp.link.connection import Connection, connect
from labconsole_amqp.link.queue_probe import probe_queue_depth, try_attach
from labconsole_amqp.link.sender import too_large
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.roles.link_role import PROBED_MESSAGES, full_sentence
from labconsole_amqp.roles.role_settings import endpoint, passphrase_request, tls_settings
from labconsole_amqp.trial.identities import RoleName, RunIdentities, secret_requests
from labconsole_amqp.wire.envelope import Protection
from labconsole_amqp.wire.payload import load_payload


def _with_key(settings: tuple[str, ...]) -> tuple[str, ...]:
    wrong = next((setting for setting in settings if "=" not in setting.lstrip("=")), None)
    if wrong is not None:
        raise ValueError(f"{wrong} is not of the form KEY=VALUE")
    return settings


class ConnectionParameters(Parameters):
    """An external broker, its queue, and other parameters of a run."""

    host: str = parameter("Host", "Host name or address of the broker", min_length=1)
    port: int = parameter("Port", "Its port", ge=1, le=65_535)
    queue: str = parameter("Queue", "Queue, as the broker spells it", min_length=1, metavar="ADDRESS")
    settings: Annotated[tuple[str, ...], AfterValidator(_with_key)] = parameter(
        "Other parameters",
        "Another parameter of a run, as for `labconsole run`: test=2 for TLS, username, mode, sender_identity ...",
        default=(),
        option="--set",
        metavar="KEY=VALUE",
        empty="None",
    )

    @classmethod
    def of_run(cls, parameters: AmqpParameters) -> Self:
        """The test of the connection that a run with `parameters` would make."""
        values = parameters.model_dump(mode="json", exclude={"host", "port", "address"}, exclude_defaults=True)
        settings = tuple(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in values.items())
        return cls(host=parameters.host, port=parameters.port, queue=parameters.address, settings=settings)

    def run_parameters(self) -> AmqpParameters:
        """The parameters of a run through this broker. Raises ProfileError."""
        given = dict(setting.split("=", 1) for setting in self.settings)
        values = {key.strip(): override(text.strip(), key.strip(), AmqpParameters) for key, text in given.items()}
        own = {"host": self.host, "port": self.port, "address": self.queue, "broker": BrokerChoice.EXTERNAL}
        try:
            return AmqpParameters.model_validate({**values, **own})
        except ValidationError as error:
            raise ProfileError(f"The connection cannot be tested: {fault_sentence(error, AmqpParameters)}") from error


class CheckConnection(Operation[ConnectionParameters]):
    """Connects each end that this console plays to an external broker, and attaches it to the queue."""

    name: ClassVar[str] = "amqp.test-connection"
    title: ClassVar[str] = "Test connection"
    description: ClassVar[str] = (
        "Connects to an external broker as a run would, and reports TCP, TLS, the broker's certificate, SASL, the "
        "queue and the largest message. Nothing is sent."
    )
    parameters: ClassVar[type[Parameters]] = ConnectionParameters

    def secrets(self, parameters: ConnectionParameters) -> tuple[SecretRequest, ...]:
        return tuple(secret_requests(parameters.run_parameters()))

    def run(self, parameters: ConnectionParameters, context: OperationContext) -> Result:
        steps: list[str] = []

        def report(step: str) -> None:
            steps.append(step)
            context.say(step)

        check_connection(parameters.run_parameters(), context.secret, report)
        return Result((), {"steps": steps})


def check_connection(parameters: AmqpParameters, prompt: Prompt, report: Callable[[str], None]) -> None:
    """Connect each end of this console, attach it to the queue, and `report` each successful step.

    `prompt` returns the secrets that the operator entered, by the keys of `secret_requests`. Nothing is sent; messages
    that are counted in the queue are released again. Takes at most about 12 s an end.

    Raises:
        UserError: the step that failed, and what to do, in one sentence.
    """
    identities = RunIdentities(parameters)
    for role in identities.local_roles:
        broker = f"{parameters.host}:{parameters.port}"
        try:
            tls = _tls(parameters, identities, role, prompt) if parameters.tls else None
            with connect(endpoint(parameters, parameters.host, parameters.port, tls, prompt)) as connection:
                _report_connection(role, connection, report)
                if tls is not None:
                    report(f"{role.capitalize()}: {_broker_certificate(connection, tls)}")
                _try_queue(role, connection, parameters, report)
        except UserError as error:
            raise UserError(f"{role.capitalize()}: {full_sentence(str(error), broker)}") from error


def _tls(parameters: AmqpParameters, identities: RunIdentities, role: RoleName, prompt: Prompt) -> TlsSettings | None:
    files = identities.files(role)
    request = passphrase_request(files, f"the {role}")
    identity = load_identity(files, f"the {role}", lambda _: prompt(request.key))
    require_valid(identity, f"the {role}")
    return tls_settings(identity, parameters, identities.server_name)


def _report_connection(role: RoleName, connection: Connection, report: Callable[[str], None]) -> None:
    times, target = connection.times, connection.endpoint
    name = role.capitalize()
    report(f"{name}: TCP connection to {target.name} in {times.tcp_ns / 1e6:.1f} ms.")
    if connection.tls_version is not None:
        report(f"{name}: {connection.tls_version} with {connection.cipher} in {times.tls_ns / 1e6:.1f} ms.")
    container = f" Broker: {connection.container}." if connection.container else ""
    login_ns = times.sasl_ns + times.open_ns
    report(f"{name}: logged in by SASL {target.mechanism} in {login_ns / 1e6:.1f} ms.{container}")


def _broker_certificate(connection: Connection, tls: TlsSettings) -> str:
    """What a run would rely on about the broker's certificate, as a sentence."""
    presented = connection.peer_certificates
    leaf, now = presented[0], datetime.now(UTC)
    days = (leaf.not_valid_after_utc - now).days
    check = tls.revocation_check()
    revocation = "whether it is revoked is not known, without a CRL of each of its CAs"
    if check is not None and check.knows_all(presented, Purpose.TLS_SERVER):
        revocation = "by the CRLs it is not revoked"
    return (
        f"the broker's certificate is {short_name(leaf)}, by {short_name(leaf.issuer)}, valid until "
        f"{leaf.not_valid_after_utc:%Y-%m-%d} ({days} days); {revocation}."
    )


def _size(parameters: AmqpParameters, largest: int, broker: str) -> str:
    """Whether messages of this run are small enough, as a sentence. Raises UserError: they are not."""
    payload = load_payload(parameters.payload, as_string=parameters.protection is not Protection.SIGNED_ENCRYPTED)
    size = parameters.message_size(len(payload.data))
    if largest and size > largest:
        raise UserError(too_large(size, broker, largest))
    return f"messages have {size:,} B, and the broker takes {f'up to {largest:,} B' if largest else 'any size'}."


def _try_queue(
    role: RoleName, connection: Connection, parameters: AmqpParameters, report: Callable[[str], None]
) -> None:
    verb = "send to" if role == "sender" else "receive from"
    attach_ns, largest = try_attach(connection, parameters.address, "sender" if role == "sender" else "receiver")
    report(f"{role.capitalize()}: may {verb} the queue {parameters.address} ({attach_ns / 1e6:.1f} ms).")
    if role == "sender":
        report(f"Sender: {_size(parameters, largest, connection.endpoint.name)}")
    if role == ("sender" if parameters.mode is Mode.SENDER else "receiver") and parameters.mode is not Mode.RECEIVER:
        depth = probe_queue_depth(connection, parameters.address, PROBED_MESSAGES)
        count = f"{PROBED_MESSAGES:,} messages or more" if depth == PROBED_MESSAGES else f"{depth:,} messages"
        report("The queue is empty." if not depth else f"The queue is not empty: {count}.")
