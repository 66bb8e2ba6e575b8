"""Logs of arrivals: time stamps, or hours with counts, and one sentence for what is wrong with a file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from labconsole.errors import UserError
from labconsole_keypool.planning.arrival_log import read_log


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log.csv"


def test_hours_and_counts_with_a_header_a_gap_and_no_order(file: Path) -> None:
    file.write_text("hour,count\n2026-03-02T08:00,10\n\n2026-03-02T11:00,4\n2026-03-02 09:00,0\n2026-03-02T08:00,1\n")
    log = read_log(file)
    assert (log.start, log.requests.tolist()) == (datetime(2026, 3, 2, 8), [11, 0, 0, 4])
    assert (log.end, log.source) == (datetime(2026, 3, 2, 12), "log.csv")


def test_time_stamps_are_counted_by_hour_and_begun_hours_at_the_ends_are_left_out(file: Path) -> None:
    stamps = [
        "2026-03-02T23:59:59",
        "2026-03-03T00:00:00",
        "2026-03-03 00:59:59.9",
        "2026-03-03T02:10",
        "2026-03-03T02",
    ]
    file.write_text("\n".join(["time", *stamps, "2026-03-03T03:01"]))
    log = read_log(file)
    assert (log.start, log.requests.tolist()) == (datetime(2026, 3, 3, 0), [2, 0, 2])


def test_hours_are_those_of_the_clock_that_wrote_the_log(file: Path) -> None:
    file.write_text("2026-03-02T08:00+01:00,1\n2026-03-02T09:00Z,2\n")
    assert read_log(file).requests.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hour,count\n2026-03-02T08:00,ten\n", "line 2: the count must be a whole number from 0 on (it is 'ten')."),
        ("2026-03-02T08:00,-1\n", "line 1: the count must be a whole number from 0 on (it is '-1')."),
        ("2026-03-02T08:00,1.5\n", "line 1: the count must be a whole number"),
        ("2026-03-02T08:00,1\n8 o'clock,2\n", 'line 2: "8 o\'clock" is not a time; write it as 2026-11-20T14:05'),
        ("2026-03-02T08:00,1\n2026-03-02T09:00\n", "line 2: 1 columns; each row is a time stamp, or an hour"),
        ("a,b,c\n1,2,3\n", "line 2: 3 columns;"),
        ("hour,count\n", "log.csv: there is no row in this file; choose another one."),
        ("2026-03-02T08:01\n2026-03-02T09:10\n", "there is no whole hour in it; choose a longer one."),
        ("1026-03-02T08:00,1\n2026-03-02T09:00,1\n", "it is more than 10 years; one of its dates is wrong."),
    ],
)
def test_faulty_log_is_reported_in_one_sentence(file: Path, text: str, sentence: str) -> None:
    file.write_text(text)
    with pytest.raises(UserError) as caught:
        read_log(file)
    assert sentence in str(caught.value)
    assert "log.csv" in str(caught.value)


def test_binary_or_missing_file_is_refused(file: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_log(file)
    file.write_bytes(b"2026-03-02T08:00,1\n\xff\xfe\x00")
    with pytest.raises(UserError, match="this is not CSV text"):
        read_log(file)
