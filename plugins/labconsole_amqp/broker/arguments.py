"""The arguments of `labconsole broker`; what it does is imported when it is called."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from labconsole.cli.command import Command


def _number(least: int, most: int) -> Callable[[str], int]:
    """An argument's type: a whole number from `least` to `most`."""

    def number(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or len(text) > 18 or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be a number from {least:,} to {most:,}")
        return int(text)

    return number


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this computer alone)")
    parser.add_argument(
        "--port",
        type=_number(0, 65535),
        metavar="N",
        help="port without TLS (default: 5672, none with --tls; 0: any free port)",
    )
    parser.add_argument(
        "--queue",
        action="append",
        default=[],
        metavar="NAME",
        help="queue to offer, again for each (default: labconsole)",
    )
    parser.add_argument(
        "--depth",
        type=_number(1, 10_000_000),
        default=20_000,
        metavar="N",
        help="messages that a queue holds (default: 20,000)",
    )
    parser.add_argument(
        "--max-message-size",
        type=_number(0, 2**40),
        default=128 * 1024 * 1024,
        metavar="BYTES",
        help="largest message (default: 128 MiB; 0: no limit)",
    )
    secure = parser.add_argument_group("TLS", "clients must show a certificate that a trusted authority has issued")
    secure.add_argument(
        "--tls", action="store_true", help="listen with TLS, by the lab identity unless others are named"
    )
    secure.add_argument(
        "--tls-port", type=_number(0, 65535), default=5671, metavar="N", help="port with TLS (default: 5671)"
    )
    secure.add_argument("--identity", metavar="NAME", help="identity of the certificate database")
    secure.add_argument(
        "--certificate", type=Path, metavar="FILE", help="the broker's certificate with its chain (PEM)"
    )
    secure.add_argument("--key", type=Path, metavar="FILE", help="its key (PEM, 0600)")
    secure.add_argument("--passphrase-file", type=Path, metavar="FILE", help="passphrase of the key (0600), else asked")
    secure.add_argument(
        "--trust", type=Path, metavar="FILE", help="authorities that clients' certificates come from (PEM)"
    )
    login = parser.add_argument_group("Login without TLS")
    login.add_argument("--user", metavar="NAME", help="let in this user alone (SASL PLAIN), instead of everybody")
    login.add_argument("--password-file", type=Path, metavar="FILE", help="the user's password (0600), else asked")


BROKER = Command(
    "serve queues over AMQP 1.0 for other tools and consoles, until Ctrl+C",
    _add_arguments,
    "labconsole_amqp.broker.command:serve",
)
