"""The lines of the history: runs, or runs below the heads of their campaigns, which can be folded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from PySide6.QtCore import QMimeData, QModelIndex, Qt
from PySide6.QtWidgets import QWidget

from labconsole.store.records import RunRow
from labconsole_ui.runs.drag_and_drop import RUNS_TYPE, encode_runs
from labconsole_ui.tables.record_table import Field, Index, RecordModel, cell_values_by_role
from labconsole_ui.theme.theme import Theme


@dataclass(frozen=True)
class CampaignHead:
    """The line above the runs of a campaign; `runs` are those that pass the filter, folded away or not."""

    campaign_id: int
    title: str
    profile: str
    runs: tuple[RunRow, ...]
    folded: bool


Line = RunRow | CampaignHead


class RunModel(RecordModel[RunRow]):
    """Runs as rows. Grouped, a campaign is at the place of its first run; within it the order is the same.

    Every line can be dragged out.
    """

    cell_flags: ClassVar = RecordModel.cell_flags | Qt.ItemFlag.ItemIsDragEnabled

    def __init__(
        self, fields: Sequence[Field[RunRow]], heads: Sequence[Field[CampaignHead]], theme: Theme, parent: QWidget
    ) -> None:
        super().__init__(fields, theme, parent)
        self._head_answers = [cell_values_by_role(field, theme) for field in heads]
        self._lines: list[Line] = []
        self._folded: set[int] = set()
        self._grouped = False
        self._kept: dict[tuple[int, int, int], Any] = {}
        """Values of cells by run, column and role: to create them takes most of the time of a painting."""

    @property
    def grouped(self) -> bool:
        """Whether runs are grouped by campaign."""
        return self._grouped

    def set_columns(self, fields: Sequence[Field[RunRow]], heads: Sequence[Field[CampaignHead]]) -> None:
        """Show other columns: `fields` of runs, and as many `heads` of campaigns."""
        self.discard_cells()
        self._head_answers = [cell_values_by_role(field, self._theme) for field in heads]
        self.set_fields(fields)

    def set_records(self, records: Iterable[RunRow], accepts: Callable[[RunRow], bool] | None = None) -> None:
        """Show these runs, or those of them that `accepts`."""
        self.discard_cells()
        super().set_records(records, accepts)

    def repaint(self) -> None:
        """Let the views read all cells again, which are created again."""
        self.discard_cells()
        super().repaint()

    def discard_cells(self) -> None:
        """Create each cell again when it is painted next; `repaint` would close an editor."""
        self._kept.clear()

    def set_grouped(self, grouped: bool) -> None:
        """Show heads of campaigns, or runs only."""
        self._grouped = grouped
        self._rearrange()

    def fold(self, campaign_id: int, folded: bool) -> None:
        """Fold or unfold the runs of a campaign."""
        (self._folded.add if folded else self._folded.discard)(campaign_id)
        self._rearrange()

    def line(self, row: int) -> Line:
        """The run or campaign in `row`."""
        return self._lines[row]

    def lines(self) -> list[Line]:
        """All lines from top to bottom."""
        return list(self._lines)

    def runs_at(self, row: int) -> tuple[RunRow, ...]:
        """The run in `row`, or all of a campaign's."""
        line = self._lines[row]
        return line.runs if isinstance(line, CampaignHead) else (line,)

    def record(self, row: int) -> RunRow:
        """The run in `row`, or the first of a campaign's."""
        return self.runs_at(row)[0]

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        """Number of lines."""
        return 0 if parent.isValid() else len(self._lines)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """As for any record; heads of campaigns have another background."""
        if not index.isValid():
            return None
        line = self._lines[index.row()]
        if isinstance(line, CampaignHead):
            if role == Qt.ItemDataRole.BackgroundRole:
                return self._theme.colour("sunken")
            head_answer = self._head_answers[index.column()].get(role)
            return None if head_answer is None else head_answer(line)
        column = index.column()
        if (answer := self._cell_values[column].get(role)) is None:
            return None
        cell = (line.id, column, role)
        if cell not in self._kept:
            self._kept[cell] = answer(line)
        return self._kept[cell]

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Of a head nothing can be edited."""
        if index.isValid() and isinstance(self._lines[index.row()], CampaignHead):
            return self.cell_flags
        return super().flags(index)

    def mimeTypes(self) -> list[str]:  # noqa: N802 - Qt names it
        """Lines are dragged as runs."""
        return [RUNS_TYPE]

    def mimeData(self, indexes: Sequence[Index]) -> QMimeData:
        """The runs of these lines."""
        rows = sorted({index.row() for index in indexes})
        return encode_runs(list(dict.fromkeys(run.id for row in rows for run in self.runs_at(row))))

    def _lay_out(self) -> None:
        if not self._grouped:
            self._lines = list(self._shown)
            return
        campaigns: dict[int, list[RunRow]] = {}
        for run in self._shown:
            campaigns.setdefault(run.campaign_id, []).append(run)
        self._lines = []
        for number, runs in campaigns.items():
            folded = number in self._folded
            self._lines.append(CampaignHead(number, runs[0].campaign, runs[0].profile, tuple(runs), folded))
            self._lines += [] if folded else runs
