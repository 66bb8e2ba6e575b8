"""The connection test to an external broker as an operation: TCP, TLS, SASL and queue, as in a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, ValidationError

from labconsole.errors import UserError
from labconsole.model.operation import Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole.model.validation_faults import fault_sentence
from labconsole.profiles.profile import override
from labconsole.profiles.profile_file import ProfileError
from labconsole.security.identities import LoadedIdentity, load_certificates, load_identity, require_valid
from labconsole.security.secrets import Prompt, SecretRequest
from labconsole_amqp.choices import BrokerChoice, Mode
from labconsole_amqp.link.connection import Connection, connect
from labconsole_amqp.link.queue_probe import probe_queue_depth, try_attach
from labconsole_amqp.parameters import AmqpParameters
from labconsole_amqp.preflight.checks import (
    Check,
    CheckName,
    CheckResult,
    Preflight,
    awaited_queue_check,
    certificate_check,
    clock_queues_check,
    connection_checks,
    depth_check,
    full_sentence,
    link_check,
    no_clock_queues_check,
    size_check,
)
from labconsole_amqp.roles.link_role import PROBED_MESSAGES
from labconsole_amqp.roles.role_settings import endpoint, passphrase_request, tls_settings
from labconsole_amqp.run_payloads import load_payloads
from labconsole_amqp.trial.identities import RoleName, RunIdentities, secret_requests

WARNING = "! "
"""What the sentence of a check with a warning begins with."""


def _with_key(settings: tuple[str, ...]) -> tuple[str, ...]:
    wrong = next((setting for setting in settings if "=" not in setting.lstrip("=")), None)
    if wrong is not None:
        raise ValueError(f"{wrong} is not of the form KEY=VALUE")
    return settings


class ConnectionParameters(Parameters):
    """An external broker, its queue, and other parameters of a run."""

    host: str = parameter("Host", "Host name or address of the broker", min_length=1)
    port: int = parameter("Port", "Its port", ge=1, le=65_535)
    queue: str = parameter("Queue", "Queue, or queues, as the broker spells them", min_length=1, metavar="ADDRESS")
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
    """Connects each end that this console plays to an external broker, and attaches it to its queues."""

    name: ClassVar[str] = "amqp.test-connection"
    title: ClassVar[str] = "Test connection"
    description: ClassVar[str] = (
        "Connects to an external broker as a run would, and reports the checks of a run's preflight: TCP, TLS, the "
        "broker's certificate, SASL, the queue and the largest message. Nothing is sent."
    )
    parameters: ClassVar[type[Parameters]] = ConnectionParameters

    def secrets(self, parameters: ConnectionParameters) -> tuple[SecretRequest, ...]:
        return tuple(secret_requests(parameters.run_parameters()))

    def run(self, parameters: ConnectionParameters, context: OperationContext) -> Result:
        found: list[tuple[RoleName, Check]] = []

        def report(end: RoleName, check: Check) -> None:
            found.append((end, check))
            if check.result is not CheckResult.NOT_APPLICABLE:
                context.say(step(end, check))

        check_connection(parameters.run_parameters(), context.secret, report)
        shown = [step(end, check) for end, check in found if check.result is not CheckResult.NOT_APPLICABLE]
        return Result((), {"steps": shown, "checks": [{"end": end, **check.to_json()} for end, check in found]})


def step(end: RoleName, check: Check) -> str:
    """A check of an end in one sentence."""
    mark = WARNING if check.result in (CheckResult.WARNING, CheckResult.UNKNOWN) else ""
    return f"{mark}{end.capitalize()}, {check.name}: {check.sentence}"


def check_connection(parameters: AmqpParameters, prompt: Prompt, report: Callable[[RoleName, Check], None]) -> None:
    """Connect each end of this console, attach it to each queue, and `report` each check of a run's preflight.

    `prompt` returns the secrets that the operator entered, by the keys of `secret_requests`. Nothing is sent; messages
    that are counted in the queue are released again. Takes at most about 12 s an end.

    Raises:
        UserError: the check that failed, which is not reported, and what to do, in one sentence.
    """
    identities = RunIdentities(parameters)
    for role in identities.local_roles:
        preflight = Preflight(partial(report, role))
        preflight.broker = f"{parameters.host}:{parameters.port}"
        try:
            _check_end(preflight, parameters, identities, role, prompt)
        except UserError as error:
            name = f", {preflight.failed.name}" if preflight.failed is not None else ""
            raise UserError(f"{role.capitalize()}{name}: {full_sentence(str(error), preflight.broker)}") from error


def _check_end(
    preflight: Preflight, parameters: AmqpParameters, identities: RunIdentities, role: RoleName, prompt: Prompt
) -> None:
    tls = None
    if parameters.tls:
        with preflight.checking(CheckName.OWN_CERTIFICATE):
            identity = _identity(identities, role, prompt)
        chain = load_certificates(identity.certificate_file)
        preflight.add(certificate_check(CheckName.OWN_CERTIFICATE, chain, datetime.now(UTC)))
        tls = tls_settings(identity, parameters, identities.server_name)
    target = endpoint(parameters, parameters.host, parameters.port, tls, prompt)
    with preflight.checking(CheckName.TCP):
        connection = connect(target)
    with connection:
        preflight.add(*connection_checks(connection, BrokerChoice.EXTERNAL))
        for address in parameters.addresses:
            with preflight.checking(CheckName.LINK):
                attach_ns, largest = try_attach(connection, address, role)
            preflight.add(link_check(role, address, attach_ns))
        if role == "sender":
            with preflight.checking(CheckName.MESSAGE_SIZE):
                payloads = load_payloads(parameters)
                size = parameters.message_size(len(payloads.largest))
                preflight.add(size_check(size, largest, target.name, drawn=not payloads.one))
        if parameters.mode is Mode.RECEIVER:
            preflight.add(awaited_queue_check())
        elif role == ("sender" if parameters.mode is Mode.SENDER else "receiver"):
            for address in parameters.addresses:
                with preflight.checking(CheckName.QUEUE_DEPTH):
                    depth = probe_queue_depth(connection, address, PROBED_MESSAGES)
                preflight.add(depth_check(address, depth, PROBED_MESSAGES))
        if parameters.mode is not Mode.BOTH and parameters.compare_clocks:
            preflight.add(_clock_queues(connection, parameters))


def _clock_queues(connection: Connection, parameters: AmqpParameters) -> Check:
    """Whether this console may send to the one queue and receive from the other one."""
    queues = parameters.clock_queues(parameters.addresses[0])
    kinds = ("sender", "receiver") if parameters.mode is Mode.SENDER else ("receiver", "sender")
    try:
        for address, kind in zip(queues, kinds, strict=True):
            try_attach(connection, address, kind)
    except UserError as error:
        return no_clock_queues_check(full_sentence(str(error), connection.endpoint.name), queues)
    return clock_queues_check(queues)


def _identity(identities: RunIdentities, role: RoleName, prompt: Prompt) -> LoadedIdentity:
    files = identities.files(role)
    request = passphrase_request(files, f"the {role}")
    identity = load_identity(files, f"the {role}", lambda _: prompt(request.key))
    require_valid(identity, f"the {role}")
    return identity
