"""Logs of sender and receiver as CSV, and the table that maps each CAM to its reception, as Fig. 2.3 of the source."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from labconsole.model.plugin import Plugins
from labconsole.output.csv_export import export_run
from labconsole.store.reader import Reader
from labconsole_v2x.live import packet_table
from labconsole_v2x.live.packet_table import PACKETS, packet_tables
from labconsole_v2x.live.series import RECEIVED, SENT
from labconsole_v2x.stations.receiving import REASONS
from tests.labconsole_v2x.live.live_lab import SHORT
from tests.labconsole_v2x.live.synthetic_packets import EVENTS, MS, A, B, Tables, parameters, received, samples, sent


def table(tables: Tables, **settings: Any) -> dict[str, NDArray[Any]]:
    """The rows of the one table."""
    (derived,) = packet_tables(parameters(**settings), tables, EVENTS)
    parts = list(derived.parts())
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    assert list(rows) == [column.name for column in derived.series.columns]
    assert derived.rows == len(rows["station"])
    return rows


def test_each_cam_is_mapped_to_its_reception() -> None:
    """Accepted, rejected, waiting and then accepted, and never read."""
    packets = [sent(A, 100, late=3, size=320), sent(B, 50, late=1), sent(A, 1200, late=1), sent(B, 1300, late=2)]
    rows = [
        received(A, 100, after=5, done=1),
        received(A, 1200, after=5, done=1, reason="unknown signer"),
        received(A, 1200, after=5, done=90, waited=True),
        received(B, 1300, after=9, done=1, reason="signature invalid"),
    ]
    found = table(samples(packets, rows))
    assert found["station"].tolist() == [2, 1, 1, 1, 2], "in order of their due times"
    assert found["identity"].tolist() == [50_000, 100_000, 1_200_000, 1_200_000, 1_300_000]
    assert (found["due_ns"] / MS).tolist() == [50, 100, 1200, 1200, 1300]
    assert (found["sent_ns"] / MS).tolist() == [51, 103, 1201, 1201, 1302]
    assert found["receiver"].tolist() == [-1, 0, 0, 0, 0]
    assert (found["received_ns"][1:] / MS).tolist() == [105, 1205, 1205, 1309]
    assert (found["done_ns"][1:] / MS).tolist() == [106, 1206, 1295, 1310]
    assert found["latency_ns"].tolist() == [-1, 6 * MS, -1, 95 * MS, -1]
    assert found["size"].tolist() == [180, 320, 180, 180, 180]
    names = [REASONS[number] if number >= 0 else "" for number in found["reason"]]
    assert names == ["", "accepted", "unknown signer", "accepted", "signature invalid"]
    assert [found[name][0] for name in ("received_ns", "done_ns", "latency_ns", "reason")] == [-1] * 4


def test_several_receivers_have_a_row_each() -> None:
    rows = {
        "stations-2-2": [received(A, 1100, receiver=2, after=4)],
        "stations-3-3": [received(A, 1100, receiver=3, after=2), received(B, 1100, receiver=3)],
    }
    found = table(samples([sent(A, 1100), sent(B, 1100)], rows), senders=3, receivers="all")
    mapped = set(zip(found["station"].tolist(), found["receiver"].tolist(), strict=True))
    assert mapped == {(1, 2), (1, 3), (2, 3)} and len(found["station"]) == 3


@pytest.mark.parametrize("receptions", [0, 40, 100])
def test_parts_give_the_rows_of_the_whole(receptions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    packets = [sent(A, 1000 + number) for number in range(100)]
    tables = samples(packets, [received(A, 1000 + number) for number in range(receptions)])
    whole = table(tables)
    monkeypatch.setattr(packet_table, "_PART", 7)
    parts = table(tables)
    assert len(whole["station"]) == 100 and np.count_nonzero(whole["receiver"] == 0) == receptions
    assert all(np.array_equal(whole[name], parts[name]) for name in whole)


def test_run_that_never_began_has_no_table() -> None:
    assert packet_tables(parameters(), samples([sent(A, 1)]), ()) == ()


def test_logs_of_senders_and_receiver_and_their_mapping_are_exported(stored_run: Path, tmp_path: Path) -> None:
    with Reader(stored_run) as reader:
        found = reader.run(1)
        export_run(reader, found.row.id, tmp_path / "csv", Plugins.discover())
    files = {path.name: rows_of(path) for path in (tmp_path / "csv").glob("samples-*.csv")}
    logs = {name: files[f"samples-{name}.csv"] for name in ("sent", "received", "packets")}
    for series in (SENT, RECEIVED, PACKETS):
        titles = [f"{column.name} [{column.unit}]" if column.unit else column.name for column in series.columns]
        assert list(logs[series.name][0])[-len(titles) :] == titles
    figures = found.row.metrics
    of_stations = [row for row in logs["sent"] if row["station"] != "0"]
    accepted = [row for row in logs["received"] if row["reason"] == "0"]
    assert (len(of_stations), len(accepted)) == (figures["sent"].value, figures["accepted"].value)
    keys = {(row["source"], row["identity"]) for row in of_stations}
    assert len(keys) == len(of_stations) and {(row["source"], row["identity"]) for row in accepted} == keys
    mapped = [row for row in logs["packets"] if row["reason"] == "0"]
    assert len(mapped) == len(accepted)
    counted = [row for row in mapped if int(row["due_ns [ns]"]) >= SHORT["warm_up"] * 1000 * MS]
    latencies = [int(row["latency_ns [ns]"]) for row in counted]
    assert max(latencies) / MS == pytest.approx(figures["latency_max"].value)
    assert len(latencies) == figures["latency_max"].samples


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))
