"""Arguments of the commands on revocation, and on what is removed."""

from __future__ import annotations

import argparse

from labconsole_certificates.commands.arguments import shared

REASONS = (
    "unspecified",
    "keyCompromise",
    "cACompromise",
    "affiliationChanged",
    "superseded",
    "cessationOfOperation",
    "privilegeWithdrawn",
)
"""RFC 5280, 5.3.1, without those for CRLs that hold only what changed, and for holds."""


def _revoke(parser: argparse.ArgumentParser) -> None:
    shared.certificate(parser)
    parser.add_argument("--reason", choices=REASONS, default=REASONS[0], help=f"default: {REASONS[0]}")


def _authority(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("authority", metavar="CERTIFICATE", help=f"of the CA: {shared.CERTIFICATE}")


def _publish(parser: argparse.ArgumentParser) -> None:
    _authority(parser)
    shared.days(parser, 30)
    shared.out(parser, "the CRL")
    shared.form(parser, "der")
    shared.unlocking(parser)


def _ocsp(parser: argparse.ArgumentParser) -> None:
    _authority(parser)
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port on loopback (default: any free one)")
    shared.unlocking(parser)


def _ask(parser: argparse.ArgumentParser) -> None:
    shared.certificate(parser)
    parser.add_argument("url", metavar="URL", help="of the OCSP responder")


def _confirming(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="remove them without a question")


REVOKE = shared.command("revoke a certificate", _revoke, "revocation:revoked")
PUBLISH_CRL = shared.command("sign a new CRL", _publish, "revocation:publish")
CRLS = shared.command("list the CRLs", shared.nothing, "revocation:show_all")
OCSP = shared.command("answer OCSP requests until Ctrl+C", _ocsp, "revocation:serve")
REMOVE = shared.command("hide a certificate", shared.certificate, "revocation:hide")
RESTORE = shared.command("show a hidden certificate again", shared.certificate, "revocation:restore_hidden")
ASK_OCSP = shared.command("ask an OCSP responder about a certificate", _ask, "revocation:ask_responder")
REMOVE_KEY_FILES = shared.command(
    "remove key files that a killed process has left, which no certificate needs",
    _confirming,
    "revocation:remove_key_files",
)
