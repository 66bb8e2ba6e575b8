"""Arguments of the commands on trust between States."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole_certificates.commands.arguments import shared


def _take(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="certificates (PEM, DER), or a CRL")
    parser.add_argument("--state", metavar="STATE", help="State that the certificates belong to")
    shared.sent(parser)


def _trust(parser: argparse.ArgumentParser) -> None:
    shared.state(parser)
    shared.certificate(parser)
    _confirmed(parser)


def _confirmed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--confirmed",
        default="",
        metavar="FINGERPRINT",
        help="whole fingerprint as its owner told it, by another way than the file took (default: it is asked for)",
    )


def _withdraw(parser: argparse.ArgumentParser) -> None:
    shared.state(parser)
    shared.certificate(parser)


def _bundle(parser: argparse.ArgumentParser) -> None:
    shared.state(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="file to be written")
    shared.days(parser, 30)
    shared.unlocking(parser)


def _take_bundle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("state", metavar="STATE", help="State of this console that takes it in")
    parser.add_argument("file", type=Path, metavar="FILE", help="trust bundle of another State")
    _confirmed(parser)
    parser.add_argument(
        "--confirmed-domain",
        metavar="DOMAIN",
        help="domain that the bundle newly claims, once its State has confirmed it (default: it is asked for)",
    )


def _pair(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="one State")
    parser.add_argument("b", metavar="B", help="the other State")


def _prove(parser: argparse.ArgumentParser) -> None:
    _pair(parser)
    shared.unlocking(parser)


TAKE = shared.command("take in certificates or a CRL of another State", _take, "trust:take_in")
TRUST = shared.command("let a State trust a root, once its fingerprint is confirmed", _trust, "trust:trust")
PIN = shared.command("let a State trust one end certificate by its fingerprint", _trust, "trust:pinned")
WITHDRAW = shared.command("end a State's trust in a root or certificate", _withdraw, "trust:withdrawn")
BUNDLE = shared.command("write a State's signed trust bundle", _bundle, "trust:bundle")
TAKE_BUNDLE = shared.command("take in another State's trust bundle", _take_bundle, "trust:take_bundle")
MATRIX = shared.command("show who trusts whom", shared.nothing, "trust:show_matrix")
EXCHANGE = shared.command("show how far the exchange between two States is", _pair, "trust:exchange")
PROVE = shared.command("connect two States by TLS, both ways", _prove, "trust:proven")
