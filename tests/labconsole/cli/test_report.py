"""`labconsole report`: PDF and CSV of runs in a database, signed if asked for; what it refuses."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from labconsole.cli.main import main
from labconsole.store.run_store import Store
from tests.helpers.authorities import new_authority
from tests.helpers.identities import write_identity
from tests.helpers.pdfsig import pdfsig
from tests.helpers.program_text import PROGRAM
from tests.helpers.shared_once import copy_database
from tests.helpers.small_disk import on_small_disk
from tests.helpers.stored_post_trial import queue_post, spring_database

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def report(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """Runs the command in this process, next to `a.db` with a campaign of four runs: (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)
    copy_database(spring_database(tmp_path_factory, repeats=2), tmp_path / "a.db")

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        code = main(["report", *map(str, arguments), "--db", "a.db"])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def text_of(path: Path) -> str:
    return subprocess.run(
        ["pdftotext", "-layout", path, "-"], capture_output=True, text=True, check=True, timeout=30
    ).stdout


def test_comparison_report_on_letter_paper_names_its_author(report: Command, tmp_path: Path) -> None:
    names = ("--title", "Letters", "--author", "A. Registrar", "--place", "Bangkok")
    code, printed, _ = report(2, 1, 3, "--pdf", "out/r.pdf", "--paper", "letter", "--baseline", "1", *names)
    assert (code, printed) == (0, "out/r.pdf: 3 pages, PDF/A-2a\n")
    text = text_of(tmp_path / "out" / "r.pdf")
    for part in ("Comparison report", "Letters", "A. Registrar", "Bangkok", "baseline, 2 runs", "runs 1–3"):
        assert part in text


def test_one_run_and_a_whole_campaign(report: Command, tmp_path: Path) -> None:
    assert report(1, "--pdf", "run.pdf")[0] == 0
    assert "Run report" in text_of(tmp_path / "run.pdf")
    assert report(3, "--campaign", "--pdf", "campaign.pdf")[0] == 0
    text = text_of(tmp_path / "campaign.pdf")
    assert "Campaign report" in text and "2 scenarios, 4 runs" in text


def test_csv_is_written_with_the_pdf_or_alone(report: Command, tmp_path: Path) -> None:
    code, printed, _ = report(1, 2, "--pdf", "r.pdf", "--csv", "csv")
    assert code == 0 and printed.endswith("CSV files are in csv\n")
    assert {"comparison.csv", "metrics.csv"} <= {path.name for path in (tmp_path / "csv").iterdir()}
    assert len((tmp_path / "csv" / "comparison.csv").read_text().splitlines()) == 9, "four metrics in two columns"
    assert report(1, "--csv", "one")[0] == 0
    assert (tmp_path / "one" / "metrics.csv").exists() and not (tmp_path / "one" / "comparison.csv").exists()


def test_a_report_is_signed_with_a_key_whose_passphrase_is_in_a_file(report: Command, tmp_path: Path) -> None:
    files = write_identity(tmp_path, "registrar", new_authority("Lab CA"))
    signed = ("--sign", files.key, "--certificate", files.certificate)
    code, printed, _ = report(1, "--pdf", "r.pdf", *signed, "--passphrase-file", files.passphrase_file)
    assert code == 0 and printed.endswith("PDF/A-2a, signed\n")
    assert "Signature is Valid." in pdfsig(tmp_path / "r.pdf")
    assert files.passphrase_file is not None
    files.passphrase_file.write_text("wrong")
    code, printed, error = report(1, "--pdf", "other.pdf", *signed, "--passphrase-file", files.passphrase_file)
    assert (code, printed) == (1, "") and "the passphrase is wrong" in error
    code, _, error = report(1, "--pdf", "other.pdf", *signed)
    assert code == 1 and "There is no passphrase for the signing key" in error
    assert not (tmp_path / "other.pdf").exists()


def test_characters_without_a_font_are_noted(report: Command) -> None:
    code, printed, _ = report(1, "--pdf", "r.pdf", "--title", "สวัสดี")
    first, note = printed.splitlines()
    assert (
        code == 0 and first.endswith("PDF 1.7") and note.startswith("Note: This document is PDF 1.7 and not PDF/A-2a")
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("1",), 2, "say what to write: --pdf FILE, --csv DIR or both"),
        (("1", "--csv", "x", "--sign", "key.pem"), 2, "only a PDF can be signed"),
        (("1", "--pdf", "r.pdf", "--certificate", "own.pem"), 2, "nothing is signed without a key"),
        (("99", "--pdf", "r.pdf"), 1, "There is no run 99"),
        (("5", "--pdf", "r.pdf"), 1, "Run 5 is still running: create the report once it has ended"),
        (("1", "2", "--baseline", "4", "--pdf", "r.pdf"), 1, "The baseline, run 4, is none of the runs"),
        (("1", "--baseline", "gazette", "--pdf", "r.pdf"), 1, "There are no published figures gazette"),
        (("1", "--published", "gazette", "--pdf", "r.pdf"), 1, "There are no published figures gazette"),
        (("1", "--pdf", "a.db/r.pdf"), 1, "r.pdf cannot be written"),
        (("1", "5", "--campaign", "--pdf", "r.pdf"), 1, "These runs belong to several campaigns"),
    ],
)
def test_refused_report_is_one_line_and_writes_no_file(
    report: Command, tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    with Store.open(tmp_path / "a.db") as store:
        queue_post(store, ["open"])
    found, _, error = report(*arguments)
    assert (found, error.count("\n")) == (code, 1) and said in error
    assert not list(tmp_path.rglob("*.pdf")) and not list(tmp_path.rglob("*.partial"))


AND_LIST = """
import os, sys
from labconsole.cli.main import main

folder, *words = sys.argv[1:]
print(main(words), *os.listdir(folder))
"""


def test_full_disk_is_reported_and_leaves_no_partial_report(report: Command, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    words = ("report", "1", "2", "--pdf", disk / "r.pdf", "--db", tmp_path / "a.db")
    done = on_small_disk(disk, "64k", (*PROGRAM, AND_LIST, disk, *words), os.environ)
    assert done.stdout == "1\n"
    assert done.stderr.endswith("r.pdf cannot be written, the disk is full: free some space or choose another one.\n")
