"""What stands over a column: title, number of repeats, and whether it is the baseline or published."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.comparison import Comparison, RunGroup, counterpart
from labconsole.analysis.published_figures import PublishedColumn


@dataclass(frozen=True)
class Heading:
    """A column's heading; `badges` are (text, name of its colour)."""

    title: str
    count: str
    badges: tuple[tuple[str, str], ...] = ()
    help: str = ""
    published: bool = False
    colour: int | None = None
    """Index of the colour that the column has in plots."""
    short: str = ""
    """The title in a narrow column, where the column to the left of it shows the rest; nothing: as it is."""

    @property
    def text(self) -> str:
        """All of it on one line: `Test 1: plain, 5 repeats, baseline`."""
        return ", ".join(part for part in (self.title, self.count, *(badge for badge, _ in self.badges)) if part)


def heading_of(comparison: Comparison, index: int) -> Heading:
    """The heading of a column of the comparison."""
    column = comparison.columns[index]
    baseline = ((_tr("baseline"), "link"),) if index == comparison.baseline else ()
    if not isinstance(column, RunGroup):
        badges = (*baseline, (_tr("published"), "warning"))
        about = f"{column.title}\n{column.reference}"
        return Heading(column.title, "", badges, about, True, index, _short(comparison, index))
    first, repeats = column.runs[0], column.repeats
    count = _tr("run {0}").format(first.id) if len(column.runs) == 1 else _tr("{0} repeats").format(repeats)
    runs = ", ".join(str(run.id) for run in column.runs)
    about = _tr("Runs {0} of {1}").format(runs, first.campaign)
    return Heading(column.title, "" if column.title.endswith(count) else count, baseline, about, colour=index)


def _short(comparison: Comparison, index: int) -> str:
    """The title of its table for the only published column right of the one that was measured for its scenario."""
    columns = comparison.columns
    column = columns[index]
    published = [one for one in columns if isinstance(one, PublishedColumn)]
    if not isinstance(column, PublishedColumn) or (ours := counterpart(columns, column)) is None:
        return ""
    alone = sum(counterpart(columns, one) is ours for one in published) == 1
    return column.table_title if alone and columns[index - 1] is ours else ""


def _tr(text: str) -> str:
    return QCoreApplication.translate("SideBySide", text)
