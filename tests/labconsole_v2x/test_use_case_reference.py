"""The reference page of the use cases is that of the catalogue, and has every case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from labconsole.model.plugin import Plugins
from labconsole_v2x.use_case_reference import PAGE, listed, use_cases_page
from labconsole_v2x.use_cases.catalogue import CODES, USE_CASES
from labconsole_v2x.use_cases.use_case import ReferencePoint

DOCS = Path(__file__).parents[2] / "docs"
ETSI = re.compile(r"TC_SEC_ITSS_(SND|RCV)_[A-Z]+_\d\d_B[OV]|SECPKI_(ITSS|EA)_[A-Z_]+_\d\d_B[IV]")


@pytest.fixture(scope="module")
def text() -> str:
    return use_cases_page(Plugins.discover())


def test_page_in_docs_is_current(text: str) -> None:
    assert (DOCS / PAGE).read_text(encoding="utf-8") == text, "run docs/reference_pages.py"


def test_every_case_is_there_with_its_steps_and_criteria(text: str) -> None:
    for case in USE_CASES.values():
        part = text.partition(f"### {case.code}: {case.title}\n")[2].partition("\n### ")[0]
        lines = (*case.steps, case.capability, case.interpretation, *case.test_purposes)
        assert [line for line in lines if line not in part] == [], case.code
        assert all(str(criterion)[1:] in part for criterion in case.criteria), case.code


def test_every_case_is_in_one_group_mandatory_ones_first() -> None:
    assert sorted(case.code for point in ReferencePoint for case in listed(point)) == sorted(CODES)
    for point in ReferencePoint:
        kinds = [(case.code[0], case.mandatory) for case in listed(point)]
        expected = [("F", True), ("F", False), ("A", True), ("A", False)]
        assert list(dict.fromkeys(kinds)) == [kind for kind in expected if kind in kinds]


def test_what_the_source_reports_is_next_to_each_code(text: str) -> None:
    rows = dict(re.findall(r"^\| `([\w-]+)` \|.*\| ([^|]*) \|$", text, re.M))
    assert (rows["F-SIG-01"], rows["F-PSN-05"], rows["A-SIG-06"]) == ("passed", "not tested", "not printed")
    assert rows.keys() == set(CODES)


def test_test_purposes_have_the_form_of_their_documents() -> None:
    named = [purpose for case in USE_CASES.values() for purpose in case.test_purposes]
    assert len(named) > 20 and all(ETSI.fullmatch(purpose) for purpose in named)
