"""The arguments of `labconsole test-connection`; what it does is imported when it is called."""

from __future__ import annotations

import argparse

from labconsole.cli.command import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", required=True, help="host name or address of the broker")
    parser.add_argument("--port", required=True, metavar="N", help="its port")
    parser.add_argument("--queue", required=True, metavar="ADDRESS", help="queue, as the broker spells it")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="settings",
        help="another parameter of a run, as for `labconsole run`: test=2 for TLS, username, mode, sender_identity ...",
    )


TEST_CONNECTION = Command(
    "test the connection to an external broker: TCP, TLS, SASL, queue",
    _add_arguments,
    "labconsole_amqp.trial.connection_command:test_connection",
)
