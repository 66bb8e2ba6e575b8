"""`labconsole broker`: the embedded broker as a server for other tools and consoles, as an operation."""

from __future__ import annotations

import ipaddress
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import ClassVar

from labconsole.errors import UserError
from labconsole.model.operation import HomePath, Operation, OperationContext, Result
from labconsole.model.parameters import Parameters, parameter
from labconsole.safe_text import shown
from labconsole.security.identities import IdentityFiles, load_identity
from labconsole.security.key_files import is_encrypted
from labconsole.security.lab_identities import BROKER, lab_identities
from labconsole.security.pki.identities import NamedIdentities
from labconsole.security.pki.reader import PkiReader
from labconsole.security.secrets import SecretRequest, SecretSource
from labconsole_amqp.broker.embedded_broker import Broker, BrokerSettings
from labconsole_amqp.broker.queue import QueueLimits
from labconsole_amqp.link.server_handshake import Access
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.two_console_parameters import TwoConsoleParameters

_LOOK_S = 1.0
_PLAIN_PORT = 5672
_DEFAULT_QUEUE = "labconsole"
_TLS, _LOGIN = "TLS", "Login without TLS"


class BrokerParameters(Parameters):
    """What the broker listens on, which queues it has, and which clients it accepts."""

    host: str = parameter("Host", "Address to listen on", default="127.0.0.1", min_length=1)
    port: int | None = parameter(
        "Port",
        "Port without TLS; not given: 5672, none with TLS; 0: any free port",
        default=None,
        ge=0,
        le=65_535,
        kind="port",
        empty="5672 without TLS",
    )
    queue: tuple[str, ...] = parameter(
        "Queues", f"Queue to offer; none given: {_DEFAULT_QUEUE}", default=(), metavar="NAME", empty=_DEFAULT_QUEUE
    )
    depth: int = parameter(
        "Queue depth",
        "Messages that a queue holds before it stops giving credit",
        default=20_000,
        ge=1,
        le=10_000_000,
        unit="messages",
    )
    max_message_size: int = parameter(
        "Largest message",
        "Largest message that is accepted; 0: no limit",
        default=128 * 1024 * 1024,
        ge=0,
        le=2**40,
        unit="B",
        metavar="BYTES",
    )
    tls: bool = parameter(
        "TLS",
        "Listen with TLS, by the lab identity unless another is named; clients must present a certificate of a trusted "
        "authority",
        default=False,
        group=_TLS,
    )
    tls_port: int = parameter(
        "TLS port", "Port with TLS; 0: any free port", default=5671, ge=0, le=65_535, kind="port", group=_TLS
    )
    identity: str | None = parameter(
        "Identity", "Name of an identity of the certificate database", default=None, group=_TLS, metavar="NAME"
    )
    certificate: HomePath | None = parameter(
        "Certificate", "The broker's certificate with its chain (PEM)", default=None, group=_TLS, kind="file"
    )
    key: HomePath | None = parameter("Private key", "Its key (PEM, 0600)", default=None, group=_TLS, kind="file")
    passphrase_file: HomePath | None = parameter(
        "Passphrase file",
        "Passphrase of the key (0600), else asked for",
        default=None,
        group=_TLS,
        kind="secret-file",
    )
    trust: HomePath | None = parameter(
        "Trusted authorities",
        "Authorities that clients' certificates come from (PEM)",
        default=None,
        group=_TLS,
        kind="file",
    )
    user: str | None = parameter(
        "User", "Accept only this user (SASL PLAIN), instead of all clients", default=None, group=_LOGIN, metavar="NAME"
    )
    password_file: HomePath | None = parameter(
        "Password file", "The user's password (0600), else asked for", default=None, group=_LOGIN, kind="secret-file"
    )

    @property
    def named_queues(self) -> tuple[str, ...]:
        """The queues to offer; each also has those over which two consoles compare their clocks."""
        return tuple(dict.fromkeys(self.queue)) or (_DEFAULT_QUEUE,)

    @property
    def secure(self) -> bool:
        """Whether there is a TLS port."""
        return self.tls or any((self.identity, self.certificate, self.key, self.trust))


class ServeBroker(Operation[BrokerParameters]):
    """Serves queues over AMQP 1.0 until it is cancelled."""

    name: ClassVar[str] = "amqp.serve-broker"
    title: ClassVar[str] = "Serve a broker"
    description: ClassVar[str] = "Serves queues over AMQP 1.0 for other tools and consoles, until it is cancelled."
    parameters: ClassVar[type[Parameters]] = BrokerParameters
    runs_until_cancelled: ClassVar[bool] = True

    def secrets(self, parameters: BrokerParameters) -> tuple[SecretRequest, ...]:
        return tuple(_secrets(parameters))

    def run(self, parameters: BrokerParameters, context: OperationContext) -> Result:
        settings = _settings(parameters, context)
        broker = Broker(settings, lambda reason: _notify(f"Client refused: {shown(reason)}."))
        try:
            ports = broker.listen()
            named = parameters.named_queues
            queues = ", ".join(named)
            for scheme, port in (("amqp", ports.plain), ("amqps", ports.tls)):
                if port is not None:
                    context.say(f"Ready: {scheme}://{_host(settings.host)}:{port}, queues: {queues}")
            if settings.plain_port is not None and settings.access.anonymous and not _is_loopback(settings.host):
                _notify(
                    "Any client that reaches this address may send and receive: use --tls, --user or --host 127.0.0.1."
                )
            with _following_database(parameters, context, broker) as look:
                broker.serve(lambda: context.stop_requested, look)
            depths = broker.depths()
            data = {
                name: {"received": count.received, "delivered": count.delivered, "left": depths[name]}
                for name, count in broker.counts().items()
                if name in named or count.received
            }
        finally:
            broker.close()
        lines = (
            f"Stopped: {name}: {count['received']} received, {count['delivered']} delivered, {count['left']} left."
            for name, count in data.items()
        )
        return Result(tuple(lines), {"queues": data})


@contextmanager
def _following_database(
    parameters: BrokerParameters, context: OperationContext, broker: Broker
) -> Iterator[Callable[[], None]]:
    """What the broker calls often: it looks every second whether the database has changed what the broker uses.

    Then open connections are judged again. Nothing is done for an identity that is not one of the database.
    """
    if not parameters.identity:
        yield lambda: None
        return
    with PkiReader.open() as reader:
        seen, files, due_s = reader.snapshot(), _chosen_identity(parameters), 0.0

        def look() -> None:
            nonlocal seen, files, due_s
            if (now_s := time.monotonic()) < due_s:
                return
            due_s = now_s + _LOOK_S
            try:
                if (snapshot := reader.snapshot()) is seen:
                    return
                seen, chosen = snapshot, _chosen_identity(parameters)
                if chosen != files:
                    broker.use(_tls(parameters, context))
                    files = chosen
                    _notify("The certificate database has changed: open connections were judged again.")
            except UserError as error:
                _notify(f"The broker keeps what it has: {error}")

        yield look


def _secrets(parameters: BrokerParameters) -> Iterator[SecretRequest]:
    if parameters.secure and (files := _chosen_identity(parameters)) is not None and is_encrypted(files.key):
        yield _passphrase_request(files)
    if parameters.user:
        yield _password_request(parameters)


def _passphrase_request(files: IdentityFiles) -> SecretRequest:
    return SecretRequest("key", f"the key of the broker, {files.key}", files.secret_source)


def _password_request(parameters: BrokerParameters) -> SecretRequest:
    return SecretRequest("password", f"user {parameters.user}", SecretSource(passphrase_file=parameters.password_file))


def _settings(parameters: BrokerParameters, context: OperationContext) -> BrokerSettings:
    """The settings of the broker, its secrets resolved. Raises UserError."""
    named = parameters.named_queues
    clock_queues = chain.from_iterable(map(TwoConsoleParameters().clock_queues, named))
    plain_port = _PLAIN_PORT if parameters.port is None and not parameters.secure else parameters.port
    access = Access()
    if parameters.user:
        request = _password_request(parameters)
        access = Access(False, {parameters.user: request.resolve(lambda _: context.secret(request.key)).reveal()})
    return BrokerSettings(
        queues=tuple(dict.fromkeys((*named, *clock_queues))),
        host=parameters.host,
        plain_port=plain_port,
        tls_port=parameters.tls_port if parameters.secure else None,
        tls=_tls(parameters, context) if parameters.secure else None,
        access=access,
        limits=QueueLimits(messages=parameters.depth, max_message_size=parameters.max_message_size),
    )


def _tls(parameters: BrokerParameters, context: OperationContext) -> TlsSettings:
    notes: tuple[str, ...] = ()
    files = _chosen_identity(parameters)
    if files is None:
        lab = lab_identities()
        files, notes = lab.files(BROKER), lab.notes
    request = _passphrase_request(files)
    identity = load_identity(files, "the broker", lambda _: context.secret(request.key))
    for note in (*notes, *identity.notes):
        _notify(note)
    return TlsSettings(identity, parameters.trust)


def _chosen_identity(parameters: BrokerParameters) -> IdentityFiles | None:
    """The files of the identity that the parameters name; None: the lab's. Raises UserError."""
    certificate, key, trust = parameters.certificate, parameters.key, parameters.trust
    if bool(certificate) != bool(key):
        raise UserError("A certificate needs its key: name both --certificate and --key.")
    if certificate and key:
        if trust is None:
            raise UserError(
                "The broker must know whose client certificates it accepts: name their authority by --trust."
            )
        return IdentityFiles(certificate=certificate, key=key, trust=trust, passphrase_file=parameters.passphrase_file)
    if not parameters.identity:
        return None
    files = NamedIdentities().files(parameters.identity)
    if trust is None and files.trust is None:
        raise UserError(
            f"The State of the identity {parameters.identity} trusts no root: let it trust the clients' root on the "
            "page Certificates, or name their authority by --trust."
        )
    return files


def _notify(sentence: str) -> None:
    """Show a sentence at once on standard error, apart from the lines that scripts read."""
    print(sentence, file=sys.stderr, flush=True)


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
