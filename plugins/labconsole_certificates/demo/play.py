"""Plays the demo in a folder, phase by phase, before an audience: the terminal, or a dialog of the window."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from labconsole.security.x509.key_types import KeyType
from labconsole_certificates.demo.demo_states import (
    exchange_bundles,
    exchange_requests,
    faults,
    founded,
    seen_matrix,
    shake_all_hands,
)
from labconsole_certificates.exchange.handshake import Handshake
from labconsole_certificates.trust.matrix import Cell


class Audience(Protocol):
    """What follows the demo; an exception that it raises ends the demo."""

    def phase(self, title: str, count: int) -> AbstractContextManager[None]:
        """What is done `count` times within the context."""
        ...

    def founded(self, name: str) -> None:
        """A State has its console and CA."""

    def trusted(self, truster: str, trusted: str) -> None:
        """A State has imported the trust bundle of another one."""

    def certified(self, requester: str, issuer: str) -> None:
        """A State has imported the certificate that another one issued for it."""

    def proven(self, client: str, server: str, handshake: Handshake) -> None:
        """A State has connected to another one; `handshake` says whether both accepted."""


@dataclass(frozen=True)
class Played:
    """The result. `seen` is the matrix of the first State's console; `faults` has a sentence for each pair."""

    names: tuple[str, ...]
    seen: Mapping[tuple[str, str], Cell]
    handshakes: Mapping[tuple[str, str], Handshake]
    faults: tuple[str, ...]


def play(directory: Path, count: int, type: KeyType, audience: Audience) -> Played:
    """Let `count` States, each with a console in `directory`, exchange all and connect both ways. Raises UserError."""
    pairs = count * (count - 1)
    with ExitStack() as consoles:
        with audience.phase("States founded: root, CRL, keys, server's certificate", count):
            members = consoles.enter_context(founded(directory, count, type, audience.founded))
        with audience.phase("Trust bundles imported, fingerprint confirmed", pairs):
            exchange_bundles(members, audience.trusted)
        with audience.phase("CSRs handed over, approved, certificates handed back", pairs):
            exchange_requests(members, audience.certified)
        with audience.phase("Next trust bundles imported: whom each State trusts", pairs):
            exchange_bundles(members, audience.trusted)
        with audience.phase("Mutual TLS handshakes", pairs):
            handshakes = shake_all_hands(members, audience.proven)
        with audience.phase("Matrices made, one by each console", count):
            at = datetime.now(UTC)
            matrices = [seen_matrix(member, at) for member in members]
    names = tuple(member.name for member in members)
    return Played(names, matrices[0], handshakes, tuple(faults(matrices, handshakes)))
