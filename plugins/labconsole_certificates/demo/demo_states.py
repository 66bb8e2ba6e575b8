"""All States of the demo, and what they do with each other, phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from itertools import permutations
from pathlib import Path

from labconsole.security.pki.store import PkiStore
from labconsole.security.x509.key_types import KeyType
from labconsole_certificates.demo.member import Member, found
from labconsole_certificates.exchange.handshake import Handshake, shake_hands
from labconsole_certificates.exchange.tls_proof import server_name, told
from labconsole_certificates.trust.matrix import HOLDS, Cell, CellStatus, matrix


def _ignored(*_what: object) -> None:
    """Progress that is not followed."""


@contextmanager
def founded(
    directory: Path, count: int, type: KeyType, done: Callable[[str], None] = _ignored
) -> Iterator[list[Member]]:
    """`count` States, each in a folder of its own in `directory`; their consoles are closed at the end.

    `done` is called with the name of each.
    """
    with ExitStack() as opened:
        members = []
        for number in range(count):
            name = state_name(number, count)
            folder = directory / name.lower().replace(" ", "-")
            folder.mkdir()
            store = opened.enter_context(PkiStore.open(folder / "pki"))
            members.append(found(folder, store, name, type))
            done(name)
        yield members


def state_name(number: int, count: int) -> str:
    """Name of a State: with a letter, or where these are too few, a number."""
    return f"State {chr(ord('A') + number)}" if count <= 26 else f"State {number + 1:02}"


def exchange_bundles(members: list[Member], done: Callable[[str, str], None] = _ignored) -> None:
    """Each State takes in the bundle of each other one; the first is confirmed by the fingerprint that it is told.

    `done` is called with the names of importer and subject.
    """
    files = [member.give_bundle() for member in members]
    for importer in members:
        for subject, file in zip(members, files, strict=True):
            if subject is not importer:
                importer.take_bundle(file, subject.fingerprint)
                done(importer.name, subject.name)


def exchange_requests(members: list[Member], done: Callable[[str, str], None] = _ignored) -> None:
    """Each State requests a client's certificate from the CA of each other one, and imports it.

    `done` is called with the names of requester and issuer.
    """
    for client, server in permutations(members, 2):
        client.take_certificate(server.answer_request(client.name, client.give_request(server.name)))
        done(client.name, server.name)


def shake_all_hands(
    members: list[Member], done: Callable[[str, str, Handshake], None] = _ignored
) -> dict[tuple[str, str], Handshake]:
    """`[client] -> tls-connect -> [server]` for every directed pair, by the names of both; noted in both consoles.

    `done` is called with each.
    """
    servers = {member.name: member.server_end() for member in members}
    shaken = {}
    for client in members:
        snapshot = client.store.snapshot()
        for name, server in servers.items():
            if name != client.name:
                end = client.client_end(snapshot, name)
                handshake = shaken[client.name, name] = shake_hands(end, server, server_name(server.certificate))
                done(client.name, name, handshake)
    for member in members:
        member.note_handshakes(shaken, servers)
    return shaken


def seen_matrix(member: Member, at: datetime) -> dict[tuple[str, str], Cell]:
    """Who trusts whom, as the console of one State knows it, by names."""
    seen = matrix(member.store.snapshot(), at)
    names = {state.id: state.name for state in seen.states}
    return {(names[truster], names[trusted]): cell for (truster, trusted), cell in seen.cells.items()}


def faults(
    matrices: Sequence[Mapping[tuple[str, str], Cell]], handshakes: Mapping[tuple[str, str], Handshake]
) -> list[str]:
    """A sentence for each pair without trust or handshake, or that the consoles do not agree on."""
    found = [told(client, server, each) for (client, server), each in handshakes.items() if not each.ok]
    for pair, cell in matrices[0].items():
        if cell.status not in HOLDS and cell.status is not CellStatus.OWN:
            found.append(cell.cause)
        elif any(other[pair].status is not cell.status for other in matrices):
            found.append(f"The consoles do not agree on whether {pair[0]} trusts {pair[1]}.")
    return found
