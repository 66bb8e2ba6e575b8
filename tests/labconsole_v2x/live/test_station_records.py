"""What stations record while threads append and the thread of the role writes."""

from __future__ import annotations

import threading

from labconsole_v2x.live.series import SENT
from labconsole_v2x.live.station_records import PackedRows


def test_rows_become_columns_in_the_order_in_which_they_were_appended() -> None:
    rows = PackedRows(SENT)
    assert [len(column) for column in rows.take().values()] == [0] * len(SENT.columns)
    for number in (3, 1, 2):
        rows.append((number, -1, 1 << 62, 4, 5, 6, 7, number % 2))
    taken = rows.take()
    assert list(taken) == [column.name for column in SENT.columns]
    assert taken["station"].tolist() == [3, 1, 2] and taken["source"].tolist() == [-1] * 3
    assert taken["identity"].tolist() == [1 << 62] * 3 and taken["certificate"].tolist() == [1, 1, 0]
    assert not len(rows.take()["station"])


def test_no_row_is_lost_or_taken_twice_while_threads_append() -> None:
    rows, each, taken = PackedRows(SENT), 20_000, list[int]()

    def append(first: int) -> None:
        for number in range(first, first + each):
            rows.append((0, number, 0, 0, 0, 0, 0, 0))

    threads = [threading.Thread(target=append, args=(first * each,)) for first in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        taken += rows.take()["source"].tolist()
    taken += rows.take()["source"].tolist()
    assert sorted(taken) == list(range(3 * each))
