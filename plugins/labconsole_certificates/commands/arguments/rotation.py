"""Arguments of the commands on rotations."""

from __future__ import annotations

import argparse

from labconsole_certificates.commands.arguments import shared

STEPS = ("prepare", "adopt", "confirm", "switch", "finish", "cancel")


def _rotate(parser: argparse.ArgumentParser) -> None:
    shared.certificate(parser)
    parser.add_argument(
        "--overlap", type=int, default=30, metavar="N", help="days that the old one holds beside the new (default: 30)"
    )


def _rotation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rotation", type=int, metavar="NUMBER", help="number of the rotation")
    parser.add_argument("step", nargs="?", choices=STEPS, help="step to be done (default: show the plan)")
    parser.add_argument("--peer", metavar="STATE", help="confirm: the State that has confirmed")
    parser.add_argument("--force", action="store_true", help="switch, finish: do not wait for peers or overlap")
    parser.add_argument("--days", type=int, metavar="N", help="prepare: days of validity (default: as the old one)")
    shared.new_key(parser, as_before=True)
    shared.unlocking(parser, "issuer-")


ROTATE = shared.command("begin to replace a certificate or root", _rotate, "rotation:begin")
ROTATIONS = shared.command("list what expires soon, and the rotations", shared.nothing, "rotation:show_all")
ROTATION = shared.command("show a rotation's plan, or do its next step", _rotation, "rotation:step")
