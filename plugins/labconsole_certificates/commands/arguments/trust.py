"""Arguments of the commands on trust between States."""

from __future__ import annotations

import argparse

from labconsole_certificates.commands.arguments import shared


def _pair(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="one State")
    parser.add_argument("b", metavar="B", help="the other State")


def _prove(parser: argparse.ArgumentParser) -> None:
    _pair(parser)
    shared.unlocking(parser)


MATRIX = shared.command("show who trusts whom", shared.nothing, "trust:show_matrix")
EXCHANGE = shared.command("show how far the exchange between two States is", _pair, "trust:exchange")
PROVE = shared.command("connect two States by TLS, both ways", _prove, "trust:proven")
