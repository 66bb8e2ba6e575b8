"""Measure the link that the Linux kernel shapes next to the built-in shaper, in turn: TCP alone, and Test 1.

    python tests/benchmarks/amqp_kernel_link.py [--rate 2] [--seconds 15] [--repeats 3]

As root on Linux with iproute2. Aims: both carry the rate within 2 %, and their message rates are within 2 %.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from labconsole.engine.provenance import provenance
from labconsole_amqp.shaping.link_model import LinkSettings
from labconsole_amqp.shaping.shaper import serving
from labconsole_amqp.shaping.tc_commands import BROKER_ADDRESS, BROKER_NAMESPACE, CLIENT_NAMESPACE
from tests.helpers.tcp_rate import receiver_program, sender_program

AIM = 0.02
CONSOLE = (sys.executable, "-m", "labconsole.cli.main")
PROFILE = """
format = 1
title = "Large payload over a shaped link"
description = "Test 1 with the large payload."
kind = "amqp.messaging"
repeats = 1
seed = 1
order = "rotated"

[parameters]
test = 1
payload = "fpl-fixm"
count = 60
warm_up = 20
broker = "external"

[[scenarios]]
name = "Test 1"
"""


def main() -> None:
    """Set up the lab, and measure in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=2.0, help="Mbit/s each way")
    parser.add_argument("--seconds", type=float, default=15.0, help="length of a TCP measurement")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    said = provenance(0, 0)
    print(f"{said['cpu']}, {said['cores']} cores, load {said['load_average_before'][0]}, Python {said['python']}")
    rates: dict[str, list[float]] = {"TCP, kernel": [], "TCP, built-in": []}
    messages: dict[str, list[float]] = {"Test 1, kernel": [], "Test 1, built-in": []}
    with ready((*CONSOLE, "shape-link", "lab", "--link-rate", str(arguments.rate))):
        for _ in range(arguments.repeats):
            rates["TCP, kernel"].append(_kernel_tcp(arguments.seconds))
            rates["TCP, built-in"].append(_built_in_tcp(arguments.rate, arguments.seconds))
            messages["Test 1, kernel"].append(_trial(arguments.rate, "outside"))
            messages["Test 1, built-in"].append(_trial(arguments.rate, "built-in"))
    for title, found in rates.items():
        error = median(found) / arguments.rate - 1
        print(f"{title}: {_listed(found)} Mbit/s ({error:+.2%}): {'reached' if abs(error) <= AIM else 'missed'}")
    for title, found in messages.items():
        print(f"{title}: {_listed(found)} msg/s")
    error = median(messages["Test 1, kernel"]) / median(messages["Test 1, built-in"]) - 1
    print(f"Kernel next to built-in: {error:+.2%}: {'reached' if abs(error) <= AIM else 'missed'}")


def _listed(found: Sequence[float]) -> str:
    return ", ".join(f"{one:.4g}" for one in found)


def _kernel_tcp(seconds: float) -> float:
    within = ("ip", "netns", "exec")
    with ready((*within, BROKER_NAMESPACE, *receiver_program(BROKER_ADDRESS))) as (receiver, line):
        sender = sender_program(BROKER_ADDRESS, int(line.split()[1]), seconds)
        subprocess.run((*within, CLIENT_NAMESPACE, *sender), check=True)
        return float(receiver.communicate()[0])


def _built_in_tcp(rate: float, seconds: float) -> float:
    link = LinkSettings(rate * 1e6, rate * 1e6)
    with (
        ready(receiver_program("127.0.0.1")) as (receiver, line),
        serving(link, int(line.split()[1])) as (_, port),
    ):
        subprocess.run(sender_program("127.0.0.1", port, seconds), check=True)
        return float(receiver.communicate()[0])


def _trial(rate: float, shaping: str) -> float:
    """Messages a second of Test 1, through the whole console."""
    in_kernel = shaping == "outside"
    host = BROKER_ADDRESS if in_kernel else "127.0.0.1"
    server, clients = (
        (("ip", "netns", "exec", namespace) if in_kernel else ()) for namespace in (BROKER_NAMESPACE, CLIENT_NAMESPACE)
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        ready((*server, *CONSOLE, "broker", "--host", host, "--port", "0")) as (_, line),
    ):
        port = re.search(r":(\d+),", line)
        assert port
        profile = Path(folder) / "profile.toml"
        profile.write_text(PROFILE)
        values = {"host": host, "port": port[1], "shaping": shaping, "link_rate": rate}
        settings = [part for key, value in values.items() for part in ("--set", f"{key}={value}")]
        done = subprocess.run(
            (*clients, *CONSOLE, "run", str(profile), *settings, "--json"),
            stdout=subprocess.PIPE,
            env={**os.environ, "LABCONSOLE_HOME": folder},
            check=True,
            text=True,
        )
    run = next(json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"run"'))
    return float(run["metrics"]["throughput"]["value"])


@contextmanager
def ready(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A program that has printed a line with `Ready`, and that line; it is ended by SIGTERM."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = next(line for line in process.stdout if line.startswith("Ready"))
        yield process, line
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


if __name__ == "__main__":
    main()
