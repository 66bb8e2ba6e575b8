"""comparison.csv, as a spreadsheet or a script reads it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from labconsole.analysis.comparison import compare, group_repeats
from labconsole.analysis.published_figures import PublishedVerdict
from labconsole.model.metrics import Verdict
from labconsole.output.comparison_csv import write_comparison
from tests.helpers.post_trial import PostTrial, published, repeats, run

QUICK = (100.0, 101.0, 99.0, 100.5, 99.5)
SLOW = (50.0, 50.5, 49.5, 50.2, 49.8)


def test_a_row_for_each_metric_and_column_with_all_that_the_table_shows(tmp_path: Path) -> None:
    runs = [*repeats(1, "open", "rate", QUICK), *repeats(6, "sealed", "rate", SLOW), run(11, "=1+1", {"lost": 0})]
    columns = (*group_repeats(runs), published({"rate": 50.1}, {"sealed": True, "stamped": False}))
    path = write_comparison(compare(columns, PostTrial()), tmp_path / "new" / "comparison.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["metric"], row["scenario"], row["runs"]) for row in rows] == [
        ("rate", "open", "5"),
        ("rate", "sealed", "5"),
        ("rate", "Gazette, sealed", "0"),
        ("lost", "'=1+1", "1"),
    ]
    reference, slower, point, _ = rows
    assert (reference["difference [%]"], reference["judgement"], reference["unit"]) == ("", "", "letters/s")
    assert (slower["origin"], slower["run numbers"], slower["baseline"]) == ("measured", "6 7 8 9 10", "open")
    assert (slower["judgement"], slower["direction"]) == ("worse", "higher")
    assert float(slower["difference [%]"]) == pytest.approx(-50, abs=0.1)
    assert float(slower["ratio low"]) < 0.5 < float(slower["ratio high"]) and float(slower["p (Holm)"]) < 0.001
    assert float(slower["95 % interval low"]) < float(slower["value"]) < float(slower["95 % interval high"])
    assert (point["origin"], point["published reference"], point["interval holds published"]) == (
        "published",
        "Table 1",
        "yes",
    )
    assert float(point["ours / published"]) == pytest.approx(1.0, abs=0.01) and point["judgement"] == ""
    assert float(point["ours / published low"]) < 1 < float(point["ours / published high"])
    assert (slower["ours / published"], slower["not judged"]) == ("", "")


def test_verdicts_are_rows_only_where_a_source_has_some(tmp_path: Path) -> None:
    groups = group_repeats([run(1, "open", {"lost": 0})])
    verdicts = {1: [Verdict("came", "pass", "All of it.")]}
    theirs = published({}, {"sealed": True}, verdicts={"came": PublishedVerdict("fail", "failed", "Table 2")})
    for columns, expected in (
        (groups, [""]),
        ((*groups, theirs), ["", "came", "came"]),
    ):
        path = write_comparison(compare(columns, PostTrial(), verdicts=verdicts), tmp_path / "comparison.csv")
        with path.open(encoding="utf-8", newline="") as file:
            assert [row["verdict"] for row in csv.DictReader(file)] == expected


def test_unknown_value_is_an_empty_cell(tmp_path: Path) -> None:
    runs = [run(1, "open", {"lost": 0}), run(2, "sealed", {"lost": 3})]
    path = write_comparison(compare(group_repeats(runs), PostTrial()), tmp_path / "comparison.csv")
    with path.open(encoding="utf-8", newline="") as file:
        [_, row] = csv.DictReader(file)
    assert (row["difference [%]"], row["ratio"], row["p (Holm)"], row["note"]) == ("", "", "", "zeros: no ratio")
