"""The arguments of `labconsole pki demo`."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole.cli.command import Command

FEWEST, MOST = 2, 60
"""States that the demo can have."""


def _demo(parser: argparse.ArgumentParser) -> None:
    from labconsole.security.x509.key_types import KeyType  # the help of all commands does without `cryptography`

    parser.add_argument(
        "--states", type=_count, default=2, metavar="N", help=f"number of States, {FEWEST} to {MOST} (default: 2)"
    )
    parser.add_argument(
        "--key-type",
        choices=[kind.value for kind in KeyType],
        default=KeyType.P_256.value,
        metavar="TYPE",
        help=f"type of all keys: {', '.join(KeyType)} (default: {KeyType.P_256})",
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep consoles and exchanged files in this new folder")


def _count(text: str) -> int:
    if not (text.isdecimal() and len(text) < 4 and FEWEST <= int(text) <= MOST):
        raise argparse.ArgumentTypeError(f"{text} is not a number from {FEWEST} to {MOST}")
    return int(text)


DEMO = Command(
    help="let States exchange CSRs and trust bundles, and prove every directed pair by a TLS handshake",
    add_arguments=_demo,
    run="labconsole_certificates.demo.demo_command:demo",
)
