"""`labconsole broker`: the embedded broker as a server, for foreign tools and a second console."""

from __future__ import annotations

import argparse
import ipaddress
import sys
import threading

from labconsole.cli.exit_codes import FINISHED
from labconsole.cli.interrupts import interrupts
from labconsole.cli.secret_prompts import prompt
from labconsole.errors import UserError
from labconsole.safe_text import shown
from labconsole.security.identities import IdentityFiles, load_identity
from labconsole.security.lab_identities import BROKER, lab_identities
from labconsole.security.pki.identities import NamedIdentities
from labconsole.security.secrets import SecretSource
from labconsole_amqp.broker.embedded_broker import Broker, BrokerSettings
from labconsole_amqp.broker.queue import QueueLimits
from labconsole_amqp.broker.sasl import Access
from labconsole_amqp.link.tls import TlsSettings

_PORT = 5672
_DEFAULT_QUEUE = "labconsole"


def serve(arguments: argparse.Namespace) -> int:
    """Serve until an interrupt or SIGTERM. Raises UserError."""
    settings = _settings(arguments)
    broker = Broker(settings, lambda reason: print(f"Client refused: {shown(reason)}.", file=sys.stderr, flush=True))
    try:
        ports = broker.listen()
        with interrupts(threading.Event()) as interrupted:
            queues = ", ".join(settings.queues)
            for scheme, port in (("amqp", ports.plain), ("amqps", ports.tls)):
                if port is not None:
                    print(f"Ready: {scheme}://{_host(settings.host)}:{port}, queues: {queues}", flush=True)
            if settings.plain_port is not None and settings.access.anonymous and not _loopback(settings.host):
                print(
                    "Everybody who reaches this address may send and receive: use --tls, --user or --host 127.0.0.1.",
                    file=sys.stderr,
                )
            broker.serve(lambda: bool(interrupted), lambda: None)
        for name, count in broker.counts().items():
            left = broker.depths()[name]
            print(f"Stopped: {name}: {count.received} received, {count.delivered} delivered, {left} left.", flush=True)
    finally:
        broker.close()
    return FINISHED


def _settings(arguments: argparse.Namespace) -> BrokerSettings:
    secure = arguments.tls or any((arguments.identity, arguments.certificate, arguments.key, arguments.trust))
    plain_port = arguments.port
    if plain_port is None and not secure:
        plain_port = _PORT
    return BrokerSettings(
        queues=tuple(dict.fromkeys(arguments.queue)) or (_DEFAULT_QUEUE,),
        host=arguments.host,
        plain_port=plain_port,
        tls_port=arguments.tls_port if secure else None,
        tls=_tls(arguments) if secure else None,
        access=_access(arguments),
        limits=QueueLimits(messages=arguments.depth, max_message_size=arguments.max_message_size),
    )


def _access(arguments: argparse.Namespace) -> Access:
    if not arguments.user:
        return Access()
    source = SecretSource(passphrase_file=arguments.password_file)
    return Access(False, {arguments.user: source.resolve(f"user {arguments.user}", prompt).reveal()})


def _tls(arguments: argparse.Namespace) -> TlsSettings:
    identity = load_identity(_identity(arguments), "the broker", prompt)
    for note in identity.notes:
        print(note, file=sys.stderr)
    return TlsSettings(identity)


def _identity(arguments: argparse.Namespace) -> IdentityFiles:
    """The broker's files, with the authorities of its clients. Raises UserError."""
    if bool(arguments.certificate) != bool(arguments.key):
        raise UserError("A certificate needs its key: name both --certificate and --key.")
    if arguments.certificate:
        if arguments.trust is None:
            raise UserError(
                "The broker must know whose client certificates it accepts: name their authority by --trust."
            )
        return IdentityFiles(
            certificate=arguments.certificate,
            key=arguments.key,
            trust=arguments.trust,
            passphrase_file=arguments.passphrase_file,
        )
    if arguments.identity:
        files = NamedIdentities().files(arguments.identity)
        trust = arguments.trust or files.trust
        if trust is None:
            raise UserError(
                f"The State of the identity {arguments.identity} trusts no root: let it trust the clients' root on the "
                "page Certificates, or name their authority by --trust."
            )
        return files.model_copy(update={"trust": trust})
    lab = lab_identities()
    for note in lab.notes:
        print(note, file=sys.stderr)
    return lab.files(BROKER).model_copy(update={"trust": arguments.trust or lab.authority_file})


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
