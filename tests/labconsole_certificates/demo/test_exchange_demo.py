"""`labconsole pki demo`: every directed pair is proven, failures are reported, and nothing is left behind."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from labconsole.cli.exit_codes import BAD_USAGE, FAILED, FINISHED
from labconsole.cli.main import main
from labconsole.engine.operation_process import Outcome
from labconsole.model.operation import Tone, TonedText
from labconsole.security.pki.reader import PkiReader
from labconsole.security.x509.cms import verify
from labconsole.security.x509.key_types import KeyType
from labconsole_certificates.demo.demo_states import (
    connect_all_pairs,
    exchange_bundles,
    exchange_requests,
    faults,
    founded,
    seen_matrix,
)
from labconsole_certificates.demo.exchange_demo import matrix
from labconsole_certificates.exchange.handshake import Handshake
from labconsole_certificates.exchange.progress import exchange_of
from labconsole_certificates.trust.bundle_format import decode
from labconsole_certificates.trust.matrix import Cell, CellStatus
from tests.helpers.operations import Operations


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo makes its temporary folder."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@dataclass(frozen=True)
class ProvenPair:
    """State A and State B after the demo: the handshakes both ways, and the matrix that State A shows."""

    handshakes: Mapping[tuple[str, str], Handshake]
    seen: Mapping[tuple[str, str], Cell]


@pytest.fixture(scope="module")
def proven_pair(tmp_path_factory: pytest.TempPathFactory) -> ProvenPair:
    """Two States; their second bundles tell whom each of them trusts."""
    with founded(tmp_path_factory.mktemp("pair"), 2, KeyType.P_256) as members:
        for _ in range(2):
            exchange_bundles(members)
        exchange_requests(members)
        return ProvenPair(connect_all_pairs(members), seen_matrix(members[0], datetime.now(UTC)))


def test_every_pair_is_proven_and_nothing_is_left(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pki", "demo"]) == FINISHED
    out = capsys.readouterr().out
    assert "2 of 2 directed pairs proven" in out
    assert out.count("✓ trusted until") == 2
    assert "Mutual TLS handshakes" in out
    assert not list(temporary.iterdir())


def test_a_kept_demo_folder_can_be_opened(temporary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept"
    assert main(["pki", "demo", "--states", "3", "--key-type", "ed25519", "--keep", str(kept)]) == FINISHED
    assert "6 of 6 directed pairs proven" in capsys.readouterr().out
    assert sorted(each.name for each in kept.iterdir()) == ["state-a", "state-b", "state-c"]
    handed_out = sorted(each.name for each in (kept / "state-a" / "handed-out").iterdir())
    assert handed_out == [
        *("certificate-for-state-b.pem", "certificate-for-state-c.pem"),
        *("csr-for-state-b.pem", "csr-for-state-c.pem", "trust-bundle.cms"),
    ]
    bundle = decode(verify((kept / "state-a" / "handed-out" / "trust-bundle.cms").read_bytes()).content)
    assert (bundle.state, bundle.sequence, len(bundle.trusted), len(bundle.crls)) == ("State A", 2, 3, 1)
    with PkiReader.open(kept / "state-a" / "pki") as reader:
        assert [(state.name, state.local) for state in reader.states()] == [
            *(("State A", True), ("State B", False), ("State C", False)),
        ]
        exchange = exchange_of(reader.snapshot(), "State A", "State C")
    assert [exchange.there.next, exchange.back.next] == [None, None]
    assert exchange.there.proven is not None and exchange.back.proven is not None
    assert main(["pki", "demo", "--keep", str(kept)]) == FAILED
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize("count", ["1", "61", "two", "-3", "99999999999999999999"])
def test_a_number_of_states_that_cannot_be_is_refused(count: str) -> None:
    assert main(["pki", "demo", "--states", count]) == BAD_USAGE


def test_a_pair_without_trust_is_reported(tmp_path: Path) -> None:
    with founded(tmp_path, 2, KeyType.P_256) as members:
        exchange_bundles(members)
        exchange_requests(members)
        one = members[0]
        with one.store.change() as change:
            [row] = change.snapshot().trust
            change.withdraw_trust(row.id)
        handshakes = connect_all_pairs(members)
        seen = seen_matrix(one, datetime.now(UTC))
        found = faults([seen], handshakes)
    assert [each.ok for each in handshakes.values()] == [False, True]
    assert found[0].startswith("[State A] -> tls-connect -> [State B] failed.")
    assert found[1].startswith("State A withdrew its trust in State B")
    table = matrix(["State A", "State B"], seen, handshakes)
    assert [row[2] for row in table.rows] == ["✗ untrusted", "· own root"]


def test_consoles_with_different_matrices_are_reported(proven_pair: ProvenPair) -> None:
    seen = proven_pair.seen
    assert faults([seen, seen], {}) == []
    pair = ("State B", "State A")
    differing = {**seen, pair: replace(seen[pair], status=CellStatus.STALE)}
    assert faults([seen, differing], {}) == ["The consoles do not agree on whether State B trusts State A."]


@pytest.mark.nightly
@pytest.mark.timeout(3600)  # four minutes of one process: among the first, so that no other waits for it at the end
def test_forty_states(temporary: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pki", "demo", "--states", "40"]) == FINISHED
    assert "1560 of 1560 directed pairs proven" in capsys.readouterr().out


def test_seven_states_have_a_sign_for_each_pair(proven_pair: ProvenPair) -> None:
    handshakes, seen = proven_pair.handshakes, proven_pair.seen
    names = [f"State {letter}" for letter in "ABCDEFG"]
    pairs = [(row, column) for row in names for column in names]
    cells = {pair: seen["State A", "State A" if pair[0] == pair[1] else "State B"] for pair in pairs}
    shaken = {pair: handshakes["State A", "State B"] for pair in pairs if "State G" not in pair}
    table = matrix(names, cells, shaken)
    assert table.headings == ("", *"ABCDEFG") and table.narrow
    assert table.rows[1] == ("State B", *"✓·✓✓✓✓t")
    assert table.rows[6] == ("State G", *"tttttt·")
    tones = [cell.tone for cell in table.rows[1] if isinstance(cell, TonedText)]
    assert tones == [Tone.GOOD, Tone.MUTED, *[Tone.GOOD] * 4, Tone.WARNING]


def test_a_cancelled_demo_leaves_nothing(temporary: Path) -> None:
    operations = Operations(in_threads=True)
    try:
        process = operations.start("certificates.demo", states=8)
        operations.pump_until(process, lambda: "CSRs" in process.said)
        assert process.progress is not None and process.progress.total == 8 + 4 * 56
        process.cancel()
        end = operations.end(process)
    finally:
        operations.close()
    assert end.outcome is Outcome.CANCELLED and "its folder was removed" in end.sentence
    assert not list(temporary.iterdir())
