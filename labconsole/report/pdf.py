"""Sets a report with typst: as PDF/A-2a (tagged, fonts embedded) in a file, or as pictures of its pages.

A `Document` comes from `labconsole.report.building.build_report`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from labconsole.locations import resource
from labconsole.report.document import Document

if TYPE_CHECKING:
    import typst

ARCHIVAL = "PDF/A-2a"
PLAIN = "PDF 1.7"

Sign = Callable[[bytes], bytes]
"""Puts a signature on a PDF (`labconsole.report.signing.signature`)."""


class Paper(StrEnum):
    """Size of the pages."""

    A4 = "a4"
    LETTER = "letter"


@dataclass(frozen=True)
class PdfResult:
    """The file, its number of pages, the standard that it keeps, and what its maker must know, one sentence each."""

    path: Path
    pages: int
    standard: str
    remarks: tuple[str, ...]


def write_pdf(document: Document, path: Path, paper: Paper = Paper.A4, sign: Sign | None = None) -> PdfResult:
    """Write the report, signed if `sign` is given, to `path`: whole or not at all.

    Characters that no font of the console has are set without PDF/A, in the fonts of this computer, and the result and the
    report's last page say so. The same document gives the same bytes (unsigned). Raises ExportError, and what `sign` does.
    """
    raise NotImplementedError


def preview_pages(document: Document, paper: Paper = Paper.A4, ppi: float = 96.0) -> list[bytes]:
    """Every page as PNG, as the PDF will show it, `ppi` pixels an inch. Raises ExportError."""
    raise NotImplementedError
