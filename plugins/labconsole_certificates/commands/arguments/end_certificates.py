"""Arguments of the commands that make end certificates without a CSR, and of identities."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole_certificates.commands.arguments import shared


def _end(parser: argparse.ArgumentParser) -> None:
    shared.profile(parser)
    shared.subject(parser)
    shared.names(parser)
    shared.days(parser, 365)


def _self_signed(parser: argparse.ArgumentParser) -> None:
    shared.state(parser)
    _end(parser)
    shared.new_key(parser)
    shared.out(parser, "the certificate")


def _make_for(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", metavar="STATE", help="State that gets key and certificate")
    parser.add_argument("--issuer", required=True, metavar="STATE", help="State whose CA issues it")
    _end(parser)
    shared.authority(parser)
    shared.key_type(parser)
    shared.out(parser, "the PKCS#12", required=True)
    shared.password(parser)
    shared.unlocking(parser)


def _take_p12(parser: argparse.ArgumentParser) -> None:
    shared.state(parser)
    parser.add_argument("file", type=Path, metavar="FILE", help="PKCS#12 (.p12, .pfx)")
    parser.add_argument("--from", dest="sender", metavar="STATE", help="State that made it")
    shared.password(parser)
    shared.kept_key(parser)


def _name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="by which trials take it")
    shared.certificate(parser)


def _forget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the identity")


SELF_SIGNED = shared.command(
    "make a self-signed end certificate, for peers to pin", _self_signed, "end_certificates:self_signed"
)
MAKE_FOR = shared.command(
    "make key and certificate for another State (No-CSR method)", _make_for, "end_certificates:make_for"
)
TAKE_P12 = shared.command("take in key and certificate from a PKCS#12", _take_p12, "end_certificates:take_in")
NAME = shared.command("give a certificate with its key a name for trials", _name, "end_certificates:name")
IDENTITIES = shared.command("list what trials take by name", shared.nothing, "end_certificates:identities")
FORGET = shared.command("free the name of an identity", _forget, "end_certificates:forget")
