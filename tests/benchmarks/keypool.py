"""What the signing engine costs: whole requests per core, what a second signer adds, and how steady it signs.

    python tests/benchmarks/keypool.py [--requests 1000] [--seconds 20] [--kind rsa-2048]

A request is: claim a key, unwrap it, sign, CSR with the same key, verify both, certificate, destroy the key, record it.
The key store is filled beforehand with a few key pairs, each stored many times: to unwrap one costs the same, and to
generate so many would take minutes. A signer has one thread that signs and one that unwraps; it is kept on one core for
the rate per core, and so are two signers on two. OpenSSL's own gain from a second core is printed next to ours, since
two cores of a shared machine are rarely twice one. Figures of this machine at this moment, never a test.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.metadata import version
from multiprocessing.process import BaseProcess
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from typing import TypeVar

from labconsole.clock import now_ns
from labconsole.model.series import Level
from labconsole.security.secrets import Secret
from labconsole.security.token.configuration import TokenConfiguration
from labconsole.security.token.cryptoki.opening import Token, open_token
from labconsole.security.token.lab_token import make_softhsm_token
from labconsole.security.token.mechanisms import KeyKind
from labconsole_keypool.choices import KeyOrigin, KeySource, Refill
from labconsole_keypool.device.certification_authority import SigningCA
from labconsole_keypool.device.emulation import Device, sleep_until
from labconsole_keypool.device.generator import Generator
from labconsole_keypool.device.signing import SigningEngine
from labconsole_keypool.messages.service_frames import Done, Job, JobKind
from labconsole_keypool.store.key_records import NewKey
from labconsole_keypool.store.key_store import KeyStore

PIN = Secret("benchmark-user")
DISTINCT_KEYS = 8
BATCH = 175
WARM_UP = 50
PER_SECOND = 50
LONGEST_S = 600

Answer = TypeVar("Answer")

CONTEXT = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Place:
    """The paths of the token and the key store, and the kind of their keys; handed to other processes."""

    configuration: TokenConfiguration
    directory: Path
    kind: KeyKind

    @property
    def store(self) -> Path:
        """The file of the key store."""
        return self.directory / "keys.db"


class Silent:
    """Drops reports; prints a warning."""

    def count(self, channel: str, amount: int) -> None:
        """Nothing."""

    def event(self, name: str, message: str, level: Level = Level.INFO, **data: object) -> None:
        """Print it: there should be none."""
        print(f"{name}: {message}")

    def refill(self, started_ns: int, finished_ns: int, keys: int) -> None:
        """Nothing."""


def main() -> None:
    """Make a token and a key store in a temporary directory, and print machine, versions and all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000, help="requests of each signer (%(default)s)")
    parser.add_argument("--seconds", type=int, default=20, help="how long to sign at 50/s (%(default)s)")
    parser.add_argument("--kind", type=KeyKind, default=KeyKind.RSA_2048, choices=list(KeyKind))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.environ["LABCONSOLE_HOME"] = directory
        configuration = make_softhsm_token(Path(directory) / "token", "benchmark", PIN, Secret("benchmark-officer"))
        place = Place(configuration, Path(directory), asked.kind)
        print(f"{platform.platform()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
        in_child(prepare, place, 3 * (asked.requests + WARM_UP) + PER_SECOND * asked.seconds + 10 * BATCH)
        print(f"keys {asked.kind}, CA's key P-256 in software, one signing thread a signer")
        print_load()
        requests_per_core(place, asked.requests)
        print_load()
        steadiness(place, asked.seconds)
        print_load()


def prepare(place: Place, keys: int) -> None:
    """Print the versions; make the CA, and fill the key store with `keys` keys."""
    with open_token("benchmark", place.configuration, PIN) as token, KeyStore.open(place.store) as store:
        print(
            f"{token.identity.manufacturer} {token.identity.library_version}, {openssl('version').strip()}, "
            f"python-pkcs11 {version('python-pkcs11')}, cryptography {version('cryptography')}"
        )
        SigningCA.of_lab()
        generator = Generator(token, store, Device(), place.kind, 10_000_000)
        generator.make(DISTINCT_KEYS, lambda: False, lambda stored: None)
        claimed = store.claim(place.kind, [generator.ensure_wrapper()], DISTINCT_KEYS)
        made = [NewKey(one.kind, one.private, one.public, one.wrapper, one.mechanism, 0, 0, 0) for one in claimed]
        store.add([made[number % DISTINCT_KEYS] for number in range(keys)])


def requests_per_core(place: Place, requests: int) -> None:
    """Print whole requests a second of one signer on one core, and of two on two."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    (one,) = signers(place, requests, cores[:1])
    print(f"\nwhole requests, a signer on one core: {one.rate:.0f}/s, {one.per_cpu_s:.0f} per CPU second, to reach 250")
    if len(cores) < 2:
        print("two signers: this machine has one core")
        return
    two = signers(place, requests, cores)
    gained = sum(signer.rate for signer in two) / one.rate
    print(
        f"two signers on two cores: {' + '.join(f'{signer.rate:.0f}' for signer in two)}/s, x{gained:.2f}, to reach 1.8"
        f" (per CPU second x{sum(signer.per_cpu_s for signer in two) / one.per_cpu_s:.2f})"
    )
    alone, both = openssl_rate(1), openssl_rate(2)
    print(f"OpenSSL's own RSA-2048 signatures: {alone:.0f}/s, with -multi 2 {both:.0f}/s, x{both / alone:.2f}")


@dataclass(frozen=True)
class Rate:
    """What one signer reached: requests a second of the clock, and of its processor time."""

    rate: float
    per_cpu_s: float


def signers(place: Place, requests: int, cores: Sequence[int]) -> list[Rate]:
    """The rates of as many signers as there are cores, all at the same time."""
    begin, results = CONTEXT.Barrier(len(cores)), CONTEXT.SimpleQueue()
    processes = [
        CONTEXT.Process(target=sign_all, args=(place, requests, core, begin, results), daemon=True) for core in cores
    ]
    for process in processes:
        process.start()
    found = [answer(results, processes) for _ in processes]
    for process in processes:
        process.join()
    return found


def sign_all(place: Place, requests: int, core: int, begin: Barrier, results: SimpleQueue[Rate]) -> None:
    """One signer: so many requests, one after the other, as fast as it can."""
    os.sched_setaffinity(0, {core})
    with (
        open_token("benchmark", place.configuration, PIN) as token,
        KeyStore.open(place.store) as store,
        closing(engine_on(token, store, place.kind)) as engine,
    ):
        engine.start_refill()
        for number in range(WARM_UP):
            pooled(engine.process(0, job(place, number)))
        begin.wait(LONGEST_S)
        began_ns, began_cpu_ns = now_ns(), time.process_time_ns()
        for number in range(requests):
            pooled(engine.process(0, job(place, number)))
        taken_ns, taken_cpu_ns = now_ns() - began_ns, time.process_time_ns() - began_cpu_ns
    results.put(Rate(requests * 1e9 / taken_ns, requests * 1e9 / taken_cpu_ns))


def steadiness(place: Place, seconds: int) -> None:
    """Print how long signatures take at 50/s while another process generates and keys are unwrapped at the same
    time."""
    stop, results, made = CONTEXT.Event(), CONTEXT.SimpleQueue(), CONTEXT.SimpleQueue()
    generator = CONTEXT.Process(target=generate_until, args=(place, stop, made), daemon=True)
    signer = CONTEXT.Process(target=sign_steadily, args=(place, seconds, results), daemon=True)
    generator.start()
    signer.start()
    done = answer(results, (generator, signer))
    stop.set()
    keys = answer(made, (generator,))
    for process in (generator, signer):
        process.join()
    print(
        f"\n{PER_SECOND} requests/s for {seconds} s, while {keys} key pairs were generated and each key unwrapped, ms"
    )
    print(row("", ("p50", "p95", "p99", "max")))
    for name, times in (("got key -> signed, p99 to reach 10", 0), ("received -> certificate", 1)):
        taken = sorted(one[times] / 1e6 for one in done)
        places = [taken[min(len(taken) - 1, int(len(taken) * share))] for share in (0.5, 0.95, 0.99, 1.0)]
        print(row(f"  {name}", [f"{place:.2f}" for place in places]))


def sign_steadily(place: Place, seconds: int, results: SimpleQueue[list[tuple[int, int]]]) -> None:
    """Requests that are due every 20 ms; of each, how long the signature took, and how long all of it, in ns."""
    done: list[Done] = []
    due: list[int] = []
    with (
        open_token("benchmark", place.configuration, PIN) as token,
        KeyStore.open(place.store) as store,
        closing(engine_on(token, store, place.kind)) as engine,
    ):
        engine.fill(2 * BATCH)
        engine.start_refill()
        start_ns = now_ns() + 1_000_000_000
        for number in range(PER_SECOND * seconds):
            due.append(start_ns + number * 1_000_000_000 // PER_SECOND)
            sleep_until(due[-1])
            done.append(engine.process(0, replace(job(place, number), received_ns=due[-1])))
    results.put(
        [(one.signed_ns - one.got_key_ns, one.finished_ns - at_ns) for one, at_ns in zip(done, due, strict=True)]
    )


def generate_until(place: Place, stop: Event, made: SimpleQueue[int]) -> None:
    """Generate key pairs of the same kind in the same token until asked to stop; how many there were."""
    with open_token("benchmark", place.configuration, PIN) as token, KeyStore.open(place.store) as store:
        made.put(
            Generator(token, store, Device(), place.kind, 10_000_000).make(10**9, stop.is_set, lambda stored: None)
        )


def engine_on(token: Token, store: KeyStore, kind: KeyKind) -> SigningEngine:
    """A signer's engine with one signing thread."""
    return SigningEngine(
        token,
        store,
        SigningCA.of_lab(),
        Device(),
        Silent(),
        kind=kind,
        threads=1,
        keys=KeySource.POOL,
        batch=BATCH,
        low_water=BATCH,
        refill=Refill.PARALLEL,
        run="benchmark",
    )


def job(place: Place, number: int) -> Job:
    """A request to sign a random digest."""
    return Job(number, now_ns(), JobKind.DIGEST, place.kind, os.urandom(32))


def pooled(done: Done) -> None:
    """A key that had to be generated would be another measurement."""
    assert done.source is not KeyOrigin.GENERATED, "the pool was empty"


def answer(queue: SimpleQueue[Answer], processes: Sequence[BaseProcess]) -> Answer:
    """What the next of `processes` has to say; ends this program if one of them failed."""
    while queue.empty():
        if any(process.exitcode for process in processes):
            raise SystemExit("A process of the benchmark failed: see above.")
        time.sleep(0.05)
    return queue.get()


def in_child(target: Callable[..., None], *arguments: object) -> None:
    """Run `target` in a process of its own, since a process loads a module once."""
    process = CONTEXT.Process(target=target, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(process.exitcode)


def openssl(*arguments: str) -> str:
    """What the command-line tool prints; it may be another OpenSSL than the module's."""
    command = shutil.which("openssl")
    if command is None:
        return "no openssl command"
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=True).stdout


def openssl_rate(processes: int) -> float:
    """RSA-2048 signatures a second of so many processes of OpenSSL's own benchmark; 0 without the command."""
    printed = openssl("speed", "-seconds", "3", *(("-multi", "2") if processes == 2 else ()), "rsa2048")
    found = re.search(r"^rsa 2048 bits +\S+s +\S+s +([\d.]+)", printed, re.MULTILINE)
    return float(found[1]) if found else 0.0


def print_load() -> None:
    """Print the load average of the last minute, where the system has one."""
    if hasattr(os, "getloadavg"):
        print(f"load average: {os.getloadavg()[0]:.2f}")


def row(name: str, cells: Iterable[str]) -> str:
    """A line of the table."""
    return name.ljust(40) + "".join(cell.rjust(9) for cell in cells)


if __name__ == "__main__":
    main()
