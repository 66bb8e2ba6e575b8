"""Arguments of the commands that show, compare and export."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole_certificates.commands.arguments import shared


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("filter", nargs="?", default="", metavar="TEXT", help="only those that contain this text")
    parser.add_argument("--all", action="store_true", help="those too that were removed")


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="WHAT", help="a file, a certificate as in `check`, or request:NUMBER")
    shared.password(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("left", metavar="LEFT", help="a file, a fingerprint, or request:NUMBER")
    parser.add_argument("right", metavar="RIGHT", help="the same")
    shared.password(parser)


def _check(parser: argparse.ArgumentParser) -> None:
    shared.state(parser)
    shared.certificate(parser)


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="WHAT", help="a certificate as in `check`, request:NUMBER or crl:NUMBER")
    parser.add_argument("file", type=Path, metavar="FILE", help="file to be written")
    shared.form(parser, "pem", "chain", "p12")
    shared.sent(parser)
    shared.password(parser)
    shared.unlocking(parser)


def _audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="only the newest N (default: 50)")


LIST = shared.command("list the certificates with their status", _list, "looking:show_all")
SHOW = shared.command("show everything of a certificate, CSR, CRL, key or file", _show, "looking:show")
COMPARE = shared.command("show in what two things differ", _compare, "looking:compared")
CHECK = shared.command("ask whether a State accepts a certificate, and why not", _check, "looking:check")
EXPORT = shared.command("write a certificate, CSR or CRL to a file", _export, "looking:export")
AUDIT = shared.command("list who did what, and when", _audit, "looking:audit")
