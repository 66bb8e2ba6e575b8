"""Reports as PDF: standard, fonts, pages, texts, looks; whole or not there."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyhanko.pdf_utils.reader import PdfFileReader

from labconsole.output.charts import Bar, bar_charts
from labconsole.output.export_file import ExportError
from labconsole.output.report.document import (
    Align,
    Callout,
    Document,
    Fact,
    Facts,
    Figure,
    Head,
    Heading,
    Paragraph,
    Section,
    Table,
    TextCell,
    Tone,
)
from labconsole.output.report.pdf import ARCHIVAL, PLAIN, Paper, PdfResult, preview_pages, write_pdf
from labconsole.output.report.report_builder import build_report
from labconsole.output.report.report_request import ReportKind, ReportRequest
from labconsole.store.reader import Reader
from tests.helpers.grey_png import Grey, read_pgm, read_png, write_png
from tests.helpers.stored_post_trial import PLUGINS
from tests.labconsole.output.conftest import SPRING

GOLDEN = Path(__file__).parent / "golden"
RENEW = "LABCONSOLE_RENEW_GOLDEN"
"""Set it to write the golden pages again; inspect them before you commit them."""
DPI = 60
LIMIT = 0.001
"""Share of pixels; the title alone has more."""


@pytest.fixture(scope="module")
def document(spring: Path) -> Document:
    """A comparison report on the made-up trial, the same each time but for the runs' UUIDs and sealing times."""
    with Reader(spring) as reader:
        request = ReportRequest(
            tuple(SPRING),
            ReportKind.COMPARISON,
            author="Civil Aviation Authority",
            generated=datetime(2026, 11, 20, 18, 30, tzinfo=UTC),
        )
        return build_report(reader, PLUGINS, request)


@pytest.fixture(scope="module")
def written(document: Document, tmp_path_factory: pytest.TempPathFactory) -> PdfResult:
    """That report as PDF, for those who only read it."""
    return write_pdf(document, tmp_path_factory.mktemp("pdf") / "report.pdf")


def said(*command: str | Path) -> str:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, timeout=30).stdout


def with_text(document: Document, text: str) -> Document:
    return replace(document, sections=(*document.sections, Section("Added", (Paragraph(text),))))


def test_a_report_is_tagged_pdf_a_with_all_fonts_in_it(written: PdfResult) -> None:
    assert (written.standard, written.remarks) == (ARCHIVAL, ())
    info = said("pdfinfo", written.path)
    facts = {name: value.strip() for name, _, value in (line.partition(":") for line in info.splitlines())}
    assert (facts["Title"], facts["Author"]) == ("Spring trial", "Civil Aviation Authority")
    assert (facts["Pages"], facts["Tagged"], facts["Page size"][-4:]) == (str(written.pages), "yes", "(A4)")
    metadata = said("pdfinfo", "-meta", written.path)
    assert "<pdfaid:part>2</pdfaid:part><pdfaid:conformance>A</pdfaid:conformance>" in metadata
    assert "<pdfuaid:part>1</pdfuaid:part>" in metadata
    fonts = [line.split() for line in said("pdffonts", written.path).splitlines()[2:]]
    assert len(fonts) >= 3 and all("yes yes yes" in " ".join(font) for font in fonts), "embedded, subset, with Unicode"
    assert {font[0].partition("+")[2].partition("-")[0] for font in fonts} == {"Inter", "DejaVuSansMono"}


def test_pictures_have_alternative_texts(written: PdfResult) -> None:
    pdf = PdfFileReader(BytesIO(written.path.read_bytes()))
    assert pdf.root["/Lang"] == "en"
    words = list(_figures(pdf.root["/StructTreeRoot"]))
    assert len(words) == 3 and all(words)
    assert words[0] == "Bar chart of Rate: open 1,020 letters/s; sealed 510.0 letters/s"


def test_every_page_names_its_report(written: PdfResult) -> None:
    *texts, end = said("pdftotext", "-layout", written.path, "-").split("\f")
    assert (len(texts), end) == (written.pages, "")
    for page, text in enumerate(texts, 1):
        assert f"{page} of {written.pages}" in text
        assert "runs.db · runs 1–10" in text and "Generated 2026-11-20 18:30 UTC" in text
        header = re.split(r"\s{3,}", text.splitlines()[0].strip())
        assert (header == ["Spring trial", "Comparison report"]) is (page > 1), "the title page has no header"
    assert "This document is PDF/A-2a" in texts[-1]


def test_the_text_is_all_there_and_digests_are_in_one_piece(document: Document, written: PdfResult) -> None:
    text = said("pdftotext", "-layout", written.path, "-")
    for part in ("sealed against open: rate is lower", "▼ −50.0 % worse", "OpenSSL 3.0.19", "Kuala Lumpur, Singapore"):
        assert part in text
    [evidence] = [block for block in document.sections[-1].blocks if isinstance(block, Table)]
    assert all(cells[1].text in text and len(cells[1].text) == 64 for cells in evidence.rows)


def test_letter_has_letters_size(document: Document, tmp_path: Path) -> None:
    result = write_pdf(document, tmp_path / "report.pdf", Paper.LETTER)
    assert result.standard == ARCHIVAL
    assert "612 x 792 pts (letter)" in said("pdfinfo", result.path)


def test_the_same_report_has_the_same_bytes(document: Document, written: PdfResult, tmp_path: Path) -> None:
    assert write_pdf(document, tmp_path / "two.pdf").path.read_bytes() == written.path.read_bytes()


@pytest.mark.parametrize("where", ["note", "chart"])
def test_characters_without_a_font_give_a_pdf_without_pdf_a_and_a_note(
    document: Document, tmp_path: Path, where: str
) -> None:
    thai = "สวัสดี"
    added = with_text(document, thai)
    if where == "chart":
        figure = Figure(bar_charts(thai, "", [Bar("a", 1.0)])[0], "Bars", "Bars")
        added = replace(document, sections=(*document.sections, Section("Added", (figure,))))
    result = write_pdf(added, tmp_path / "report.pdf")
    assert result.standard == PLAIN
    [remark] = result.remarks
    assert "THAI CHARACTER SO SUA (U+0E2A)" in remark
    last = said("pdftotext", "-f", str(result.pages), result.path, "-")
    assert "PDF 1.7 and not PDF/A-2a" in last and "This document is PDF/A-2a" not in last
    assert "pdfaid" not in said("pdfinfo", "-meta", result.path)


def test_text_is_never_markup_and_control_characters_are_left_out(document: Document, tmp_path: Path) -> None:
    hostile = '#panic("x") *bold* $x$ @ref <label> \\ \x00\x07\x1b[31m \u202e// "quoted"'
    result = write_pdf(with_text(document, hostile), tmp_path / "report.pdf")
    text = said("pdftotext", "-layout", result.path, "-")
    assert '#panic("x") *bold* $x$ @ref <label> \\ [31m // "quoted"' in text
    assert result.standard == ARCHIVAL


def test_long_identifiers_stay_on_the_page(document: Document, tmp_path: Path) -> None:
    heads = (Head("A", "", Align.LEFT), Head("B", "", Align.LEFT, 4.0))
    for word in ("directory/" * 40, "x" * 300):
        blocks = (
            Paragraph(word),
            Facts((Fact("Word", word), Fact(word, "word"))),
            Heading(word),
            Table(
                word,
                (Head(word, "", Align.LEFT), *heads[1:]),
                ((TextCell(word), TextCell("b", details=((word, Tone.MUTED),))),),
            ),
            Callout("Words", (word,)),
        )
        added = replace(document, title=word, sections=(Section("Added", blocks),))
        boxes = said("pdftotext", "-bbox", write_pdf(added, tmp_path / "report.pdf").path, "-")
        ends = [float(end) for end in re.findall(r'xMax="([\d.]+)"', boxes)]
        assert max(ends) < 595.28 - 22 / 25.4 * 72 + 1, "nothing reaches into the margin"


def test_long_identifiers_stay_in_their_column(document: Document, tmp_path: Path) -> None:
    letters = "WXYZM"
    heads = tuple(Head(letter * 60, "", Align.RIGHT) for letter in letters)
    table = Table("Narrow", heads, (tuple(TextCell(letter.lower() * 60) for letter in letters),))
    added = replace(document, sections=(Section("Added", (table,)),))
    boxes = said("pdftotext", "-bbox", write_pdf(added, tmp_path / "report.pdf").path, "-")
    found = re.findall(r'xMin="([\d.]+)" yMin="[\d.]+" xMax="([\d.]+)" yMax="[\d.]+">(\w)\3{3}', boxes)
    spans = [[(float(low), float(high)) for low, high, first in found if first.upper() == letter] for letter in letters]
    for left, right in pairwise(spans):
        assert max(high for _, high in left) < min(low for low, _ in right)


def test_content_longer_than_a_page_continues_on_the_next(document: Document, tmp_path: Path) -> None:
    heads = (Head("A", "", Align.LEFT), Head("B", "", Align.LEFT, 3.0))
    reason = "The link was lost for unknown reasons. " * 12
    blocks = (
        Callout("Words", (reason,) * 20),
        Table("Reasons", heads, tuple((TextCell(f"row{number}"), TextCell(reason)) for number in range(10))),
        Table("One", heads, ((TextCell("long"), TextCell("b", details=((reason * 20, Tone.MUTED),))),)),
    )
    path = write_pdf(replace(document, sections=(Section("Added", blocks),)), tmp_path / "report.pdf").path
    text = said("pdftotext", "-bbox", path, "-")
    low = [float(y) for y in re.findall(r'yMax="([\d.]+)">(?:The|row\d|reasons\.)<', text)]
    assert len(low) == (20 + 10 + 20) * 12 * 2 + 10, "every word is there"
    assert max(low) < 841.89 - 20 / 25.4 * 72 + 1, "and none is in the footer or below"


def test_a_preview_shows_every_page(document: Document, written: PdfResult) -> None:
    pages = preview_pages(document, Paper.A4, 36)
    assert len(pages) == written.pages
    assert all(page.startswith(b"\x89PNG") for page in pages)
    assert int.from_bytes(pages[0][16:20], "big") == pytest.approx(210 / 25.4 * 36, abs=1)


def test_a_target_that_cannot_be_written_is_refused_and_an_old_report_stays(document: Document, tmp_path: Path) -> None:
    old = tmp_path / "report.pdf"
    old.write_text("old")

    def refuse(_: bytes) -> bytes:
        raise ExportError("no signature")

    with pytest.raises(ExportError, match="no signature"):
        write_pdf(document, old, sign=refuse)
    assert [path.name for path in tmp_path.glob("*report*")] == ["report.pdf"] and old.read_text() == "old"
    with pytest.raises(ExportError, match=r"report\.pdf cannot be written"):
        write_pdf(document, old / "report.pdf")


@pytest.fixture(scope="module")
def unlike(document: Document, tmp_path_factory: pytest.TempPathFactory) -> PdfResult:
    """A report with another title and fewer sections."""
    other = replace(document, title="Autumn", sections=document.sections[3:])
    return write_pdf(other, tmp_path_factory.mktemp("pdf") / "other.pdf")


def test_pages_equal_the_reference_pictures(written: PdfResult, unlike: PdfResult, tmp_path: Path) -> None:
    pages = zip(pictures(written.path, tmp_path / "a"), pictures(unlike.path, tmp_path / "b"), strict=True)
    for page, (shown, other) in enumerate(pages, 1):
        golden = GOLDEN / f"comparison-{page}.png"
        if os.environ.get(RENEW):
            write_png(golden, shown)
        assert differences(shown, read_png(golden)) < LIMIT, page
        assert differences(other, read_png(golden)) > 2 * LIMIT, "another page would be seen"


def _figures(element: Any) -> Iterator[str]:
    """The alternative texts of all figures below an element of the structure tree."""
    if isinstance(element, list):
        for one in element:
            yield from _figures(getattr(one, "get_object", lambda one=one: one)())
    elif isinstance(element, dict):
        if element.get("/S") == "/Figure":
            yield str(element.get("/Alt", ""))
        yield from _figures(element.get("/K"))


def pictures(path: Path, folder: Path) -> list[Grey]:
    """The first two pages."""
    folder.mkdir()
    command = ["pdftoppm", "-gray", "-r", str(DPI), "-f", "1", "-l", "2", str(path), str(folder / "page")]
    subprocess.run(command, check=True, timeout=30)
    images = [read_pgm(page.read_bytes()) for page in sorted(folder.iterdir())]
    assert len(images) == 2
    return images


def differences(one: Grey, two: Grey) -> float:
    """Share of the pixels that differ by more than rasterizers do."""
    assert one.shape == two.shape
    return float((np.abs(one.astype(int) - two) > 64).mean())
