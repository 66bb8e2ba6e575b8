"""How fast the fast link and the embedded broker are: sender, broker and receiver in a process each, on loopback.

    python tests/benchmarks/amqp_link.py [--seconds 5] [--runs 3] [--payload 237] [--settled] [--foreign HOST:PORT]

Prints, per run and as medians, messages per second from the first to the last received, and the CPU time per message
of each process. A figure of this machine at this moment, never a test.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from cryptography import __version__ as cryptography_version
from proton import VERSION as PROTON_VERSION

from labconsole.security.identities import IdentityFiles, load_identity
from labconsole_amqp.broker.embedded_broker import Broker, BrokerSettings
from labconsole_amqp.link.connection import Endpoint, connect
from labconsole_amqp.link.receiver import Receiver
from labconsole_amqp.link.sender import Sender
from labconsole_amqp.link.tls import TlsSettings
from labconsole_amqp.wire.template import Template, plain_template
from tests.labconsole_amqp.lab_pki import LabCa

_QUEUE = "benchmark"


def template(payload: int) -> Template:
    """A plain message of the source's tool with `payload` bytes."""
    return plain_template(b"x" * payload, None)


def tls_of(options: dict[str, Any], name: str) -> TlsSettings:
    """TLS settings of one end, from the folder of certificates."""
    folder = Path(options["pki"])
    files = IdentityFiles(
        certificate=folder / f"{name}.pem", key=folder / f"{name}.key", trust=folder / "ca.pem", keyring_entry=""
    )
    return TlsSettings(load_identity(files, name))


def endpoint(options: dict[str, Any]) -> Endpoint:
    """Where sender and receiver connect to."""
    return Endpoint(options["host"], options["port"], tls_of(options, "client") if options["tls"] else None)


def run_broker(options: dict[str, Any]) -> dict[str, Any]:
    """Serve until standard input ends."""
    tls = tls_of(options, "broker")
    broker = Broker(BrokerSettings(queues=(_QUEUE,), tls_port=0, tls=tls), on_refused=sys.exit)
    print(json.dumps(asdict(broker.listen())), flush=True)
    enough = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        enough.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    broker.serve(enough.is_set, lambda: None)
    broker.close()
    return {"messages": sum(counts.received for counts in broker.counts().values())}


def run_sender(options: dict[str, Any]) -> dict[str, Any]:
    """Send as fast as credit allows."""
    message = template(options["payload"])
    with connect(endpoint(options)) as connection:
        sender = Sender(connection, _QUEUE, settled=options["settled"])
        end = time.monotonic() + options["seconds"]
        while time.monotonic() < end:
            if len(sender.send(message, 1024)) == 0:
                sender.pump(0.1)
            sender.pump(0)
        sender.drain(10)
        return {"messages": sender.sent, "tls": connection.tls_version, "cipher": connection.cipher}


def run_receiver(options: dict[str, Any]) -> dict[str, Any]:
    """Receive until nothing comes any more."""
    failed, first, last = 0, 0, 0
    with connect(endpoint(options)) as connection:
        receiver = Receiver(connection, _QUEUE, settled=options["settled"], templates=[template(options["payload"])])
        print("ready", flush=True)
        quiet_since = time.monotonic() + 5
        while time.monotonic() < quiet_since + 1:
            batch = receiver.receive(1000, 0.1, 0.002)
            if len(batch):
                failed += int(np.count_nonzero(~batch.matched))
                first, last = first or int(batch.received_ns[0]), int(batch.received_ns[-1])
                quiet_since = time.monotonic()
        rate = receiver.received / ((last - first) / 1e9)
        return {"messages": receiver.received, "failed": failed, "rate": rate}


ROLES = {"broker": run_broker, "sender": run_sender, "receiver": run_receiver}


def start(role: str, options: dict[str, Any]) -> subprocess.Popen[str]:
    """Start one role in a process of its own."""
    arguments = [sys.executable, __file__, "--role", role, "--options", json.dumps(options)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The result of a role, with its CPU seconds."""
    out, _ = process.communicate()
    result: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return result


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """One run through a broker of its own, or through a foreign one."""
    broker = None
    if "host" not in options:
        broker = start("broker", options)
        assert broker.stdout is not None
        ports = json.loads(broker.stdout.readline())
        options = {**options, "host": "127.0.0.1", "port": ports["tls" if options["tls"] else "plain"]}
    receiver = start("receiver", options)
    assert receiver.stdout is not None
    receiver.stdout.readline()
    sender = start("sender", options)
    results = {"sender": finish(sender), "receiver": finish(receiver)}
    if broker is not None:
        results["broker"] = finish(broker)
    messages = results["receiver"]["messages"]
    return {
        "rate": results["receiver"]["rate"],
        "lost": results["sender"]["messages"] - messages,
        "failed": results["receiver"]["failed"],
        **{f"{role} us": result["cpu_s"] / messages * 1e6 for role, result in results.items()},
    }


def main() -> None:
    """Parse the command line and print figures, or be one of the roles."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--payload", type=int, default=237, help="bytes")
    parser.add_argument("--settled", action="store_true", help="pre-settled instead of acknowledged")
    parser.add_argument("--foreign", metavar="HOST:PORT", help="a broker that runs already, plain, queue `benchmark`")
    parser.add_argument("--role", choices=ROLES, help=argparse.SUPPRESS)
    parser.add_argument("--options", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role:
        result = ROLES[arguments.role](arguments.options)
        print(json.dumps({**result, "cpu_s": time.process_time()}))
        return
    print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, proton {PROTON_VERSION}")
    print(f"{ssl.OPENSSL_VERSION}, cryptography {cryptography_version}, numpy {np.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        ca = LabCa(Path(folder))
        ca.issue("broker", of_rsa=True)
        ca.issue("client", of_rsa=True)
        base = {name: getattr(arguments, name) for name in ("seconds", "payload", "settled")} | {"pki": folder}
        if arguments.foreign:
            host, port = arguments.foreign.rsplit(":", 1)
            base |= {"host": host, "port": int(port)}
        for tls in (False,) if arguments.foreign else (False, True):
            runs = [measure({**base, "tls": tls}) for _ in range(arguments.runs)]
            kind = "TLS  " if tls else "plain"
            for run in runs:
                print(kind, " ".join(f"{name} {value:,.1f}" for name, value in run.items()))
            medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
            print(kind, "median:", " ".join(f"{name} {value:,.1f}" for name, value in medians.items()), flush=True)


if __name__ == "__main__":
    main()
