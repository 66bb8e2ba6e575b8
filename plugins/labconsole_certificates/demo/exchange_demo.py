"""The demo as an operation: States exchange, every directed pair connects; reports the matrix and the times."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import ClassVar, Protocol

from labconsole.errors import UserError
from labconsole.model.operation import HomePath, Operation, OperationContext, Result, TextTable, Tone, TonedText
from labconsole.model.parameters import parameter
from labconsole.model.trial import Parameters
from labconsole.security.x509.key_types import TITLES, KeyType
from labconsole_certificates.demo.demo_states import (
    connect_all_pairs,
    exchange_bundles,
    exchange_requests,
    faults,
    founded,
    seen_matrix,
)
from labconsole_certificates.exchange.handshake import Handshake
from labconsole_certificates.trust.matrix import HOLDS, Cell, CellStatus


class DemoObserver(Protocol):
    """Observer of the demo; an exception that it raises ends the demo."""

    def phase(self, title: str, count: int) -> AbstractContextManager[None]:
        """Context of a phase with `count` steps."""
        ...

    def founded(self, name: str) -> None:
        """Called when a State has its console and CA."""

    def trusted(self, truster: str, trusted: str) -> None:
        """Called when a State has imported the trust bundle of another one."""

    def certified(self, requester: str, issuer: str) -> None:
        """Called when a State has imported the certificate that another one issued for it."""

    def proven(self, client: str, server: str, handshake: Handshake) -> None:
        """Called when a State has connected to another one; `handshake` says whether both accepted."""


@dataclass(frozen=True)
class DemoResult:
    """The result. `seen` is the matrix of the first State's console; `faults` has a sentence for each pair."""

    names: tuple[str, ...]
    seen: Mapping[tuple[str, str], Cell]
    handshakes: Mapping[tuple[str, str], Handshake]
    faults: tuple[str, ...]


_FEWEST, _MOST = 2, 60
"""Limits of the number of States."""

LEGEND = (
    "Row trusts column, and connects to it:  ✓ trusted and proven by a handshake  t trusted only  ✗ not trusted  · own"
)
_WIDE = 6
"""Up to this number of States, cells contain words."""
_EVENTS_OF_A_PAIR = 4
"""Steps of a pair: two trust bundles, a certificate, and a handshake."""
_SHOWN = 5
"""Pairs with a fault that are listed, at most."""


class DemoParameters(Parameters):
    """Number of States, and type of their keys."""

    states: int = parameter("States", "Number of States", default=_FEWEST, ge=_FEWEST, le=_MOST)
    key_type: KeyType = parameter(
        "Kind of key",
        "Of all key pairs",
        default=KeyType.P_256,
        labels={str(kind): TITLES[kind] for kind in KeyType},
        option="--type",
        aliases=["--key-type"],
        metavar="TYPE",
    )
    keep: HomePath | None = parameter(
        "Keep in",
        "New folder in which consoles and exchanged files are kept",
        default=None,
        kind="folder",
        empty="Not kept",
    )

    @property
    def kept(self) -> str:
        """A sentence on the folder that is kept; empty if none is."""
        return "" if self.keep is None else f"Consoles and exchanged files are kept in {self.keep}"

    @property
    def cancelled(self) -> str:
        """The sentence for a demo that was cancelled."""
        kept = "its folder was removed" if self.keep is None else f"{self.keep} is incomplete"
        return f"The demo was cancelled, and {kept}."


def play(parameters: DemoParameters, audience: DemoObserver) -> DemoResult:
    """The result of the States that exchange and connect both ways, each with a console. Raises UserError."""
    count = parameters.states
    pairs = count * (count - 1)
    with _directory(parameters.keep) as directory, ExitStack() as consoles:
        with audience.phase("States founded: root, CRL, keys, server's certificate", count):
            members = consoles.enter_context(founded(directory, count, parameters.key_type, audience.founded))
        with audience.phase("Trust bundles imported, fingerprint confirmed", pairs):
            exchange_bundles(members, audience.trusted)
        with audience.phase("CSRs sent, approved, certificates returned", pairs):
            exchange_requests(members, audience.certified)
        with audience.phase("Next trust bundles imported: whom each State trusts", pairs):
            exchange_bundles(members, audience.trusted)
        with audience.phase("Mutual TLS handshakes", pairs):
            handshakes = connect_all_pairs(members, audience.proven)
        with audience.phase("Matrices computed, one by each console", count):
            at = datetime.now(UTC)
            matrices = [seen_matrix(member, at) for member in members]
    names = tuple(member.name for member in members)
    return DemoResult(names, matrices[0], handshakes, tuple(faults(matrices, handshakes)))


class Demo(Operation[DemoParameters]):
    """Lets States exchange CSRs and trust bundles, and proves every directed pair by a TLS handshake."""

    name: ClassVar[str] = "certificates.demo"
    title: ClassVar[str] = "Demo of the exchange"
    description: ClassVar[str] = (
        "Lets States, each with a console and a CA of its own in a temporary folder, exchange CSRs and trust bundles, "
        "and proves every directed pair by a TLS handshake."
    )
    parameters: ClassVar[type[Parameters]] = DemoParameters

    def run(self, parameters: DemoParameters, context: OperationContext) -> Result:
        pairs = parameters.states * (parameters.states - 1)
        times = _Times(context, parameters.states + _EVENTS_OF_A_PAIR * pairs)
        try:
            played = play(parameters, times)
        except _CancelledError:
            return Result((parameters.cancelled,))
        proven = [each.duration_ns for each in played.handshakes.values() if each.ok]
        parts: list[str | TextTable] = [
            f"{parameters.states} States, {TITLES[parameters.key_type]}, each with a console and a CA of its own.\n",
            matrix(played.names, played.seen, played.handshakes),
            LEGEND,
        ]
        if proven:
            middle_ms, longest_ms = median(proven) / 1e6, max(proven) / 1e6
            parts.append(f"Handshake: median {middle_ms:.1f} ms, longest {longest_ms:.1f} ms, measured.\n")
        parts += [*(TonedText(fault, Tone.BAD) for fault in played.faults[:_SHOWN]), times.table()]
        parts.append(f"\n{len(proven)} of {pairs} directed pairs proven by a handshake; {times.total_s:.1f} s in all.")
        if parameters.keep is not None:
            parts.append(parameters.kept)
        return Result(tuple(parts), _data(played, len(proven), times.total_s), passed=not played.faults)


class _CancelledError(Exception):
    """The operator has cancelled the demo."""


class _Times:
    """Times the phases of the demo; reports progress, and ends the demo when it is cancelled."""

    def __init__(self, context: OperationContext, events: int) -> None:
        self.total_s = 0.0
        self._context = context
        self._rows: list[tuple[str, str, str, str]] = []
        self._done, self._events = 0, events

    @contextmanager
    def phase(self, title: str, count: int) -> Iterator[None]:
        """Context of a phase with `count` steps."""
        self._stop_if_cancelled()
        self._context.say(f"{title} ...")
        begun = time.perf_counter()
        yield
        duration_s = time.perf_counter() - begun
        self.total_s += duration_s
        self._rows.append((title, f"{count:,}", f"{duration_s:.2f} s", f"{duration_s * 1000 / count:.1f} ms"))

    def founded(self, name: str) -> None:
        """Count one step."""
        self._step()

    def trusted(self, truster: str, trusted: str) -> None:
        """Count one step."""
        self._step()

    def certified(self, requester: str, issuer: str) -> None:
        """Count one step."""
        self._step()

    def proven(self, client: str, server: str, handshake: Handshake) -> None:
        """Count one step."""
        self._step()

    def table(self) -> TextTable:
        """The duration of all phases."""
        return TextTable(("Phase", "Number", "Time", "Each"), tuple(self._rows))

    def _step(self) -> None:
        self._stop_if_cancelled()
        self._done += 1
        self._context.progress(self._done, self._events)

    def _stop_if_cancelled(self) -> None:
        if self._context.stop_requested:
            raise _CancelledError


@contextmanager
def _directory(keep: Path | None) -> Iterator[Path]:
    """A temporary folder, removed in the end, or the one to keep. Raises UserError."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="labconsole-pki-demo-") as temporary:
            yield Path(temporary)
        return
    try:
        keep.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        raise UserError(f"{keep} is there already: name a folder that is not there yet.") from error
    except OSError as error:
        raise UserError(f"{keep} cannot be created ({error.strerror or error}): name another folder.") from error
    yield keep


def matrix(
    names: Sequence[str], seen: Mapping[tuple[str, str], Cell], handshakes: Mapping[tuple[str, str], Handshake]
) -> TextTable:
    """The matrix by (row, column): with words for a few States, with one sign for each pair for many."""
    wide = len(names) <= _WIDE
    rows = (
        (row, *(_cell(seen[row, column], handshakes.get((row, column)), wide=wide) for column in names))
        for row in names
    )
    headings = names if wide else [name.removeprefix("State ") for name in names]
    return TextTable(("", *headings), tuple(rows), narrow=not wide)


def _cell(cell: Cell, handshake: Handshake | None, *, wide: bool) -> TonedText:
    holds, proven = cell.status in HOLDS, handshake is not None and handshake.ok
    if cell.status is CellStatus.OWN:
        sign, tone, words = "·", Tone.MUTED, "own root"
    elif holds and proven:
        sign, tone, words = "✓", Tone.GOOD, f"{cell.status} until {cell.until:%Y-%m-%d}, {_duration(handshake)}"
    elif holds:
        sign, tone, words = "t", Tone.WARNING, f"{cell.status} until {cell.until:%Y-%m-%d}, no handshake"
    else:
        sign, tone, words = "✗", Tone.BAD, str(cell.status)
    return TonedText(f"{sign} {words}" if wide else sign, tone)


def _duration(handshake: Handshake | None) -> str:
    return "" if handshake is None else f"{handshake.protocol} in {handshake.duration_ns / 1e6:.1f} ms"


def _data(played: DemoResult, proven: int, total_s: float) -> dict[str, object]:
    return {
        "states": list(played.names),
        "pairs": len(played.handshakes),
        "proven": proven,
        "seconds": round(total_s, 3),
        "faults": list(played.faults),
        "handshakes": [
            {"client": client, "server": server, "ok": one.ok, "ms": one.duration_ns / 1e6}
            for (client, server), one in played.handshakes.items()
        ],
    }
