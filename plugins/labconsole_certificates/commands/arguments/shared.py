"""Arguments that several commands have. No passphrase is ever an argument: others of this machine see those.

What needs `cryptography` is imported where a command's own arguments are added: the help of all commands does without.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from labconsole.cli.command import Command

E = TypeVar("E", bound=StrEnum)

WORK = "labconsole_certificates.commands.work"
"""Package of the functions that run."""


CERTIFICATE = 'its SHA-256, 8 digits of it, or PROFILE:STATE for the newest of a State, as in "root:State B"'


def command(help: str, add_arguments: Callable[[argparse.ArgumentParser], None], run: str) -> Command:
    """A command whose function is `run` (`module:function`) within `work`."""
    return Command(help, add_arguments, f"{WORK}.{run}")


def nothing(parser: argparse.ArgumentParser) -> None:
    """A command without arguments."""


def state(parser: argparse.ArgumentParser) -> None:
    """The State that something is done for."""
    parser.add_argument("state", metavar="STATE", help="name of a State of this console")


def certificate(parser: argparse.ArgumentParser) -> None:
    """A certificate that is here."""
    parser.add_argument("certificate", metavar="CERTIFICATE", help=CERTIFICATE)


def subject(parser: argparse.ArgumentParser) -> None:
    """Who is certified."""
    parser.add_argument("--subject", default="", metavar="DN", help="as in CN=state-a,O=CAAS,C=SG (default: the State)")


def names(parser: argparse.ArgumentParser) -> None:
    """Subject alternative names."""
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        dest="names",
        metavar="NAME",
        help="DNS name in any script, or IP:..., URI:..., email:...; several times if wished",
    )


def days(parser: argparse.ArgumentParser, default: int) -> None:
    """How long something is valid."""
    parser.add_argument("--days", type=int, default=default, metavar="N", help=f"valid for N days (default: {default})")


def one_of(allowed: Iterable[E]) -> Callable[[str], E]:
    """What makes one of the `allowed` values of what is typed, and names them all where it is none."""
    known = {str(one): one for one in allowed}

    def convert(text: str) -> E:
        if text not in known:
            raise argparse.ArgumentTypeError(f"{text} is none of {', '.join(known)}")
        return known[text]

    return convert


def profile(parser: argparse.ArgumentParser, *, as_asked: bool = False) -> None:
    """What a certificate is for: a TLS client by default, or with `as_asked` what its request asks for."""
    from labconsole.security.x509.profiles import AUTHORITIES, CertificateProfile

    of_ends = [profile for profile in CertificateProfile if profile not in AUTHORITIES]
    default = None if as_asked else CertificateProfile.TLS_CLIENT
    parser.add_argument(
        "--profile",
        type=one_of(of_ends),
        default=default,
        metavar="PROFILE",
        help=f"{', '.join(of_ends)} (default: {default or 'what is asked for'})",
    )


def authority(parser: argparse.ArgumentParser) -> None:
    """The CA certificate that issues."""
    parser.add_argument(
        "--authority",
        default="",
        metavar="CERTIFICATE",
        help="CA that issues (default: the newest that can)",
    )


def key_type(parser: argparse.ArgumentParser, *, as_before: bool = False) -> None:
    """The type of a key pair: P-256 by default, or with `as_before` that of the key that it replaces."""
    from labconsole.security.x509.key_types import KeyType

    default = None if as_before else KeyType.P_256
    parser.add_argument(
        "--type",
        type=one_of(KeyType),
        default=default,
        metavar="TYPE",
        help=f"of the key: {', '.join(KeyType)} (default: {default or 'as the old one'})",
    )


def new_key(parser: argparse.ArgumentParser, *, as_before: bool = False) -> None:
    """A key pair that is made: its type (as `key_type`), where it is stored, and where its passphrase is."""
    key_type(parser, as_before=as_before)
    parser.add_argument("--token", default="", metavar="NAME", help="make it in this token, which it never leaves")
    kept_key(parser)


def kept_key(parser: argparse.ArgumentParser) -> None:
    """Where the passphrase of a key file lies that is written here."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--ask-passphrase", action="store_true", help="its passphrase is asked for each time")
    source.add_argument("--passphrase-file", type=Path, metavar="FILE", help="it lies in this file (0600)")
    source.add_argument("--keyring-entry", metavar="NAME", help="it lies in this entry of the OS keyring")


def unlocking(parser: argparse.ArgumentParser, prefix: str = "") -> None:
    """The passphrase (PIN) of a key that is here, if it would be asked for; `prefix` where another one is made, too."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        f"--{prefix}passphrase-file",
        type=Path,
        metavar="FILE",
        dest="unlock_file",
        help="file (0600) with the passphrase or PIN of the CA's key, if it would be asked for",
    )
    source.add_argument(
        f"--{prefix}keyring-entry",
        metavar="NAME",
        dest="unlock_entry",
        help="entry of the OS keyring with that passphrase or PIN",
    )


def password(parser: argparse.ArgumentParser) -> None:
    """The password of a file that is handed over."""
    parser.add_argument(
        "--password-file", type=Path, metavar="FILE", help="file (0600) with the password (default: it is asked for)"
    )


def out(parser: argparse.ArgumentParser, what: str, *, required: bool = False) -> None:
    """A file that is written."""
    parser.add_argument(
        "--out", type=Path, required=required, metavar="FILE", help=f"write {what} to this file, which must be new"
    )


def form(parser: argparse.ArgumentParser, default: str, *more: str) -> None:
    """How a file is written."""
    forms = ("pem", "der", *more)
    parser.add_argument(
        "--form", choices=forms, default=default, help=f"of the file: {', '.join(forms)} (default: {default})"
    )


def sent(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Who gave something to whom."""
    parser.add_argument("--from", dest="sender", required=required, metavar="STATE", help="State that sent it")
    parser.add_argument("--to", dest="receiver", required=required, metavar="STATE", help="State that got it")
