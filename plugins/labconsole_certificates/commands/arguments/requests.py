"""Arguments of the commands of the CSR method."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole_certificates.commands.arguments import shared


def _request(parser: argparse.ArgumentParser) -> None:
    shared.state(parser)
    parser.add_argument("--to", dest="issuer", required=True, metavar="STATE", help="State whose CA is asked")
    shared.profile(parser)
    shared.subject(parser)
    shared.names(parser)
    shared.new_key(parser)
    shared.out(parser, "the CSR")
    shared.form(parser, "pem")


def _take_csr(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="CSR (PEM, DER)")
    shared.sent(parser, required=True)
    shared.profile(parser, as_asked=True)


def _number(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("request", type=int, metavar="NUMBER", help="number of the request (`labconsole pki requests`)")


def _approve(parser: argparse.ArgumentParser) -> None:
    _number(parser)
    shared.authority(parser)
    shared.profile(parser, as_asked=True)
    shared.days(parser, 365)
    parser.add_argument("--subject", default="", metavar="DN", help="another subject than the CSR's")
    shared.names(parser)
    parser.add_argument("--crl-url", default="", metavar="URL", help="where its CRL will be")
    parser.add_argument("--ocsp-url", default="", metavar="URL", help="where OCSP is answered for it")
    shared.unlocking(parser)
    shared.out(parser, "certificate and chain")


def _refuse(parser: argparse.ArgumentParser) -> None:
    _number(parser)
    parser.add_argument("reason", metavar="REASON", help="why, for the other State")


def _take_certificate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="certificate, and its chain (PEM, DER)")
    parser.add_argument("--from", dest="sender", metavar="STATE", help="State that sent it (default: who was asked)")


REQUEST = shared.command("make a key pair and a CSR for the CA of a State", _request, "requests:make")
REQUESTS = shared.command("list the CSRs that were made and received", shared.nothing, "requests:show_all")
TAKE_CSR = shared.command("take in another State's CSR", _take_csr, "requests:take_in")
APPROVE = shared.command("issue the certificate that a CSR asks for", _approve, "requests:approved")
REFUSE = shared.command("refuse a CSR, with the reason", _refuse, "requests:refused")
TAKE_CERTIFICATE = shared.command(
    "take in the certificate that was issued for a CSR made here", _take_certificate, "requests:certificate"
)
