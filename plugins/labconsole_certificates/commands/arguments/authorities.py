"""Arguments of the commands on States and their own CAs."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole_certificates.commands.arguments import shared


def _add_state(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("state", metavar="STATE", help="its name")
    parser.add_argument("--domain", default="", metavar="DOMAIN", help="DNS domains of its hosts, in any script")
    parser.add_argument("--remote", action="store_true", help="a State of another console: its keys are not here")


def _domain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("state", metavar="STATE", help="its name")
    parser.add_argument("domain", nargs="*", metavar="DOMAIN", help="DNS domains of its hosts; none: any name")
    parser.add_argument("--confirmed", action="store_true", help="the State has confirmed it: ask no question")


def _authority(parser: argparse.ArgumentParser, days: int, path_length: str) -> None:
    shared.state(parser)
    shared.subject(parser)
    shared.days(parser, days)
    parser.add_argument(
        "--path-length", type=int, metavar="N", help=f"CAs that may follow below it (default: {path_length})"
    )
    parser.add_argument(
        "--only-for",
        action="append",
        default=[],
        metavar="NAME",
        help="domain (or IP:network) beyond which it may not issue; several times if wished",
    )
    shared.new_key(parser)


def _create_root(parser: argparse.ArgumentParser) -> None:
    _authority(parser, 3650, "any number")


def _create_intermediate(parser: argparse.ArgumentParser) -> None:
    _authority(parser, 1825, "0")
    parser.add_argument("--issuing-state", metavar="STATE", help="whose CA issues it (default: its own)")
    shared.authority(parser)
    shared.unlocking(parser, "issuer-")


def _import_ca(parser: argparse.ArgumentParser) -> None:
    shared.state(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="certificate (PEM, DER), or PKCS#12 with the key")
    parser.add_argument("--key", type=Path, metavar="FILE", help="its private key (PEM, DER)")
    shared.password(parser)
    shared.kept_key(parser)


STATES = shared.command("list the States", shared.nothing, "authorities:states")
ADD_STATE = shared.command("add a State", _add_state, "authorities:add")
DOMAIN = shared.command("let a State claim other DNS domains", _domain, "authorities:domain")
CREATE_ROOT = shared.command("create a State's root CA", _create_root, "authorities:root")
CREATE_INTERMEDIATE = shared.command("create a CA below another", _create_intermediate, "authorities:intermediate")
IMPORT_CA = shared.command("take in a CA with its private key", _import_ca, "authorities:take_in")
