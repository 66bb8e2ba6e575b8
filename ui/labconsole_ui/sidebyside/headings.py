"""What stands over a column: title, number of repeats, and whether it is the baseline or published."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from labconsole.analysis.comparison import Comparison, RunGroup


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
        return Heading(column.title, "", badges, column.reference, True, index)
    first, repeats = column.runs[0], column.repeats
    count = _tr("run {0}").format(first.id) if len(column.runs) == 1 else _tr("{0} repeats").format(repeats)
    runs = ", ".join(str(run.id) for run in column.runs)
    about = _tr("Runs {0} of {1}").format(runs, first.campaign)
    return Heading(column.title, "" if column.title.endswith(count) else count, baseline, about, colour=index)


def _tr(text: str) -> str:
    return QCoreApplication.translate("SideBySide", text)
