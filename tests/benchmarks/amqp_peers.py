"""How fast the console is through Artemis, next to the source's tool and Quiver's C arrow, in turn on one broker.

    python tests/benchmarks/amqp_peers.py --kame FOLDER --arrow PROGRAM [--rounds 5] [--tests 0 1 2 3 4]

FOLDER is `kamehameha` of a checkout of https://github.com/siagalabs/amqp-kamehameha, after `npm install`; PROGRAM is
`impls/quiver-arrow-qpid-proton-c.c` of https://github.com/ssorj/quiver, compiled, with two changes for TLS to Artemis:
the host name of its connection has no port (Java refuses such an SNI), and its SSL domain authenticates no peer
(`PN_SSL_ANONYMOUS_PEER`, once the default). A contender that is not given is left out.

Test 0 is peer to peer, without the broker: the console's and the arrow's sender, each connected to its receiver.

The broker is warm: each contender sends through it six times before the rounds, since its rate rises over the first two
million messages. A rate is the number of messages by the time from the first sending to the last arrival. In Tests 3
and 4 each round also asks `openssl speed` how much this machine signs at that time. The open loop comes in turn with
bare sockets. Prints each run, then medians and the ratios asked for. A figure of this machine at this moment, never a
test.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from proton import VERSION as PROTON_VERSION

from labconsole.paths import HOME_VARIABLE
from labconsole.security.identities import IdentityFiles
from labconsole.security.lab_identities import lab_identities
from labconsole_amqp.link.connection import Endpoint
from labconsole_amqp.wire.payload import load_payload
from tests.benchmarks.amqp_bare_sockets import latencies_ms
from tests.labconsole_amqp.lab_pki import LabCa, tls_of
from tests.labconsole_amqp.real_broker import HOST, RealBroker

QUEUE = "labconsole"
REQUIRED = {
    ("kame", 1): (10, 4.5),
    ("kame", 2): (9, 4),
    ("kame", 3): (6.5, 5),
    ("kame", 4): (7, 5.5),
    ("arrow", 0): (1.1, 2),
    ("arrow", 1): (1.0, 1.0),
    ("arrow", 2): (1.2, 1.0),
    ("openssl", 3): (0.80, None),
}
"""The least ratio asked for at up to 237 B, and at 42.7 KB (None: none)."""
_COUNTS = {
    "console": {0: 1_000_000, 1: 400_000, 2: 400_000, 3: 12_000, 4: 6_000},
    "kame": {1: 40_000, 2: 40_000, 3: 2_500, 4: 1_200},
    "arrow": {0: 1_000_000, 1: 400_000, 2: 400_000},
}
_LARGE_COUNTS = {
    "console": {0: 100_000, 1: 40_000, 2: 30_000, 3: 6_000, 4: 4_000},
    "kame": {1: 8_000, 2: 6_000, 3: 1_500, 4: 1_000},
    "arrow": {0: 100_000, 1: 40_000, 2: 30_000},
}
_LARGE = "fpl-fixm"
_LONGEST_S = 120.0
_WARMING_RUNS = 6


@dataclass
class Bench:
    """What the contenders share: the broker, keys and folders; `payloads` are files by name."""

    folder: Path
    broker: RealBroker
    client: IdentityFiles
    kame: Path | None
    arrow: Path | None
    payloads: dict[str, Path]
    settings: list[str]
    pki: Path = field(init=False)

    def __post_init__(self) -> None:
        self.pki = self.folder / "pki"

    def port(self, test: int) -> int:
        """The broker's port for a test."""
        return self.broker.port if test == 1 else self.broker.tls_port

    @property
    def secure(self) -> Endpoint:
        """The broker's TLS port."""
        return self.broker.secure(tls_of(self.client, trust=lab_identities().authority_file))

    @property
    def plain(self) -> Endpoint:
        """The broker's port without TLS, for anybody."""
        return Endpoint(HOST, self.broker.port)

    def rate(self, contender: str, test: int, payload: str) -> float:
        """Messages per second of one run."""
        count = (_LARGE_COUNTS if payload == _LARGE else _COUNTS)[contender][test]
        run = {"console": self._console, "kame": self._kame, "arrow": self._arrow}[contender]
        return run(test, payload, count)

    def run(self, **fields: Any) -> tuple[dict[str, Any], dict[str, float], dict[str, int]]:
        """One run of the console: what `--json` prints, its figures, and the most memory of each process (bytes)."""
        profile = self.folder / "profile.toml"
        if fields["test"]:
            fields |= {"broker": "external", "port": self.port(fields["test"]), "leftover": "drain"}
        else:
            fields |= {"broker": "none", "test": 1}
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())
        profile.write_text(f'format = 1\nkind = "amqp.messaging"\n[parameters]\n{lines}')
        command = [sys.executable, "-m", "labconsole.cli.main", "run", str(profile), "--json"]
        for setting in self.settings:
            command += ["--set", setting]
        memory: dict[str, int] = {}
        with (self.folder / "run.json").open("w+") as out:
            console = psutil.Popen(command, stdout=out)
            while console.poll() is None:
                for process in (console, *console.children(recursive=True)):
                    with contextlib.suppress(psutil.Error):
                        name = " ".join(process.cmdline()[2:5])
                        memory[name] = max(memory.get(name, 0), process.memory_info().rss)
                time.sleep(0.5)
            out.seek(0)
            result: dict[str, Any] = json.load(out)
        metrics = {name: metric["value"] for name, metric in result["metrics"].items()}
        if console.returncode or metrics["lost"] or metrics["failed_verifications"]:
            raise RuntimeError(f"the console's run failed: {result}")
        return result, metrics, memory

    def _console(self, test: int, payload: str, count: int) -> float:
        result, metrics, _ = self.run(test=test, count=count, payload=payload)
        cpu = {m["labels"]["role"]: m["value"] for m in result["labelled_metrics"] if m["name"] == "cpu_per_message"}
        print("      CPU", " + ".join(f"{role} {value:.1f}" for role, value in cpu.items()), "us a message", end="; ")
        return float(metrics["throughput"])

    def _kame(self, test: int, payload: str, count: int) -> float:
        """The source's tool: its sender's rate, which it computes when the last message has come."""
        output = self.folder / "kame"
        assert self.kame is not None
        command = ["node", "src/kame.js", f"--host={HOST}", f"--port={self.port(test)}", f"--address={QUEUE}"]
        command += [f"--count={count}", f"--payload={self.payloads[payload]}", f"--output={output}"]
        own, other = (self.pki / name for name in ("client", "recipient"))
        if test == 1:
            command += ["--username=any"]  # without it SASL is left out
        else:
            command += ["--tls", f"--key={own}.key", f"--cert={own}.pem", f"--ca={lab_identities().authority_file}"]
            command += ["--servername=localhost"]
        if test >= 3:
            command += ["--sign", f"--signKey={own}.key", f"--signCert={own}.pem"]
        if test == 4:
            command += ["--encrypt", f"--encryptKey={other}.pem", f"--decryptKey={other}.key"]
        out = subprocess.DEVNULL
        subprocess.run(command, cwd=self.kame, stdout=out, stderr=out, check=True, timeout=_LONGEST_S)
        return float(json.loads((output / "full_metrics.json").read_text())["sender"]["sentRate"])

    def _arrow(self, test: int, payload: str, count: int) -> float:
        """Quiver's pair of sender and receiver, which write a line for each message."""
        assert self.arrow is not None
        fields: dict[str, Any] = {
            "id": "arrow",
            "scheme": "amqp" if test < 2 else "amqps",
            "host": HOST,
            "port": self.port(test) if test else _free_port(),
            "path": QUEUE,
            "duration": 0,
            "count": count,
            "body-size": self.payloads[payload].stat().st_size,
            "credit-window": 1000,
            "transaction-size": 0,
            "durable": 0,
            "set-message-id": 0,
        }
        if test == 2:
            fields |= {"cert": self.pki / "client.pem", "key": self.pki / "client.key", "host": "localhost"}
            fields |= {"username": "client", "password": "none"}  # without them it allows no SASL EXTERNAL
        ends = []
        for operation in ("receive", "send"):
            listens = test == 0 and operation == "receive"
            modes = ("server", "passive") if listens else ("client", "active")
            fields |= {"operation": operation, "connection-mode": modes[0], "channel-mode": modes[1]}
            arguments = [f"{name}={value}" for name, value in fields.items()]
            file = (self.folder / operation).open("wb")
            ends.append(end := psutil.Popen([str(self.arrow), *arguments], stdout=file))
            file.close()
            while listens and not any(one.status == psutil.CONN_LISTEN for one in end.net_connections()):
                time.sleep(0.01)
        for end in ends:
            if end.wait(_LONGEST_S):
                raise RuntimeError(f"Quiver's arrow failed with exit code {end.returncode}")
        first_ms = int((self.folder / "send").open().readline().split(",")[0])
        with (self.folder / "receive").open("rb") as lines:
            lines.seek(-200, os.SEEK_END)
            last_ms = int(lines.read().decode().strip().splitlines()[-1].split(",")[-1])
        return count / ((last_ms - first_ms) / 1000)


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as listener:
        return int(listener.getsockname()[1])


def figures(bench: Bench, rounds: int) -> None:
    """What the console's own figures say: latency at a rate, connecting, and memory."""
    for _ in range(rounds):
        _, metrics, _ = bench.run(test=2, payload="fpl-tac", loop="open", rate=1000.0, count=20_000, warm_up=1000)
        p50, p99 = metrics["latency_p50"], metrics["latency_p99"]
        print(f"Open loop, TLS, 1,000/s: p50 {p50:.3f}, p99 {p99:.3f} ms (asked for: 0.2, 0.5)", flush=True)
        for what, endpoint in (("TLS", bench.secure), ("plain", bench.plain)):
            bare = latencies_ms(endpoint, QUEUE, bench.payloads["fpl-tac"].read_bytes(), 1000.0, 20_000)[1000:]
            p50, p99 = np.quantile(bare, (0.5, 0.99))
            print(f"    bare sockets, {what}: p50 {p50:.3f}, p99 {p99:.3f} ms", flush=True)
    for test, asked in ((1, 5), (2, 10)):
        times = [bench.run(test=test, payload="small", count=10)[1]["connect_time"] for _ in range(rounds)]
        print(f"Connecting, Test {test}: {statistics.median(times):.1f} ms (asked for: {asked})", flush=True)
    _, _, memory = bench.run(test=1, payload="fpl-tac", count=1_000_000)
    print("1,000,000 messages, most memory (asked for: 250 MB):")
    for name, most in memory.items():
        print(f"    {name}: {most / 1e6:.0f} MB")


def signing_bound() -> float:
    """RSA-2048 signatures per second of two processes, by OpenSSL."""
    command = ["openssl", "speed", "-seconds", "2", "-multi", "2", "rsa2048"]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout
    found = re.search(r"rsa 2048 bits\s+\S+\s+\S+\s+([\d.]+)", out)
    assert found is not None, out
    return float(found[1])


def contenders(bench: Bench, test: int) -> Iterator[str]:
    """Who takes part in a test."""
    if bench.kame is not None and test:
        yield "kame"
    if bench.arrow is not None and test <= 2:
        yield "arrow"
    yield "console"


def compare(bench: Bench, test: int, payload: str, rounds: int) -> None:
    """The rounds of one test and payload, and their ratios."""
    names = list(contenders(bench, test))
    ratios: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {}
    for _ in range(rounds):
        found = {name: bench.rate(name, test, payload) for name in names}
        if test >= 3:
            found["openssl"] = signing_bound()
        print(f"Test {test}, {payload}:", ", ".join(f"{name} {rate:,.0f}" for name, rate in found.items()), flush=True)
        for name, rate in found.items():
            rates.setdefault(name, []).append(rate)
            if name != "console":
                ratios.setdefault(name, []).append(found["console"] / rate)
    medians = ", ".join(f"{name} {statistics.median(values):,.0f}" for name, values in rates.items())
    print(f"Test {test}, {payload}, medians: {medians}")
    for name, values in ratios.items():
        required = REQUIRED.get((name, test), (None, None))[payload == _LARGE]
        asked = f" (asked for: {required})" if required is not None else ""
        print(f"Test {test}, {payload}: console / {name} {statistics.median(values):.2f}{asked}", flush=True)


def main() -> None:
    """Parse the command line, start the broker, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kame", type=Path)
    parser.add_argument("--arrow", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tests", type=int, nargs="+", default=[1, 2, 3, 4], choices=[0, 1, 2, 3, 4])
    parser.add_argument("--payloads", nargs="+", default=["small", "fpl-tac", _LARGE])
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, proton {PROTON_VERSION}")
    print(f"{ssl.OPENSSL_VERSION}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ[HOME_VARIABLE] = str(folder / "home")
        ca = LabCa(folder / "pki")
        client = ca.issue("client", of_rsa=True)
        ca.issue("recipient", of_rsa=True)
        trust = folder / "trust.pem"
        trust.write_text(lab_identities().authority_file.read_text() + ca.ca_file.read_text())
        payloads = {}
        for payload in arguments.payloads:
            payloads[payload] = folder / payload
            payloads[payload].write_bytes(load_payload(payload, as_string=True).data)
        broker = RealBroker(
            "artemis", folder / "broker", queues=(QUEUE,), trust=trust, anonymous=True,
            clients=("client", "state-a", "state-b"),
        )  # fmt: skip
        with broker:
            bench = Bench(folder, broker, client, arguments.kame, arguments.arrow, payloads, arguments.settings)
            for test in (1, 2):
                for _ in range(_WARMING_RUNS):
                    for contender in contenders(bench, test):
                        bench.rate(contender, test, arguments.payloads[0])
            print("\nThe broker is warm.")
            for payload in arguments.payloads:
                for test in arguments.tests:
                    compare(bench, test, payload, arguments.rounds)
            figures(bench, arguments.rounds)


if __name__ == "__main__":
    main()
