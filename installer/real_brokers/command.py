"""The command line of `installer/brokers.py`: start, stop and status of a real broker."""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from filelock import FileLock, Timeout

from labconsole.cli.secret_prompts import prompt
from labconsole.errors import UserError
from labconsole.paths import data_dir
from labconsole.security.identities import (
    IdentityFiles,
    LoadedIdentity,
    load_certificates,
    load_identity,
    require_valid,
)
from labconsole.security.lab_identities import BROKER, STATE_A, STATE_B, lab_identities
from labconsole.security.secrets import SecretSource
from processes import SetupError, say
from real_brokers import server
from real_brokers.artemis import Artemis
from real_brokers.broker_j import BrokerJ
from real_brokers.rabbitmq import RabbitMq
from real_brokers.server import ServerState
from real_brokers.settings import HOST, BrokerSettings, RealBroker

BROKERS: dict[str, type[RealBroker]] = {"artemis": Artemis, "broker-j": BrokerJ, "rabbitmq": RabbitMq}
SOFTWARE = Path(__file__).resolve().parents[2] / "build" / "brokers"
"""Where archives are unpacked."""
NOT_RUNNING = 3
"""Exit code of `status`, as of a service."""
_QUEUE_NAME = re.compile(r"[\w.-]+", re.ASCII)
_CLIENT_NAME = re.compile(r"[^,\x00-\x1f]+")


def run(arguments: list[str]) -> int:
    """Carry out the command line; return the exit code."""
    options = _parser().parse_args(arguments)
    os.umask(0o077)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        folder = (options.dir or data_dir() / "brokers" / options.broker).absolute()
        broker = BROKERS[options.broker]()
        return {"start": _start, "stop": _stop, "status": _status}[options.action](broker, folder, options)
    except (SetupError, UserError) as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"the broker cannot be managed: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted.")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="brokers.py",
        description="Runs a real AMQP 1.0 broker on this computer (127.0.0.1), for trials with an external broker.",
    )
    parser.add_argument("broker", choices=BROKERS)
    parser.add_argument("action", choices=["start", "stop", "status"])
    parser.add_argument(
        "--dir", type=Path, help="folder of its state, messages and log; default: brokers/BROKER in the data directory"
    )
    group = parser.add_argument_group("start")
    group.add_argument("--port", type=_port, default=5672, help="port without TLS; 0: any free port (default: 5672)")
    group.add_argument("--tls-port", type=_port, default=5671, help="port with TLS; 0: any free port (default: 5671)")
    group.add_argument(
        "--queue", action="append", type=_queue, metavar="NAME", help="a queue, repeatable (default: labconsole)"
    )
    group.add_argument(
        "--depth",
        type=_count,
        default=20_000,
        metavar="MESSAGES",
        help="messages that a queue holds before senders wait; RabbitMQ has no such limit (default: 20000)",
    )
    group.add_argument(
        "--client",
        action="append",
        type=_client,
        metavar="NAME",
        help="common name of a client certificate that is accepted, repeatable (default: the lab's state-a, state-b)",
    )
    group.add_argument(
        "--certificate", type=Path, help="the broker's certificate with its chain, PEM (default: the lab's)"
    )
    group.add_argument("--key", type=Path, help="its key, PEM, 0600")
    group.add_argument("--passphrase-file", type=Path, help="passphrase of the key, 0600; else asked for")
    group.add_argument("--trust", type=Path, help="authorities of the clients' certificates, PEM (default: the lab CA)")
    group.add_argument("--user", help="accept only this user without TLS (SASL PLAIN), instead of any client")
    group.add_argument("--password-file", type=Path, help="the user's password, 0600; else asked for")
    group.add_argument("--foreground", action="store_true", help="stay until Ctrl+C, and stop the broker then")
    return parser


def _start(broker: RealBroker, folder: Path, options: argparse.Namespace) -> int:
    _require_private(folder)
    with _alone(folder):
        before = server.read_state(folder)
        if before is not None and before.is_running:
            raise SetupError(f"{before.title} is running already (pid {before.pid}, {folder}): stop it first.")
        if before is not None:
            say(f"{before.title} (pid {before.pid}) had ended without `stop`: what it has stored is kept.")
            server.end(folder, before)
        settings = _settings(folder, options)
        SOFTWARE.mkdir(parents=True, exist_ok=True)
        with FileLock(SOFTWARE / ".lock"):
            broker.install(SOFTWARE)
        state = server.start(broker, settings, SOFTWARE)
    print("\n".join(_description(state, folder)), flush=True)
    if not options.foreground:
        return 0
    try:
        server.wait(state)
    except KeyboardInterrupt:
        return _stop(broker, folder, options)
    if server.read_state(folder) is None:  # another process has stopped it
        return 0
    raise SetupError(f"{state.title} has ended by itself: see {folder / 'log'}.")


def _stop(_broker: RealBroker, folder: Path, _options: argparse.Namespace) -> int:
    if not folder.is_dir():
        print(f"Nothing was started in {folder}.")
        return 0
    with _alone(folder):
        state = server.read_state(folder)
        if state is None:
            print(f"Nothing runs in {folder}.")
            return 0
        was_running = state.is_running
        orderly = server.end(folder, state)
    if not was_running:
        print(f"{state.title} had ended without `stop`: what was left of it was removed.")
    else:
        print(f"{state.title} has stopped." if orderly else f"{state.title} did not stop in time and was killed.")
    return 0


def _status(_broker: RealBroker, folder: Path, _options: argparse.Namespace) -> int:
    state = server.read_state(folder) if folder.is_dir() else None
    if state is not None and state.is_running:
        print("\n".join(_description(state, folder)))
        return 0
    if state is None:
        print(f"Nothing runs in {folder}.")
    else:
        print(f"{state.title} does not run: it ended without `stop` (pid {state.pid}, started {state.started}).")
    return NOT_RUNNING


def _description(state: ServerState, folder: Path) -> Iterator[str]:
    """What an operator needs of a running broker, as lines."""
    if state.startup_s is None:
        yield f"{state.title} is starting (pid {state.pid})."
        return
    since = datetime.fromisoformat(state.started).astimezone(UTC)
    yield f"{state.title} {state.version} runs since {since:%Y-%m-%d %H:%M:%S} UTC (pid {state.pid})."
    yield f"Started in {state.startup_s:.1f} s; memory now: {state.memory() / 1e6:.0f} MB."
    login = f"user {state.user}" if state.user else "any client"
    yield f"Test 1: host {HOST}, port {state.port}, {login}."
    yield f"Tests 2-4: host {HOST}, port {state.tls_port}, client certificates: {', '.join(state.clients)}."
    yield f"Queues, as addresses: {', '.join(state.addresses)}."
    yield f"Folder: {folder}."


def _settings(folder: Path, options: argparse.Namespace) -> BrokerSettings:
    """What the options ask for. Raises UserError, SetupError."""
    identity, trust = _identity(options)
    require_valid(identity, "the broker")
    for note in identity.notes:
        say(note)
    password = None
    if options.user is not None:
        source = SecretSource(passphrase_file=options.password_file)
        password = source.resolve(f"user {options.user}", prompt).reveal()
    port, tls_port = _chosen_ports(options.port, options.tls_port)
    return BrokerSettings(
        folder=folder,
        port=port,
        tls_port=tls_port,
        queues=tuple(dict.fromkeys(options.queue or ["labconsole"])),
        depth=options.depth,
        clients=tuple(dict.fromkeys(options.client or [STATE_A, STATE_B])),
        identity=identity,
        trusted=tuple(load_certificates(trust)),
        user=options.user,
        password=password,
    )


def _identity(options: argparse.Namespace) -> tuple[LoadedIdentity, Path]:
    """The broker's identity, and the file of the authorities that it trusts. Raises UserError, SetupError."""
    if bool(options.certificate) != bool(options.key):
        raise SetupError("a certificate needs its key: name both --certificate and --key.")
    if not options.certificate:
        lab = lab_identities()
        for note in lab.notes:
            say(note)
        return lab.identity(BROKER), options.trust or lab.authority_file
    if not options.trust or not options.client:
        raise SetupError(
            "name the authority of the clients' certificates by --trust, and their common names by --client."
        )
    files = IdentityFiles(
        certificate=options.certificate, key=options.key, trust=options.trust, passphrase_file=options.passphrase_file
    )
    return load_identity(files, "the broker", prompt), options.trust


def _chosen_ports(port: int, tls_port: int) -> tuple[int, int]:
    """The ports, with free ones in place of 0; both are chosen before either is used."""
    sockets = [socket.create_server((HOST, 0)) for wanted in (port, tls_port) if not wanted]
    free = iter([int(sock.getsockname()[1]) for sock in sockets])
    for sock in sockets:
        sock.close()
    return port or next(free), tls_port or next(free)


def _require_private(folder: Path) -> None:
    """Create the folder, or see that only its owner can read it. Raises SetupError, OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.name == "posix" and folder.stat().st_mode & 0o077:
        raise SetupError(f"others can read {folder}: make it yours alone with chmod 700, or name another one by --dir.")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Raises SetupError: another start or stop of this folder is in progress."""
    try:
        with FileLock(folder / ".lock", timeout=0, mode=0o600):
            yield
    except Timeout as error:
        raise SetupError(f"another start or stop is in progress in {folder}: wait until it is done.") from error


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _port(text: str) -> int:
    number = _number(text)
    if not 0 <= number <= 65_535:
        raise argparse.ArgumentTypeError(f"{text} is not a port: give 0 to 65535")
    return number


def _count(text: str) -> int:
    number = _number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return number


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is not a number") from error


def _queue(text: str) -> str:
    if not _QUEUE_NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text}: a queue's name has letters, digits, dots, hyphens and underscores")
    return text


def _client(text: str) -> str:
    if not _CLIENT_NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text}: a client's name has no comma and no control character")
    return text
