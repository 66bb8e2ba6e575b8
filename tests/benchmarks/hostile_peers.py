"""Damaged connections to `pki listen` and requests to the OCSP responder, 200,000 each: neither may end, or stop
answering who comes after. `hostile_peers.py [ocsp] [listen] [--count N]`"""

from __future__ import annotations

import argparse
import os
import random
import resource
import socket
import ssl
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
os.environ["LABCONSOLE_HOME"] = tempfile.mkdtemp(prefix="hostile-peers-")

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from labconsole.paths import pki_dir
from labconsole.security.pki.store import PkiStore
from labconsole_certificates.exchange.remote_tls_proof import ProofProgress, listen_for
from labconsole_certificates.operations.authorities import create_root
from labconsole_certificates.operations.new_keys import NewKey
from labconsole_certificates.operations.states import add_state
from labconsole_certificates.revocation import ocsp_responder
from tests.helpers.mutations import mutations
from tests.labconsole_certificates.exchange.two_consoles import connected, make_consoles

AT_ONCE = 8
BATCH = 1_000
SEED = 20261122


def spread(count: int, attack: Callable[[int], str]) -> Counter[str]:
    """What became of `count` connections, eight at a time."""
    outcomes: Counter[str] = Counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for begin in range(0, count, BATCH):  # so that the memory is the peer's, and not that of waiting futures
            outcomes.update(pool.map(attack, range(begin, min(begin + BATCH, count))))
    return outcomes


def report(name: str, count: int, outcomes: Counter[str], begun: float, faults: int, alive: bool) -> bool:
    """Print how it went; whether it went well."""
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    listed = ", ".join(f"{many:,} {what}" for what, many in outcomes.most_common())
    print(
        f"{name}: {count:,} damaged inputs in {time.monotonic() - begun:.0f} s: {listed}; {faults} faults, "
        f"{'answers' if alive else 'DOES NOT ANSWER'} afterwards, at most {megabytes:.0f} MB",
        flush=True,
    )
    return alive and not faults


def attack_ocsp(count: int) -> bool:
    """HTTP around a request, or the request in it, is damaged."""
    faults: list[str] = []
    ocsp_responder._Server.handle_error = (  # type: ignore[method-assign]
        lambda *_: None if isinstance(sys.exc_info()[1], OSError) else faults.append(repr(sys.exc_info()[1]))
    )
    with PkiStore.open(pki_dir()) as store:
        root = create_root(store, add_state(store, "Fuzzed"), NewKey())
        request = ocsp.OCSPRequestBuilder().add_certificate(root.certificate, root.certificate, hashes.SHA256())
        asked = request.add_extension(x509.OCSPNonce(bytes(16)), critical=False).build().public_bytes(Encoding.DER)

        def posted(body: bytes) -> bytes:
            head = f"POST / HTTP/1.0\r\nContent-Type: application/ocsp-request\r\nContent-Length: {len(body)}\r\n\r\n"
            return head.encode() + body

        with ocsp_responder.serving(store, root) as running:
            address = ("127.0.0.1", int(running.url.rstrip("/").rsplit(":", 1)[1]))

            def attack(number: int) -> str:
                [damaged] = mutations(asked if number % 2 else posted(asked), 1, SEED + number)
                return answered(address, posted(damaged) if number % 2 else damaged)

            begun = time.monotonic()
            outcomes = spread(count, attack)
            alive = answered(address, posted(asked)) == "answered 200"
            return report("ocsp", count, outcomes, begun, len(faults), alive)


def answered(address: tuple[str, int], data: bytes) -> str:
    """Send `data`, and no more; what came back."""
    try:
        with socket.create_connection(address, timeout=20) as via:
            via.sendall(data)
            via.shutdown(socket.SHUT_WR)
            received = via.recv(64)
            with suppress(OSError):
                while via.recv(65_536):
                    """What is not read would make it a reset."""
    except TimeoutError:
        return "timed out"
    except OSError:
        return "closed"
    words = received.split()
    return f"answered {words[1].decode(errors='replace')}" if len(words) > 1 else "closed"


def flights(context: ssl.SSLContext, exchange: Callable[[bytes], bytes]) -> Iterator[None]:
    """A client's handshake in memory: each flight goes through `exchange`, which returns the server's."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="broker.b.example")
    while True:
        with suppress(ssl.SSLWantReadError):
            client.do_handshake()
            return
        received = exchange(outgoing.read())
        if not received:
            return
        incoming.write(received)
        yield


def attack_listen(count: int) -> bool:
    """Each client damages one flight of its handshake, which TLS 1.2 sends with its certificate in the clear."""
    directory = Path(os.environ["LABCONSOLE_HOME"]) / "consoles"
    directory.mkdir()
    make_consoles(directory)
    contexts = []
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode, context.maximum_version = False, ssl.CERT_NONE, version
        contexts.append(context)
    said: Counter[str] = Counter()
    begins: list[str] = []
    ready = threading.Event()

    def say(sentence: str) -> None:
        if not begins:
            begins.append(sentence)
            ready.set()
        said["reported"] += 1

    def listen() -> object:
        with PkiStore.open(directory / "b") as store:
            following = ProofProgress(say, lambda _left: False)
            return listen_for(store, "State B", "State A", "127.0.0.1", 0, 86_400, None, following)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(listen)
        ready.wait(30)
        port = int(begins[0].split(" waits at 127.0.0.1:")[1].split()[0])

        def attack(number: int) -> str:
            chance = random.Random(SEED + number)
            hit, at = chance.randrange(2), 0
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=60) as via:

                    def exchange(data: bytes) -> bytes:
                        nonlocal at
                        if at == hit and data:
                            [data] = mutations(data, 1, SEED + number)
                        at += 1
                        via.sendall(data)
                        if at > hit:
                            via.shutdown(socket.SHUT_WR)
                        return via.recv(65_536)

                    for _ in flights(contexts[number % 2], exchange):
                        """Until the server or the client has had enough."""
            except ssl.SSLError:
                return "refused by the client"
            except OSError:
                return "closed"
            return "ended"

        begun = time.monotonic()
        outcomes = spread(count, attack)
        alive = not waiting.done()
        if alive:
            alive = connected(directory / "a", port, "State A", "State B", server_name="broker.b.example").ok
        fault = "" if alive else repr(waiting.exception(timeout=1) if waiting.done() else "still waiting")
        print(f"listen: {said['reported'] - 1:,} failed connections were reported {fault}")
        return report("listen", count, outcomes, begun, 0, alive and waiting.result().ok)  # type: ignore[attr-defined]


def main() -> int:
    """Exit code 1: one of them ended, failed, or does not answer any more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", nargs="*", help="ocsp or listen; default: both")
    parser.add_argument("--count", type=int, default=200_000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    attacks = {"ocsp": attack_ocsp, "listen": attack_listen}
    fine = [attacks[name](arguments.count) for name in arguments.peer or attacks]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
