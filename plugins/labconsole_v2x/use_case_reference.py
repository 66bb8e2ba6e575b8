"""The reference page of the use cases: one table of all codes, then steps and pass criterion of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from labconsole.analysis.published_figures import published_columns
from labconsole.model.plugin import Plugins
from labconsole.reference.markdown import page, sentence, table
from labconsole_v2x.use_cases.catalogue import USE_CASES
from labconsole_v2x.use_cases.use_case import ReferencePoint, UseCase

PAGE = "reference/v2x-use-cases.md"
TABLE_2_17 = "preserve-table-2-17"
NOT_PRINTED = "not printed"


def reported_results(plugins: Plugins) -> Mapping[str, str]:
    """What Table 2.17 reports, by code. Raises UserError for a file that cannot be read."""
    (column,) = published_columns(plugins, TABLE_2_17)
    return {code: verdict.printed for code, verdict in column.verdicts.items()}


def listed(point: ReferencePoint) -> list[UseCase]:
    """The cases of a reference point as in Tables 2.6 to 2.9: functional ones first, of each the mandatory first."""
    cases = (case for case in USE_CASES.values() if case.reference_point is point)
    return sorted(cases, key=lambda case: (case.code.startswith("A-"), not case.mandatory))


def use_cases_page(plugins: Plugins) -> str:
    """The page in Markdown. Raises UserError as `reported_results`."""
    reported = reported_results(plugins)
    cases = [case for point in ReferencePoint for case in listed(point)]
    return page(
        "# V2X use cases: steps and pass criteria",
        "Generated from the definitions that the trial `v2x.use-cases` runs and judges by. "
        "[V2X use cases](../explanation/v2x-use-cases.md) explains how a verdict comes about.",
        "*Source* is what Table 2.17 of PRESERVE D3.2 reports, in software. ETSI test purposes are those of "
        "TS 103 096-2 (`TC_SEC_`) and TS 103 525-2 (`SECPKI_`) that come closest: a correspondence, not a test of "
        "conformance.",
        "## All cases",
        table(
            ("Case", "Title", "Reference point", "Required", "Source"),
            (
                (f"`{case.code}`", case.title, case.reference_point.value, _required(case), _source(case, reported))
                for case in cases
            ),
        ),
        *(part for point in ReferencePoint for part in _group(point)),
    )


def _group(point: ReferencePoint) -> Iterator[str]:
    yield f"## {point.value}"
    for case in listed(point):
        yield f"### {case.code}: {case.title}"
        yield _list("Steps", case.steps)
        yield f"Attacker's capability: {case.capability}" if case.capability else ""
        yield f"Interpretation: {case.interpretation}" if case.interpretation else ""
        yield _list("Passed if", [sentence(str(criterion)) for criterion in case.criteria])
        yield _list("Closest ETSI test purposes", [f"`{purpose}`" for purpose in case.test_purposes])


def _list(heading: str, lines: Sequence[str]) -> str:
    """A list below its heading, a single line behind it; nothing without lines."""
    if len(lines) < 2:
        return "".join(f"{heading}: {line}" for line in lines)
    items = "\n".join(f"- {line}" for line in lines)
    return f"{heading}:\n\n{items}"


def _required(case: UseCase) -> str:
    return "mandatory" if case.mandatory else "optional"


def _source(case: UseCase, reported: Mapping[str, str]) -> str:
    return reported.get(case.code, NOT_PRINTED if case.counted else "")
