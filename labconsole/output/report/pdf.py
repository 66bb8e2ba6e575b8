"""Sets a report with typst: as PDF/A-2a (tagged, fonts embedded) in a file, or as pictures of its pages.

A `Document` comes from `labconsole.output.report.report_builder.build_report`. The template is in
`resources/report`; it needs no package and no network.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labconsole.output.export_file import ExportError, complete_file
from labconsole.output.report.document import Document
from labconsole.paths import resource

if TYPE_CHECKING:
    import typst

ARCHIVAL = "PDF/A-2a"
PLAIN = "PDF 1.7"
_STANDARDS: Any = ["a-2a", "ua-1"]
"""With PDF/UA-1, for screen readers: alternative texts and a reading order."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff]")
"""Among them those that turn the direction of what follows: a note must not rearrange the text around it."""
_UNSET = re.compile(r'the text `"(.+?)"` could not be displayed')
"""The warning of typst on a text without glyphs."""

Sign = Callable[[bytes], bytes]
"""Puts a signature on a PDF (`labconsole.output.report.signing.sign_pdf`, with its signer)."""


class Paper(StrEnum):
    """Size of the pages."""

    A4 = "a4"
    LETTER = "letter"


@dataclass(frozen=True)
class PdfResult:
    """The file, its number of pages, the standard that it keeps, and remarks for its author, one sentence each."""

    path: Path
    pages: int
    standard: str
    remarks: tuple[str, ...]


def write_pdf(document: Document, path: Path, paper: Paper = Paper.A4, sign: Sign | None = None) -> PdfResult:
    """Write the report, signed if `sign` is given, to `path`: whole or not at all.

    Characters that no font of the console has are set without PDF/A, in the fonts of this computer, and both the result
    and the report's last page say so. The same document gives the same bytes (unsigned). Raises ExportError, and the
    errors of `sign`.
    """
    typesetter, data, remarks, standard = _set(document, paper)
    pages = int(json.loads(typesetter.query("<pages>", field="value", one=True)))
    signed = sign(data) if sign is not None else data
    with complete_file(path) as partial:
        partial.write_bytes(signed)
    return PdfResult(path, pages, standard, remarks)


def preview_pages(document: Document, paper: Paper = Paper.A4, ppi: float = 96.0) -> list[bytes]:
    """Every page as PNG, as the PDF will show it, `ppi` pixels an inch. Raises ExportError."""
    pages = _set(document, paper)[0].compile(format="png", ppi=ppi)
    return [page for page in (pages if isinstance(pages, list) else [pages]) if page is not None]


def _set(document: Document, paper: Paper) -> tuple[typst.Compiler, bytes, tuple[str, ...], str]:
    """The report as PDF and the compiler that set it; remarks and standard as in `PdfResult`."""
    import typst

    try:
        remarks: tuple[str, ...] = ()
        return *_compiled(document, paper, remarks, ARCHIVAL), remarks, ARCHIVAL
    except typst.TypstError as error:
        remarks = (_reason_without_archival(error.message),)
    try:
        return *_compiled(document, paper, remarks, PLAIN), remarks, PLAIN
    except typst.TypstError as error:
        raise ExportError(f"The report cannot be set ({error.message}): this is a fault of the console.") from error


def _compiled(
    document: Document, paper: Paper, remarks: tuple[str, ...], standard: str
) -> tuple[typst.Compiler, bytes]:
    import typst

    archival = standard == ARCHIVAL
    compiler = typst.Compiler(
        resource("report", "report.typ"),
        font_paths=[resource("fonts")],
        ignore_system_fonts=archival,
        sys_inputs={
            "document": json.dumps(_settable(document.as_json()), ensure_ascii=False),
            "paper": paper.value,
            "remarks": json.dumps(
                [f"This document is {ARCHIVAL}, tagged for screen readers."] if archival else remarks
            ),
        },
    )
    timestamp = int(document.generated.timestamp())
    data = compiler.compile(format="pdf", pdf_standards=_STANDARDS if archival else [], timestamp=timestamp)
    assert isinstance(data, bytes)
    return compiler, data


def _reason_without_archival(message: str) -> str:
    """The reason of typst against PDF/A, for the author of the report."""
    unset = _UNSET.search(message)
    if unset is None:
        return f"This document is {PLAIN} and not {ARCHIVAL}: {message}."
    character = unset[1][0]
    return (
        f"This document is {PLAIN} and not {ARCHIVAL}: no font of the console has "
        f"{unicodedata.name(character, 'the character')} (U+{ord(character):04X}). Fonts of the computer that created "
        "it are used instead; a character that is missing there, too, is shown as a box."
    )


def _settable(value: Any) -> Any:
    """JSON without control characters: no font shows them."""
    if isinstance(value, str):
        return _CONTROL.sub("", value)
    if isinstance(value, dict):
        return {name: _settable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_settable(inner) for inner in value]
    return value
