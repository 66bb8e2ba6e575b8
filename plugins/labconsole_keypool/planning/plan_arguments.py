"""The arguments of `labconsole hsm plan`."""

from __future__ import annotations

import argparse
from pathlib import Path

from labconsole.cli.command import Command


def _plan(parser: argparse.ArgumentParser) -> None:
    peak = parser.add_argument_group("the peak")
    peak.add_argument("--rate", metavar="N", help="requests per second (default: 50)")
    peak.add_argument("--duration", dest="duration_s", metavar="S", help="how long it lasts, s (default: 7200)")
    peak.add_argument("--queue-limit", metavar="N", help="requests that may wait, 0 for no limit (default: 50)")
    peak.add_argument("--threads", metavar="N", help="signing threads (default: 1)")
    device = parser.add_argument_group("the device")
    device.add_argument("--timing", metavar="NAME", help="timing profile (default: luna-sa-1700); '' with own times")
    device.add_argument("--sign", metavar="TIME", help="which signing time of the profile (default: malmo)")
    device.add_argument("--key-generation", metavar="END", help="the profile's shortest or longest (default: shortest)")
    device.add_argument("--sign-ms", metavar="MS", help="own time to sign")
    device.add_argument("--generation-ms", metavar="MS", help="own time to generate a key pair")
    device.add_argument("--wrap-ms", metavar="MS", help="own time to wrap and save a key pair")
    device.add_argument("--unwrap-ms", metavar="MS", help="own time to load and unwrap a key pair")
    device.add_argument("--keys-in-token", metavar="N", help="key pairs that fit into the own device")
    arrivals = parser.add_mutually_exclusive_group()
    arrivals.add_argument("--arrivals", type=Path, metavar="FILE", help="forecast from this log: CSV of time stamps, "
                          "or of hour,count")  # fmt: skip
    arrivals.add_argument("--from-runs", action="store_true", help="forecast from the arrivals of past runs")
    parser.add_argument("--steps", action="store_true", help="print how each figure is derived")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table, and forecast hours, as CSV")
    parser.add_argument("--db", type=Path, metavar="FILE", help="run database (default: in your data directory)")


PLAN = Command(
    help="plan a key pool: base rate, queue, latency, pool size, number of HSMs, and a forecast",
    add_arguments=_plan,
    run="labconsole_keypool.planning.plan_command:plan",
)
