"""The rows of the side-by-side table: sections, parameters and metrics with their values and differences as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.figures import format_difference, format_figure
from labconsole.analysis.side_by_side import MetricLine, ParameterLine, Table
from labconsole_ui.runview.records import direction_text


class Section(StrEnum):
    """The parts of the table."""

    DIFFERING = "differing"
    METRICS = "metrics"
    EQUAL = "equal"


@dataclass(frozen=True)
class Row:
    """One row; a row without `values` is the heading of its section. `differences` are empty at the baseline."""

    section: Section
    title: str
    help: str = ""
    better: str = ""
    better_help: str = ""
    values: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    remark: str = ""

    @property
    def heading(self) -> bool:
        """Whether the row is the heading of its section."""
        return not self.values


def rows_of(table: Table, *, unfolded: bool) -> list[Row]:
    """All rows of the comparison; the equal parameters only if `unfolded`."""
    tr = QCoreApplication.translate
    differing = [line for line in table.parameters if line.differs]
    equal = [line for line in table.parameters if not line.differs]
    rows = []
    if differing:
        rows += [Row(Section.DIFFERING, tr("SideBySide", "Parameters that differ"))]
        rows += [_parameter_row(Section.DIFFERING, line) for line in differing]
    rows += [Row(Section.METRICS, tr("SideBySide", "Metrics"))]
    rows += [_metric_row(line, table.baseline) for line in table.metrics]
    if equal:
        rows += [Row(Section.EQUAL, tr("SideBySide", "Equal parameters: {0}").format(len(equal)))]
        rows += [_parameter_row(Section.EQUAL, line) for line in equal] if unfolded else []
    return rows


def shared_remark(table: Table) -> str:
    """The remark that every metric of the table has; nothing where they differ."""
    remarks = {line.remark for line in table.metrics}
    return remarks.pop() if len(remarks) == 1 else ""


def tsv(table: Table, headings: Sequence[str], rows: Sequence[Row]) -> str:
    """Rows as tab-separated text with titles: a column for values and one for differences of each scenario."""
    tr = QCoreApplication.translate
    head = ["", tr("SideBySide", "Better")]
    for index, heading in enumerate(headings):
        head.append(heading)
        if index != table.baseline:
            head.append(tr("SideBySide", "difference"))
    lines = [[*head, tr("SideBySide", "Remark")]]
    for row in rows:
        cells = [row.title, row.better]
        for index in range(len(headings)):
            cells.append(row.values[index] if row.values else "")
            if index != table.baseline:
                cells.append(row.differences[index] if row.differences else "")
        lines.append([*cells, row.remark])
    return "\n".join("\t".join(" ".join(cell.split()) for cell in line) for line in lines) + "\n"


def csv_text(table: Table) -> str:
    """The metrics as RFC 4180 text with plain numbers: one row a metric, value and difference for each column."""
    text = io.StringIO()
    writer = csv.writer(text)
    head = ["metric", "title", "unit", "direction"]
    for group in table.columns:
        head += [group.title, f"{group.title}: runs", f"{group.title}: difference [%]"]
    writer.writerow([_safe(cell) for cell in [*head, "remark"]])
    for line in table.metrics:
        row: list[object] = [line.kind.name, line.kind.title, line.kind.unit, line.kind.direction.value]
        for cell in line.cells:
            row += [
                "" if cell.value is None else cell.value,
                cell.runs,
                "" if cell.difference is None else cell.difference,
            ]
        writer.writerow([_safe(value) for value in [*row, line.remark]])
    return text.getvalue()


def _parameter_row(section: Section, line: ParameterLine) -> Row:
    title = f"{line.title} [{line.unit}]" if line.unit else line.title
    return Row(section, title, line.name, values=line.texts)


def _metric_row(line: MetricLine, baseline: int) -> Row:
    better = direction_text(line.kind.direction)
    return Row(
        Section.METRICS,
        line.kind.title,
        line.kind.description,
        better[:1],
        better,
        tuple(format_figure(cell.value, line.kind.unit) for cell in line.cells),
        tuple("" if index == baseline else format_difference(cell.difference) for index, cell in enumerate(line.cells)),
        line.remark,
    )


def _safe(cell: object) -> object:
    """Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
