"""CSV tables that spreadsheets and programs read without harm."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from labconsole.output.export_file import ExportError, must_be_new_files, safe_cell, write_table


@pytest.mark.parametrize(
    "start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠", " =", '"=', "'=", '\n"@']
)
def test_what_a_spreadsheet_would_run_is_marked(start: str) -> None:
    text = f"{start}cmd|' /C calc'!A0"
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["a;=1+1", "a\n=1+1", 'a\r\n"@SUM(A1)', "a; +1+1", "a;;-1+1"])
def test_no_cell_of_a_spreadsheet_with_semicolons_begins_with_a_formula(text: str) -> None:
    assert re.split(r"[;\r\n]+", safe_cell(text))[1].startswith("'")


@pytest.mark.parametrize(
    "cell", ["-5", "+2.50", "-1e-9", -5, 0.1, None, "", "a=b", "[11,-2]", '{"a":-1}', "a - b", "10;20"]
)
def test_numbers_and_plain_texts_stay(cell: object) -> None:
    assert safe_cell(cell) == cell


def test_a_table_is_rfc_4180(tmp_path: Path) -> None:
    rows = [["a,b", 'say "so"'], ["two\r\nlines", 0.1 + 0.2], ["Zürich", -5]]
    path = write_table(tmp_path / "new" / "t.csv", ["x [ms]", "=y"], rows)
    assert path.read_bytes() == (
        b'x [ms],\'=y\r\n"a,b","say ""so"""\r\n"two\r\nlines",0.30000000000000004\r\nZ\xc3\xbcrich,-5\r\n'
    )
    with path.open(encoding="utf-8", newline="") as file:
        assert [[str(cell) for cell in row] for row in rows] == list(csv.reader(file, strict=True))[1:]


def test_rows_that_break_off_leave_the_old_file(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", ["a"], [[1]])

    def rows() -> Iterator[list[int]]:
        yield from ([n] for n in range(100_000))
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_table(path, ["a"], rows())
    assert path.read_bytes() == b"a\r\n1\r\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_target_that_is_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(ExportError, match=r"t\.csv is not a file and cannot be replaced by one: name another\."):
        write_table(tmp_path / "t.csv", ["a"], [[1]])
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are files of POSIX")
def test_devices_and_pipes_are_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ExportError, match="pipe is not a file and cannot be replaced by one"):
        write_table(pipe, ["a"], [[1]])
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "t.csv"
    file.touch()
    link = tmp_path / "t.csv"
    link.symlink_to(file)
    write_table(link, ["a"], [[1]])
    assert link.is_symlink() and file.read_bytes() == b"a\r\n1\r\n"
    assert list(file.parent.iterdir()) == [file]


def test_what_killed_writers_left_goes_with_the_next_file_of_that_name(tmp_path: Path) -> None:
    abandoned, fresh, other = (
        tmp_path / name
        for name in (".t[1].csv.0123abcd.partial", ".t[1].csv.0123abce.partial", ".u.csv.0123abcd.partial")
    )
    for left in (abandoned, fresh, other):
        left.touch()
    for left in (abandoned, other):
        os.utime(left, (0, 0))
    path = write_table(tmp_path / "t[1].csv", ["a"], [[1]])
    assert set(tmp_path.iterdir()) == {path, fresh, other}


def test_new_files_are_checked_before_their_contents_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")
    monkeypatch.chdir(tmp_path)
    must_be_new_files(new, tmp_path / "other")
    for paths, sentence in (
        ((new, old), f"The file {old} is there already and stays as it is: choose another name."),
        ((old / "new",), f"The directory {old} does not exist: create it, or choose another."),
        ((new, Path("new")), "The file new is named for two outputs: give each a file of its own."),
    ):
        with pytest.raises(ExportError) as raised:
            must_be_new_files(*paths)
        assert str(raised.value) == sentence
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK))  # root may write anywhere
    with pytest.raises(ExportError) as raised:
        must_be_new_files(new)
    assert str(raised.value) == f"The directory {tmp_path} cannot be written: choose another."
