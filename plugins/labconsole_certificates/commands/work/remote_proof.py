"""`labconsole pki connect | listen`."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from labconsole.cli.exit_codes import CANCELLED, FAILED, FINISHED
from labconsole.cli.interrupts import interrupts
from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.patience import WaitCancelledError
from labconsole_certificates.commands.work.shared import prompt, tell
from labconsole_certificates.exchange.remote_proving import Following, Place, RemoteProof, connect_to, listen_for


def connect(arguments: argparse.Namespace) -> int:
    """Connect A to the server of B; exit code 1 if the handshake fails. Raises UserError."""
    place = Place(arguments.host, arguments.port, arguments.name, arguments.foreign)
    with PkiStore.open() as store, _until_interrupted() as following:
        return _ended(lambda: connect_to(store, arguments.a, arguments.b, place, prompt(arguments), following))


def listen(arguments: argparse.Namespace) -> int:
    """Let A wait for one connection of B; exit code 1 if the handshake fails. Raises UserError."""
    at = (arguments.address, arguments.port, arguments.wait)
    with PkiStore.open() as store, _until_interrupted() as following:
        return _ended(lambda: listen_for(store, arguments.a, arguments.b, *at, prompt(arguments), following))


@contextmanager
def _until_interrupted() -> Iterator[Following]:
    with interrupts(threading.Event()) as interrupted:
        yield Following(tell, lambda _left: bool(interrupted))


def _ended(prove: Callable[[], RemoteProof]) -> int:
    try:
        proof = prove()
    except WaitCancelledError as error:
        tell(str(error))
        return CANCELLED
    tell(proof.sentence())
    return FINISHED if proof.ok else FAILED
