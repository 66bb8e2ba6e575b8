"""`labconsole verify`: are runs still as they were sealed?"""

from __future__ import annotations

import argparse

from labconsole.cli.database import open_database
from labconsole.cli.exit_codes import FAILED, FINISHED
from labconsole.cli.terminal import output
from labconsole.store.evidence import verify


def verify_runs(arguments: argparse.Namespace) -> int:
    """Check runs against their evidence and print their digests; exit code 1 if one is not as it was sealed."""
    console, faulty = output(), False
    with open_database(arguments.db) as reader:
        for run_id in arguments.run:
            verification = verify(reader, run_id)
            if verification.ok and verification.sealed is not None:
                console.print(f"Run {run_id}: ok, sealed {verification.sealed:%Y-%m-%d %H:%M:%S} UTC")
                console.print(f"SHA-256 {verification.digest_now}")
            else:
                faulty = True
                console.print(f"Run {run_id}: not verified", style="red")
                for fault in verification.faults:
                    console.print(fault)
    return FAILED if faulty else FINISHED
