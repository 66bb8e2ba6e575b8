"""Arguments of the commands that prove one direction with a State elsewhere."""

from __future__ import annotations

import argparse

from labconsole_certificates.commands.arguments import shared

_AMQPS = 5671
_WAIT_S = 300


def _pair(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="State of this console, whose key is used")
    parser.add_argument("b", metavar="B", help="State at the other end")


def _connect(parser: argparse.ArgumentParser) -> None:
    _pair(parser)
    parser.add_argument("--host", required=True, metavar="H", help="where B waits: host name or IP address")
    parser.add_argument("--port", type=_port, default=_AMQPS, metavar="P", help=f"TCP port (default: {_AMQPS})")
    parser.add_argument(
        "--name",
        default="",
        metavar="NAME",
        help="that B's server must have (default: that of its certificate known here, else the host)",
    )
    parser.add_argument(
        "--foreign",
        action="store_true",
        help="B's end is no console but another TLS server, such as a broker: proven if it asks for A's certificate "
        "and does not refuse it within 3 s",
    )
    shared.unlocking(parser)


def _listen(parser: argparse.ArgumentParser) -> None:
    _pair(parser)
    parser.add_argument(
        "--address", default="127.0.0.1", metavar="ADDRESS", help="of this computer; 0.0.0.0: all (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--port", type=_any_port, default=_AMQPS, metavar="P", help=f"TCP port; 0: any free one (default: {_AMQPS})"
    )
    parser.add_argument(
        "--wait", type=_seconds, default=_WAIT_S, metavar="S", help=f"at most S seconds (default: {_WAIT_S})"
    )
    shared.unlocking(parser)


def _port(text: str) -> int:
    return _number(text, 1, 65_535)


def _any_port(text: str) -> int:
    return _number(text, 0, 65_535)


def _seconds(text: str) -> int:
    return _number(text, 1, 86_400)


def _number(text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit() and least <= int(text[:9]) <= most):
        raise argparse.ArgumentTypeError(f"{text} is no number from {least} to {most}")
    return int(text)


CONNECT = shared.command("connect a State to the server of a State elsewhere, by TLS", _connect, "remote_proof:connect")
LISTEN = shared.command("wait for the connection of a State elsewhere, by TLS", _listen, "remote_proof:listen")
